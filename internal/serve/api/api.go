// Package api is the service over HTTP: runs, what they may, their records, and
// who follows them, as JSON.
//
// Its law: it decides nothing. Who asks was proved before ([Access]); what they
// may is the caller's; what a run is left is the service's host's. Here a body is
// read strictly, all that is wrong with it is told by the path of its field, and
// every answer is bounded in time and memory. One table of routes makes both the
// handlers and the description at /openapi.json, so that neither can be without
// the other. No error and no line of the log holds what a request brought.
package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// Handler is all of the service over HTTP.
func Handler(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	if o.Largest <= 0 {
		o.Largest = mostBody
	}
	if o.Streams <= 0 {
		o.Streams = 1024
	}
	if o.Held <= 0 {
		o.Held = mostHeld
	}
	s := &server{
		Options: o, streams: service.NewShares(int64(o.Streams), partOfStreams),
		answers: service.NewByteShares(o.Held, partOfHeld),
	}
	s.responder = responder{opt: &s.Options, zips: sync.Pool{New: func() any { return gzip.NewWriter(nil) }}}
	s.intake = intake{&s.Options, make(chan struct{}, largeAtime), service.NewByteShares(o.Held, partOfHeld)}
	s.openapi = document(routes(), nil)
	return s.watch(s.Access.Wrap(s.mux()))
}

// mux has every route, and for each path an answer to the methods that it lacks.
func (s *server) mux() http.Handler {
	m := http.NewServeMux()
	methods := map[string][]string{}
	for _, rt := range routes() {
		m.Handle(rt.method+" "+rt.path, s.route(rt))
		methods[rt.path] = append(methods[rt.path], rt.method)
	}
	for path, allowed := range methods {
		m.Handle(path, s.otherMethod(path, allowed))
	}
	m.Handle(mcpPath, s.passedOn(mcpPath, s.mcp))
	m.Handle("/", s.passedOn("/", s.console))
	return s.apart(m)
}

// route is the handler of a row of the table.
func (s *server) route(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := noteOf(r)
		n.route = rt.path
		c := service.CallerOf(r.Context())
		n.caller = c
		if err := rt.permits(c); err != nil {
			s.fail(w, r, err)
			return
		}
		if err := query(r, rt.query); err != nil {
			s.fail(w, r, err)
			return
		}
		if err := rt.serve(s, w, r, c); err != nil {
			s.fail(w, r, err)
		}
	})
}

// passedOn hands requests to another room, which may take its time.
func (s *server) passedOn(path string, serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := noteOf(r)
		n.route, n.caller = path, service.CallerOf(r.Context())
		if err := serve(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}

// mcp hands on a message of MCP that has come whole, so that nothing is made for
// it before. It is held until it is answered.
func (s *server) mcp(w http.ResponseWriter, r *http.Request) error {
	if s.MCP == nil {
		return errNoPath
	}
	if r.Body != nil && r.Body != http.NoBody {
		message, done, err := s.read(w, r, mostMCP)
		if err != nil {
			return err
		}
		defer done()
		r.Body = io.NopCloser(bytes.NewReader(message))
	}
	s.MCP.ServeHTTP(w, r)
	return nil
}

// console hands on a request for a page, which bounds what it reads of a form.
func (s *server) console(w http.ResponseWriter, r *http.Request) error {
	if s.Console == nil {
		return errNoPath
	}
	s.Console.ServeHTTP(w, r)
	return nil
}
