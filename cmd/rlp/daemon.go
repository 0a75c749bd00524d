package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/daemon"
	"runloop.dev/rlp/launcher/compose"
)

// mostLaunches is how many launches a helper does at once; more are done by
// those who want them.
const mostLaunches = 64

func daemonCommand(a *app) *cobra.Command {
	var idle time.Duration
	c := &cobra.Command{
		Use:   "daemon",
		Short: "Keep agents ready to launch, until nobody has launched one for a while",
		Long: `A daemon keeps compiled agents and the store open, and does what rlp
launch is asked for: the same run, record, output and exit status, sooner. It
serves this user alone, through a socket in the home, and ends by itself. What it
cannot do just as well, rlp launch does without it.

It stays in the foreground; rlp daemon start leaves it in the background. [daemon] start = "auto" in config.toml has the first
launch start one.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("idle") && idle < time.Second {
				return usagef("--idle %s: a second at least, such as 10m", idle)
			}
			return a.daemon(c.Context(), idle)
		},
	}
	start := &cobra.Command{
		Use: "start", Short: "Start a daemon in the background, and return when it serves", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return startByHand(a, idle) },
	}
	for _, c := range []*cobra.Command{c, start} {
		c.Flags().DurationVar(&idle, "idle", 0, "end after so long without a launch (default [daemon] idle, 10m)")
	}
	c.AddCommand(
		start,
		&cobra.Command{
			Use: "status", Short: "Say whether a daemon serves, and what it did", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return askTheDaemon(a, daemon.Status) },
		},
		&cobra.Command{
			Use: "stop", Short: "End the daemon when its launches have ended", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error { return stopDaemon(c.Context(), a) },
		},
	)
	return c
}

// daemon serves until it is idle for long enough, or told to stop.
func (a *app) daemon(ctx context.Context, idle time.Duration) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	if h.Tenant() != home.DefaultTenant {
		return usagef("rlp daemon serves every tenant of the home; leave --tenant out")
	}
	cfg, err := config.Load(h.Config(), a.env)
	if err != nil {
		return inputErr(err)
	}
	if idle == 0 {
		idle = cfg.Daemon.IdleTime()
	}
	if err := home.Make(runDir(h)); err != nil {
		return inputErr(err)
	}
	a.kept = compose.NewKept(ctx, compose.MemoryForRuns(), a.stderr)
	var closed error
	err = daemon.Serve(ctx, daemon.Options{
		Dir: runDir(h), Since: time.Now(), Idle: idle, Most: mostLaunches,
		Handle: func(ctx context.Context, call *daemon.Call) daemon.Outcome {
			return launchFor(ctx, a, call, invoker{home: h.Dir(), own: a.environment})
		},
		Ready: func() { tellDaemonServing(a, h, idle) },
		Over:  func() { closed = a.closeKept() },
	})
	return errors.Join(daemonErr(err), closed)
}

// serving says that clients can connect.
func tellDaemonServing(a *app, h home.Home, idle time.Duration) {
	path := filepath.Join(runDir(h), daemon.SocketName)
	switch {
	case a.json:
		// it serves, whoever reads
		_ = a.printJSON(map[string]any{"serving": true, "socket": path, "idle_ms": idle.Milliseconds()})
	case !a.quiet:
		a.say(fmt.Sprintf("serving %s; ends %s after the last launch", path, idle))
	}
}

// stopDaemon has the helper end, and waits until it has.
func stopDaemon(ctx context.Context, a *app) error {
	if err := askTheDaemon(a, daemon.Stop); err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	if err := daemon.Ended(runDir(h), ctx.Done()); err != nil {
		return daemonErr(err)
	}
	return ctx.Err()
}
