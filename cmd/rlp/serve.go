package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/runlog"
	"runloop.dev/rlp/internal/serve/api"
	"runloop.dev/rlp/internal/serve/host"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// serveFlags are those of rlp serve; what is left out, config.toml says.
type serveFlags struct {
	listen, socket string
	workers        int
	check          bool
}

func (a *app) serveCommand() *cobra.Command {
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
				return a.checkService(c.Context(), f.socket)
			}
			return a.serve(c.Context(), f)
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

// A server is what one rlp serve is made of.
type server struct {
	app    *app
	at     home.Home
	config config.Config
	flags  serveFlags
	log    *slog.Logger
	host   *host.Host

	listeners []served
	wired     wiring

	unread, reports int64 // bytes of reports that wait to be sent, and that are kept; 0: as usual
}

// serve serves until ctx ends, and until what was begun has ended.
func (a *app) serve(ctx context.Context, f serveFlags) (err error) {
	s := &server{app: a, flags: f}
	if s.at, s.config, err = a.settings(); err != nil {
		return err
	}
	if s.at.Tenant() != home.DefaultTenant {
		return usagef("rlp serve serves every tenant of the home; leave --tenant out")
	}
	logFile, err := s.openLog()
	if err != nil {
		return err
	}
	defer logFile.Close()
	a.kept = compose.NewKept(ctx, memoryForRuns(), a.stderr)
	s.host = host.New(a.runner(), s.at.Dir(), s.log, time.Now)
	s.boundMemory()
	defer func() { err = errors.Join(err, a.closeKept()) }()
	if err := s.host.Decided(); err != nil {
		return err
	}
	lock, err := s.claim()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := s.keys(ctx); err != nil {
		return err
	}
	if _, err := s.host.Store(ctx, home.DefaultTenant); err != nil { // what an earlier one left in journals is taken in
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	return s.until(ctx)
}

// openLog opens the service's own log: who asked, what went wrong, never what
// was in it.
func (s *server) openLog() (*runlog.Rotated, error) {
	if err := home.Make(s.at.Log()); err != nil {
		return nil, inputErr(err)
	}
	f, err := runlog.OpenRotated(filepath.Join(s.at.Log(), "serve.jsonl"), runlog.MostBytes, runlog.Older)
	if err != nil {
		return nil, inputErr(fmt.Errorf("opening the log of the service: %w", err))
	}
	handler := runlog.Handler(f, slog.LevelInfo, s.app.watching())
	s.log = slog.New(handler.WithAttrs([]slog.Attr{slog.String("surface", "serve")}))
	return f, nil
}

// closeKept gives up all that is kept for launches. A log that could not be closed
// is 74.
func (a *app) closeKept() error {
	if err := a.kept.Close(); err != nil {
		return &statusError{Status: launcher.StatusAudit, Err: err}
	}
	return nil
}

// boundMemory holds the runs, and what is left of them, to the memory that there is
// for them: a quarter of it, or less, is for reports that wait to be sent, and an
// eighth for those that are kept.
func (s *server) boundMemory() {
	most := cmp.Or(s.config.Serve.Memory, memoryForRuns())
	if most == 0 {
		return // nobody knows
	}
	s.unread, s.reports = min(most/4, 128<<20), min(most/8, 64<<20)
	s.app.kept.Modules.Bound(most - s.unread - s.reports)
	if most == s.config.Serve.Memory && s.app.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(most/3*2, leastHeap)) // boundHeap did it for the machine
	}
}

// leastHeap is what the service has of its own, with time to collect garbage.
const leastHeap = 96 << 20

// workers is how many runs there are at a time.
func (s *server) workers() int {
	const aCore = 16
	return cmp.Or(s.flags.workers, int(s.config.Serve.Workers), aCore*runtime.GOMAXPROCS(0))
}

// Bounds of a connection before anybody is asked what it wants.
const (
	headTime  = 10 * time.Second
	idleTime  = 2 * time.Minute
	mostHead  = 64 << 10
	leaveTime = 2 * time.Second // for answers that are under way when all runs have ended
)

// overHTTP is a server with the bounds of what nobody was asked yet.
func overHTTP(handler http.Handler, to *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHead,
		ErrorLog: log.New(&fewLines{log: to, now: time.Now, most: mostTroubles}, "", 0),
	}
}

// until serves until ctx ends or a listener fails.
func (s *server) until(ctx context.Context) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	if err := s.assemble(); err != nil {
		return err
	}
	h := overHTTP(s.wired.handler, s.log)
	h.BaseContext, h.ConnContext, h.ConnState = func(net.Listener) context.Context { return base }, s.connection,
		api.ConnState
	failed := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		go func() { failed <- h.Serve(l.Listener) }()
	}
	var taking sync.WaitGroup
	taking.Go(func() { s.host.TakeInForeign(base) })
	s.ready()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = &statusError{Status: launcher.StatusUnavailable, Err: fmt.Errorf("serving: %w", err)}
	}
	s.notify("STOPPING=1")
	s.log.Info("draining", "grace", s.config.Serve.Grace)
	drainErr := s.drain(base)
	end() // whoever still follows something
	leaving, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer stop()
	if h.Shutdown(leaving) != nil {
		_ = h.Close() // what is left has had its time
	}
	telling, told := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer told()
	if closeErr := s.wired.watch.Close(telling); closeErr != nil { // a collector that is gone is no failure of ours
		s.log.Warn("telling the collector", "message", printable(closeErr.Error()))
	}
	taking.Wait()
	s.log.Info("ended")
	return errors.Join(err, drainErr, s.close())
}

// drain lets what was begun end, for as long as the operator says.
func (s *server) drain(base context.Context) error {
	defer s.wired.mcp.Close()
	if err := s.wired.service.Drain(base); err != nil {
		return &statusError{Status: launcher.StatusFinding, Err: fmt.Errorf("ending the runs: %w", err)}
	}
	return nil
}

// ready says where it serves, what requests may have, and who may ask.
func (s *server) ready() {
	var addresses []string
	for _, l := range s.listeners {
		addresses = append(addresses, l.url)
	}
	http, mcp := host.DoorGrant(s.config, service.HTTP), host.DoorGrant(s.config, service.MCP)
	grant := cmp.Or(s.config.Security.RunGrant, http+" (HTTP), "+mcp+" (MCP)")
	who := s.whoMayAsk()
	s.log.Info("serving", "addresses", addresses, "grant", grant, "who", who, "workers", s.workers(), "version", version)
	switch {
	case s.app.json:
		_ = s.app.printJSON(map[string]any{
			"serving": true, "addresses": addresses, "grant": map[string]string{"http": http, "mcp": mcp},
			"who": who, "workers": s.workers(), "queue": s.config.Serve.Queue, "home": s.at.Dir(),
		}) // it serves, whoever reads
	case !s.app.quiet:
		fmt.Fprintf(s.app.stderr, "rlp: serving %s\n     requests start from %s; %s may ask\n",
			printable(strings.Join(addresses, " and ")), printable(grant), printable(who))
	}
	s.notify("READY=1")
}

// notify tells the service manager that started this process, if one did.
func (s *server) notify(state string) {
	path := s.app.getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if path[0] == '@' {
		path = "\x00" + path[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(state)) // nobody to tell
}
