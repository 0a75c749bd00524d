// Package server is one rlp serve: the socket and the address of a home, what
// answers there, and how it begins and ends. One that speaks MCP over a pair of
// streams is the same without addresses.
//
// Its law: it knows no command line and prints nothing; what it serves at, and who
// may ask, it tells [Options.Ready].
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/printable"
	"runloop.dev/rlp/internal/record/runlog"
	"runloop.dev/rlp/internal/serve/api"
	"runloop.dev/rlp/internal/serve/host"
	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// Options say what is served, and how.
type Options struct {
	Home   home.Home
	Config config.Config
	// Runner does the launches; what it keeps between them is the caller's to close.
	Runner *compose.Runner
	// Env is a variable of this process's environment, "" where it is not set.
	Env func(name string) string
	// Listen is HOST:PORT, Socket a path; "" is what Config and Home say, None nothing.
	Listen, Socket string
	Workers        int // runs at a time; 0: what Config says
	Version        string
	Now            func() time.Time
	Log            *slog.Logger
	Ready          func(Serving) // is told when requests are answered
}

// A Serving is what a service says of itself when it begins to serve.
type Serving struct {
	Addresses []string // "unix:/path", "http://127.0.0.1:8770"
	HTTP, MCP string   // the policies that requests over each start from
	Grant     string   // both, in words
	Who       string   // may ask, in words
	Workers   int
	Queue     int64  // requests that may wait
	Home      string // its path
}

// A Server serves one home.
type Server struct {
	Options
	host *host.Host

	listeners []served
	wired     wiring

	unread, reports int64 // bytes of reports that wait to be sent, and that are kept; 0: as usual
}

// New returns a server that serves nothing yet. Its runs are bounded by the memory
// that there is for them. An error says what of the home's decisions cannot be read.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, host: host.New(o.Runner, o.Home.Dir(), o.Log, o.Now)}
	s.boundMemory()
	return s, s.host.Decided()
}

// OpenLog opens the service's own log of a home: who asked, what went wrong, never
// what was in it. Lines go to watching as well where that is not nil. The caller
// closes the file.
func OpenLog(h home.Home, watching io.Writer) (*slog.Logger, io.Closer, error) {
	if err := home.Make(h.Log()); err != nil {
		return nil, nil, compose.InputErr(err)
	}
	f, err := runlog.OpenRotated(filepath.Join(h.Log(), "serve.jsonl"), runlog.MostBytes, runlog.Older)
	if err != nil {
		return nil, nil, compose.InputErr(fmt.Errorf("opening the log of the service: %w", err))
	}
	handler := runlog.Handler(f, slog.LevelInfo, watching)
	return slog.New(handler.WithAttrs([]slog.Attr{slog.String("surface", "serve")})), f, nil
}

// Serve serves over HTTP until ctx ends and what was begun has ended.
func (s *Server) Serve(ctx context.Context) error {
	lock, err := s.claim()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := s.keys(ctx); err != nil {
		return err
	}
	if err := s.host.Open(ctx); err != nil {
		return &compose.Error{Status: run.StatusUnavailable, Err: err}
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	return s.until(ctx)
}

// Speak serves the tools of who over in and out until in ends or ctx does.
func (s *Server) Speak(ctx context.Context, who *service.Caller, in io.ReadCloser, out io.WriteCloser) error {
	runs := service.New(service.Options{
		Host: s.host, Workers: s.workers(), Queue: int(s.Config.Serve.Queue), Now: s.Now, Log: s.Log,
	})
	tools := mcpserver.New(mcpserver.Options{
		Service: runs, Host: host.Questions{Host: s.host}, Version: s.Version, Now: s.Now, Log: s.Log,
	})
	defer tools.Close()
	s.Log.Info("serving", "addresses", []string{"stdio"}, "tenant", who.Tenant, "version", s.Version)
	served := tools.Serve(ctx, who, in, out)
	ended := runs.Drain(context.WithoutCancel(ctx)) // there is no grace: nobody is left to take an answer
	if ctx.Err() != nil {
		served = nil // ended as it was told to
	}
	if served != nil {
		served = compose.InputErr(fmt.Errorf("the client does not speak MCP: %w", served))
	}
	return errors.Join(served, ended)
}

func (s *Server) runDir() string { return filepath.Join(s.Home.Dir(), "run") }

// boundMemory holds the runs, and what is left of them, to the memory that there is
// for them: a quarter of it, or less, is for reports that wait to be sent, and an
// eighth for those that are kept.
func (s *Server) boundMemory() {
	most := cmp.Or(s.Config.Serve.Memory, compose.MemoryForRuns())
	if most == 0 {
		return // nobody knows
	}
	s.unread, s.reports = min(most/4, 128<<20), min(most/8, 64<<20)
	s.Runner.Kept.Modules.Bound(most - s.unread - s.reports)
	if most == s.Config.Serve.Memory && s.Env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(most/3*2, leastHeap)) // boundHeap did it for the machine
	}
}

// leastHeap is what the service has of its own, with time to collect garbage.
const leastHeap = 96 << 20

// workers is how many runs there are at a time.
func (s *Server) workers() int {
	const aCore = 16
	return cmp.Or(s.Workers, int(s.Config.Serve.Workers), aCore*runtime.GOMAXPROCS(0))
}

// Bounds of a connection before anybody is asked what it wants.
const (
	headTime  = 10 * time.Second
	idleTime  = 2 * time.Minute
	mostHead  = 64 << 10
	leaveTime = 2 * time.Second // for answers that are under way when all runs have ended
)

// overHTTP is a server with the bounds of what nobody was asked yet.
func overHTTP(handler http.Handler, to *slog.Logger, now func() time.Time) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHead,
		ErrorLog: log.New(&fewLines{log: to, now: now, most: mostTroubles}, "", 0),
	}
}

// until serves until ctx ends or a listener fails.
func (s *Server) until(ctx context.Context) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	if err := s.assemble(); err != nil {
		return err
	}
	h := overHTTP(s.wired.handler, s.Log, s.Now)
	h.BaseContext, h.ConnContext, h.ConnState = func(net.Listener) context.Context { return base }, s.connection,
		api.ConnState
	failed := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		go func() { failed <- h.Serve(l.Listener) }()
	}
	var taking sync.WaitGroup
	taking.Go(func() { s.host.TakeInForeign(base) })
	s.Ready(s.serving())
	s.notify("READY=1")
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = &compose.Error{Status: run.StatusUnavailable, Err: fmt.Errorf("serving: %w", err)}
	}
	s.notify("STOPPING=1")
	s.Log.Info("draining", "grace", s.Config.Serve.Grace)
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
		s.Log.Warn("telling the collector", "message", printable.Line(closeErr.Error()))
	}
	taking.Wait()
	s.Log.Info("ended")
	return errors.Join(err, drainErr, s.close())
}

// drain lets what was begun end, for as long as the operator says.
func (s *Server) drain(base context.Context) error {
	defer s.wired.mcp.Close()
	if err := s.wired.service.Drain(base); err != nil {
		return &compose.Error{Status: run.StatusFinding, Err: fmt.Errorf("ending the runs: %w", err)}
	}
	return nil
}

// serving is where it serves, what requests may have, and who may ask.
func (s *Server) serving() Serving {
	v := Serving{
		HTTP: host.DoorGrant(s.Config, service.HTTP), MCP: host.DoorGrant(s.Config, service.MCP), Who: s.whoMayAsk(),
		Workers: s.workers(), Queue: s.Config.Serve.Queue, Home: s.Home.Dir(),
	}
	for _, l := range s.listeners {
		v.Addresses = append(v.Addresses, l.url)
	}
	v.Grant = cmp.Or(s.Config.Security.RunGrant, v.HTTP+" (HTTP), "+v.MCP+" (MCP)")
	s.Log.Info("serving", "addresses", v.Addresses, "grant", v.Grant, "who", v.Who, "workers", v.Workers, "version",
		s.Version)
	return v
}

// notify tells the service manager that started this process, if one did.
func (s *Server) notify(state string) {
	path := s.Env("NOTIFY_SOCKET")
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
