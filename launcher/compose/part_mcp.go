package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/launcher/run"
)

// Bounds of what a run waits for a server, within its own wall time, and of how
// often one that ends is started again.
const (
	mcpOpenTime  = 30 * time.Second
	mcpCallTime  = 2 * time.Minute
	mcpListedFor = 10 * time.Second // what was said of tools is asked for again after that
	maxMCPStarts = 8
)

// mcpPart gives a run whose bundle asks for servers of tools those of the
// operator. Nothing is started or asked before the first call that is granted.
func mcpPart(a *Runner, c *Composition, spec *run.Spec) (func() error, error) {
	if !slices.ContainsFunc(spec.Policy.Base, func(e caps.Entry) bool { return e.Grant.Family == caps.MCP }) {
		return nil, nil
	}
	s := &mcpServers{by: a, c: c, spec: spec, http: egress.New(egress.Config{}), byName: map[string]*mcpServer{}}
	spec.Components.MCP = s
	return s.close, nil
}

// mcpServers are the configured servers, for one run.
type mcpServers struct {
	by   *Runner
	c    *Composition
	spec *run.Spec
	http *egress.Client

	mu     sync.Mutex // a call that was left behind may still be under way
	closed bool
	byName map[string]*mcpServer
	starts int // of programs
}

// Server implements [hostcalls.MCP].
func (s *mcpServers) Server(name string) hostcalls.MCPServer {
	cfg, ok := s.c.Config.MCP[name]
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[name] == nil {
		s.byName[name] = &mcpServer{all: s, name: name, cfg: cfg}
	}
	return s.byName[name]
}

func (s *mcpServers) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, server := range s.byName {
		errs = append(errs, server.hangUp())
	}
	s.http.Close()
	return errors.Join(errs...)
}

// An mcpServer is one server, and what was heard of it.
type mcpServer struct {
	all  *mcpServers
	name string
	cfg  config.MCPServer

	session *mcpclient.Session // nil: nobody is spoken with
	program *mcpProgram        // nil: it is at a URL
	tools   []hostcalls.MCPTool
	offers  []mcpclient.Tool // of a wrapped server: all that it said of itself
	digest  string           // of tools; "" before they were heard
	heard   time.Time        // when that was
	changed bool
	started int
}

// stale reports whether the server has to be asked for its tools.
func (m *mcpServer) stale() bool {
	if m.program != nil && m.program.over() {
		m.log(m.hangUp()) // it ended by itself, and is started again
	}
	return m.session == nil || m.session.Changed() || m.digest == "" || m.all.spec.Now().Sub(m.heard) > mcpListedFor
}

// Tools implements [hostcalls.MCPServer].
func (m *mcpServer) Tools(ctx context.Context) (hostcalls.MCPTools, error) {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	if m.all.closed {
		return hostcalls.MCPTools{}, context.Canceled
	}
	if m.changed {
		return hostcalls.MCPTools{}, hostcalls.ErrServerChanged
	}
	if !m.stale() {
		return hostcalls.MCPTools{List: m.tools}, nil
	}
	within, cancel := context.WithTimeout(ctx, mcpOpenTime)
	defer cancel()
	pinned, err := m.hear(within)
	if err != nil {
		return hostcalls.MCPTools{}, m.said(ctx, err)
	}
	return hostcalls.MCPTools{List: m.tools, Pinned: pinned}, nil
}

// hear asks the server for its tools, and whether it is who it was.
func (m *mcpServer) hear(ctx context.Context) (pinned string, err error) {
	if m.session == nil {
		if err := m.dial(ctx); err != nil {
			return "", err
		}
	}
	list, err := m.offered(ctx)
	if err != nil {
		return "", err
	}
	said := NewPin(m.name, list, m.all.spec.Now())
	said.Wrapped = m.wrapped()
	if m.digest == "" || m.digest != said.Digest { // it may say something else in the same run
		first, err := know(m.all.c.Home, said)
		if errors.Is(err, errChanged) {
			m.changed = true
			return "", errors.Join(err, m.hangUp())
		}
		if err != nil {
			return "", err
		}
		if first {
			pinned = said.Digest
		}
	}
	m.digest, m.heard, m.offers, m.tools = said.Digest, m.all.spec.Now(), list, m.callable(list)
	return pinned, nil
}

// offered is what the server says of itself: of its tools or, where it is wrapped,
// of all.
func (m *mcpServer) offered(ctx context.Context) ([]mcpclient.Tool, error) {
	if m.wrapped() {
		return m.session.Offers(ctx)
	}
	return m.session.Tools(ctx)
}

// wrapped reports whether the run is a session in front of this server.
func (m *mcpServer) wrapped() bool { return m.all.c.Wrap != nil && m.all.c.Wrap.Name == m.name }

// callable is what calls can name of what a server offers. The methods by which a
// wrapped one is asked for content are called like tools, and take the place of
// those that are named so.
func (m *mcpServer) callable(list []mcpclient.Tool) []hostcalls.MCPTool {
	tools := make([]hostcalls.MCPTool, 0, len(list))
	for _, t := range list {
		if !m.wrapped() || !slices.Contains(methods[:], t.Name) {
			tools = append(tools, hostcalls.MCPTool{Name: t.Name, Description: t.Description, InputSchema: t.Schema})
		}
	}
	if m.wrapped() {
		for _, name := range mcpclient.Methods(list) {
			tools = append(tools, hostcalls.MCPTool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
		}
	}
	return tools
}

// Call implements [hostcalls.MCPServer].
func (m *mcpServer) Call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	if m.session == nil {
		return nil, m.said(ctx, mcpclient.ErrGone)
	}
	within, cancel := context.WithTimeout(ctx, mcpCallTime)
	defer cancel()
	ask := m.session.Call
	if m.wrapped() && slices.Contains(methods[:], tool) {
		ask = m.session.Get
	}
	result, err := ask(within, tool, arguments)
	if err != nil {
		return nil, m.said(ctx, err)
	}
	return result, nil
}

// dial begins to speak with the server.
func (m *mcpServer) dial(ctx context.Context) error {
	way, err := m.way(ctx)
	if err != nil {
		return err
	}
	if m.session, err = mcpclient.Connect(ctx, way); err != nil {
		m.session = nil
		return errors.Join(err, m.hangUp())
	}
	return nil
}

// way is how the server is reached.
func (m *mcpServer) way(ctx context.Context) (mcpclient.Transport, error) {
	secrets := make([]string, len(m.cfg.Secrets))
	for i, s := range m.cfg.Secrets {
		var err error
		if secrets[i], err = m.all.c.secret(ctx, s.ID); err != nil {
			return mcpclient.Transport{}, &mcpTrouble{"a secret that it is given cannot be read", fmt.Errorf("%s: %w", s.ID,
				err)}
		}
	}
	if m.cfg.URL != "" {
		bearer := ""
		if len(secrets) > 0 {
			bearer = secrets[0]
		}
		return mcpclient.HTTP(m.cfg.URL, bearer, m.all.http), nil
	}
	if m.all.starts++; m.all.starts > maxMCPStarts {
		return mcpclient.Transport{}, &mcpTrouble{"servers were started too often in this run", nil}
	}
	var err error
	if m.program, err = m.start(ctx, secrets); err != nil {
		return mcpclient.Transport{}, err
	}
	return mcpclient.Stdio(m.program.Stdin, m.program.Stdout), nil
}

// hangUp ends the conversation, and the program if there is one.
func (m *mcpServer) hangUp() error {
	if m.session != nil {
		m.session.Close()
		m.session = nil
	}
	if m.program == nil {
		return nil
	}
	err := m.program.end(m.all, m.name)
	m.program = nil
	return err
}

// An mcpTrouble is what the host has with a server: the guest may read it, and
// the operator's log says why.
type mcpTrouble struct {
	text string
	err  error // nil where there is no more to say
}

func (t *mcpTrouble) Error() string {
	if t.err == nil {
		return t.text
	}
	return t.text + ": " + t.err.Error()
}

func (t *mcpTrouble) Unwrap() error { return t.err }

// said is an error in words for the guest. A server that ended, or cannot be
// understood any more, is not spoken with again before it is started anew.
func (m *mcpServer) said(ctx context.Context, err error) error {
	var remote *mcpclient.RemoteError
	var trouble *mcpTrouble
	var way *mcpclient.WayError
	fail := func(number hostcalls.Errno, text string) error {
		return &hostcalls.Fail{Errno: number, Hint: "the server " + m.name + ": " + text}
	}
	switch {
	case ctx.Err() != nil: // the run is over
		return ctx.Err()
	case errors.As(err, &remote):
		return &hostcalls.MCPError{Text: remote.Message}
	case errors.Is(err, errChanged):
		return hostcalls.ErrServerChanged
	case errors.Is(err, context.DeadlineExceeded):
		return fail(hostcalls.TimedOut, "no answer in time")
	}
	m.log(errors.Join(err, m.hangUp()))
	switch {
	case errors.As(err, &trouble):
		return &hostcalls.Fail{Errno: hostcalls.Notsup, Reason: caps.Unavailable, Hint: "the server " + m.name + ": " +
			trouble.text}
	case errors.Is(err, mcpclient.ErrTooLarge), errors.Is(err, mcpclient.ErrMany):
		return fail(hostcalls.TooBig, err.Error())
	case errors.Is(err, mcpclient.ErrGone), errors.Is(err, mcpclient.ErrTwice):
		return fail(hostcalls.IO, err.Error())
	}
	if errors.As(err, &way) {
		return fail(hostcalls.IO, "it cannot be reached; the operator's log says why")
	}
	return fail(hostcalls.IO, "it cannot be used now; the operator's log says why")
}

func (m *mcpServer) log(err error) {
	if err == nil {
		return
	}
	m.all.spec.Log.Warn("mcp server", "server", m.name, "error", fmt.Sprint(err))
}

// offersOf is all that a server said of itself when it was last asked.
func (s *mcpServers) offersOf(name string) []mcpclient.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byName[name]; m != nil {
		return m.offers
	}
	return nil
}
