package mcpserver

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
)

// A Host is the service with the questions that tools ask of it. Who asks is
// answered what they may know; what is wrong with a question is an [ask.Error].
type Host interface {
	service.Host
	// Explain says why a run was answered as it was or, where q names none, how a
	// call of an installed agent as a tool would be.
	Explain(ctx context.Context, c *service.Caller, agent string, q ask.Query) (*ask.Explanation, error)
	// Search finds what suits a text in the knowledge base, masked.
	Search(ctx context.Context, c *service.Caller, q kb.Query) ([]ask.Hit, error)
}

// Options says what [New] makes. Service and Host are of one process.
type Options struct {
	Service *service.Service
	Host    Host
	Version string           // of the program
	Now     func() time.Time // the clock
	Log     *slog.Logger     // nil: nothing is logged
	// Still is asked before each call whether a caller may still ask; nil: its
	// Until alone decides. What it returns is for the log.
	Still func(*service.Caller) error

	Sessions int // over HTTP at a time; 0: 256, and an eighth of them a caller
	// the same, those that are under way, each of a list for itself; 0: 2048, and a quarter of them a caller
	Requests int
	Idle     time.Duration // after which a session without a request ends; 0: 30 min
	Look     time.Duration // how often it is looked for agents that came or went; 0: 5 s
	Patience time.Duration // how long a reader may take for a piece of an answer over HTTP; 0: 1 min
	Leave    time.Duration // how long a client has, over stdio, to take its answers when it is at its end; 0: 3 s
}

// Bounds of what one client sends.
const (
	mostCalls     = 32 // of one session under way at a time
	partOfCallers = 8  // one caller has at most one in so many sessions
	partOfAsked   = 4  // and of requests
)

const (
	defaultSessions = 256
	defaultRequests = 2048
	defaultPatience = time.Minute
	defaultLeave    = 3 * time.Second
	defaultIdle     = 30 * time.Minute
	defaultLook     = 5 * time.Second
)

// A Server serves sessions. It is an [http.Handler], for one path.
type Server struct {
	opt    Options
	agents agents

	legacy, modern http.Handler
	asked          *service.Shares // requests that are under way
	posts          sync.Map        // of *post, by the value of their postHeader

	mu       sync.Mutex
	sessions map[string]*session
	turn     uint64 // counts requests of sessions
	ended    bool
}

// New returns a server without sessions.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sessions <= 0 {
		o.Sessions = defaultSessions
	}
	if o.Requests <= 0 {
		o.Requests = defaultRequests
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Leave <= 0 {
		o.Leave = defaultLeave
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Look <= 0 {
		o.Look = defaultLook
	}
	s := &Server{opt: o, sessions: map[string]*session{}, asked: service.NewShares(int64(o.Requests), partOfAsked)}
	s.agents = agents{host: o.Host, now: o.Now, log: o.Log, known: map[string]*heard{}}
	s.handlers()
	return s
}

// Serve speaks with one client over a pair of streams, one message a line, until
// in ends, ctx ends or the client does not keep to the protocol. Calls that are
// under way then are cancelled, and Serve waits for them; for a client that takes
// no answers it waits a moment.
func (s *Server) Serve(ctx context.Context, c *service.Caller, in io.ReadCloser, out io.WriteCloser) error {
	ss := s.session(ctx, c)
	defer ss.end()
	talk := conversation{sdk: ss.sdk, ctx: ss.ctx, spoken: ss.spoken, end: ss.end, leave: s.opt.Leave}
	err := talk.speak(ctx, in, out, func() { ss.watching(ss.ctx) })
	ss.cancel()
	ss.calls.Wait()
	return err
}

// Close ends every session over HTTP, and takes no other.
func (s *Server) Close() {
	s.mu.Lock()
	s.ended = true
	var all []*session
	for _, ss := range s.sessions {
		all = append(all, ss)
	}
	s.mu.Unlock()
	for _, ss := range all {
		ss.end()
	}
}
