package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/serve/client"
	"runloop.dev/rlp/internal/serve/server"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// serveFlags are those of rlp serve; what is left out, config.toml says.
type serveFlags struct {
	listen, socket string
	workers        int
	check          bool
}

func serveCommand(a *app) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve launches over HTTP, agents as tools (MCP), and a console, on one address",
		Long: `Serve takes requests to launch agents, and does each as rlp launch would: the same
merge, the same gate, the same record. A request starts from the default policy of
the HTTP or MCP endpoint (security.run_grant; without it, computing alone) and from
what its caller may have, and can only take away.

It answers at <home>/run/serve.sock, and at the loopback address of [serve]
listen, to the user who started it and to whoever has a token (rlp token new).
Interrupt it to end: runs have [serve] grace to end by themselves, a second
signal ends it at once.`,
		Example: "  rlp serve\n  rlp serve --listen 127.0.0.1:9000\n  curl --unix-socket ~/.runloop/run/serve.sock " +
			"http://localhost/capabilities",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("workers") && (f.workers < 1 || f.workers > 4096) {
				return usagef("--workers %d: from 1 to 4096", f.workers)
			}
			if f.check {
				return checkService(c.Context(), a, f.socket)
			}
			return serveHere(c.Context(), a, f)
		},
	}
	c.Flags().StringVar(&f.listen, "listen", "",
		"the TCP address `HOST:PORT` to serve at, or none (default [serve] listen, 127.0.0.1:8770)")
	c.Flags().StringVar(&f.socket, "socket", "",
		"the `PATH` of the Unix socket to serve at, or none (default <home>/run/serve.sock)")
	c.Flags().IntVar(&f.workers, "workers", 0, "at most `N` runs at a time (default [serve] workers, 16 a core)")
	c.Flags().BoolVar(&f.check, "check", false,
		"serve nothing: ask the service at the socket whether it takes runs; 69 if it does not")
	return c
}

// checkService asks the service of the home, by its socket, whether it takes runs,
// where there is no other program to ask with. It makes nothing.
func checkService(ctx context.Context, a *app, socket string) error {
	dir, err := home.Locate(a.homeFlag, a.getenv("RUNLOOP_HOME"), a.getenv("HOME"))
	if err != nil {
		return inputErr(err)
	}
	said, err := client.Ready(ctx, cmp.Or(socket, home.ServeSocket(dir)))
	if err != nil {
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	}
	if !a.quiet {
		_, err = fmt.Fprintf(a.stdout, "%s\n", said)
	}
	return err
}

// serve serves until ctx ends, and until what was begun has ended.
func serveHere(ctx context.Context, a *app, f serveFlags) error {
	if a.tenant != home.DefaultTenant {
		return usagef("rlp serve serves every tenant of the home; leave --tenant out")
	}
	s, closeAll, err := a.server(ctx, f)
	if err != nil {
		return err
	}
	return errors.Join(s.Serve(ctx), closeAll())
}

// server is what rlp serve and rlp mcp serve with, and what closes it.
func (a *app) server(ctx context.Context, f serveFlags) (s *server.Server, closeAll func() error, err error) {
	o := server.Options{
		Env: a.getenv, Listen: f.listen, Socket: f.socket, Workers: f.workers, Version: version, Ready: a.tellServing,
		Now: time.Now,
	}
	if o.Home, o.Config, err = a.settings(); err != nil {
		return nil, nil, err
	}
	log, file, err := server.OpenLog(o.Home, a.watching())
	if err != nil {
		return nil, nil, err
	}
	a.kept = compose.NewKept(ctx, compose.MemoryForRuns(), a.stderr)
	closeAll = func() error { return errors.Join(a.closeKept(), file.Close()) }
	o.Log, o.Runner = log, a.runner()
	if s, err = server.New(o); err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	return s, closeAll, nil
}

// tellServing says where it is served, what requests may have, and who may ask.
func (a *app) tellServing(v server.Serving) {
	switch {
	case a.json:
		_ = a.printJSON(map[string]any{
			"serving": true, "addresses": v.Addresses, "grant": map[string]string{"http": v.HTTP, "mcp": v.MCP},
			"who": v.Who, "workers": v.Workers, "queue": v.Queue, "home": v.Home,
		}) // it serves, whoever reads
	case !a.quiet:
		a.say(fmt.Sprintf("serving %s\n     requests start from %s; %s may ask", strings.Join(v.Addresses, " and "), v.Grant,
			v.Who))
	}
}
