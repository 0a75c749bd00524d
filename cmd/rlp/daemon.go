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
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// mostLaunches is how many launches a helper does at once; more are done by
// those who want them.
const mostLaunches = 64

func (a *app) daemonCommand() *cobra.Command {
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
			RunE: func(*cobra.Command, []string) error { return a.askTheDaemon(daemon.Status) },
		},
		&cobra.Command{
			Use: "stop", Short: "End the daemon when its launches have ended", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error { return a.stopDaemon(c.Context()) },
		},
	)
	return c
}

// runDir is the folder of sockets and locks.
func runDir(h home.Home) string { return filepath.Join(h.Dir(), "run") }

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
			return a.launchFor(ctx, call, invoker{home: h.Dir(), own: a.environment})
		},
		Ready: func() { a.serving(h, idle) },
		Over:  func() { closed = a.closeKept() },
	})
	return errors.Join(daemonErr(err), closed)
}

func daemonErr(err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, daemon.ErrUnsupported):
		return &statusError{Status: launcher.StatusUnsupported, Err: err}
	case errors.Is(err, daemon.ErrNobody):
		err = fmt.Errorf("%w; rlp daemon start starts one", err)
	case errors.Is(err, daemon.ErrServed):
		err = fmt.Errorf("%w; rlp daemon status shows it, rlp daemon stop ends it", err)
	}
	return &statusError{Status: launcher.StatusUnavailable, Err: err}
}

// serving says that clients can connect.
func (a *app) serving(h home.Home, idle time.Duration) {
	path := filepath.Join(runDir(h), daemon.SocketName)
	switch {
	case a.json:
		// it serves, whoever reads
		_ = a.printJSON(map[string]any{"serving": true, "socket": path, "idle_ms": idle.Milliseconds()})
	case !a.quiet:
		a.say(fmt.Sprintf("serving %s; ends %s after the last launch", path, idle))
	}
}

// askTheDaemon prints what the helper says of itself.
func (a *app) askTheDaemon(kind byte) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	state, err := daemon.Ask(filepath.Join(runDir(h), daemon.SocketName), kind)
	if err != nil {
		return daemonErr(err)
	}
	if a.json {
		return a.printJSON(state)
	}
	fmt.Fprintf(a.stdout, "process %d, since %s\nrunning %d, done %d\n", state.PID, state.Since.UTC().Format(time.RFC3339),
		state.Running, state.Done)
	for _, why := range sortedKeys(state.Declined) {
		fmt.Fprintf(a.stdout, "declined %d: %s\n", state.Declined[why], printable(why))
	}
	return nil
}

// stopDaemon has the helper end, and waits until it has.
func (a *app) stopDaemon(ctx context.Context) error {
	if err := a.askTheDaemon(daemon.Stop); err != nil {
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
