package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/web"
	"runloop.dev/rlp/internal/record/audit"
)

// A ProgramHost answers a run whose agent is a program of the machine, which asks by
// many connections at once. What is judged, recorded and counted is so under one
// lock; what waits for another machine holds none.
type ProgramHost struct {
	mu   sync.Locker
	h    *Host
	send *gate.Op
}

// NewProgramHost makes h answer a program. Whoever else asks the gate of h holds mu.
func NewProgramHost(h *Host, mu sync.Locker) (*ProgramHost, error) {
	mu.Lock()
	defer mu.Unlock()
	op, err := h.cfg.Gate.Op(netHTTPName)
	if err != nil {
		return nil, fmt.Errorf("answering a program: %w", err)
	}
	return &ProgramHost{mu: mu, h: h, send: op}, nil
}

// Confirm asks a person about what a program does by itself, as host calls ask; nil: nobody is
// to be asked. It is called as they are: with the lock, which it lets go of meanwhile.
func (p *ProgramHost) Confirm() func(context.Context, Question) (consent, refused string) {
	if !p.h.cfg.ConfirmExternal {
		return nil
	}
	return func(ctx context.Context, q Question) (consent, refused string) {
		defer func() { p.h.consent = "" }()
		refused = p.h.unconfirmed(ctx, q)
		return p.h.consent, refused
	}
}

// A Refusal is why something was not done that a program asked for: the number and
// the JSON that a guest would be given.
type Refusal struct {
	Number Errno
	Said   []byte
	err    error
}

func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap is the error beneath.
func (r *Refusal) Unwrap() error { return r.err }

// refusal is err as the program is told of it.
func (p *ProgramHost) refusal(err error) error {
	n := errnoOf(err)
	return &Refusal{n, p.h.scrub(p.h.explain(n, err)), err}
}

// A RouteRequest is a request that a program sent to HOST.rlp.
type RouteRequest struct {
	Route  *caps.Route // nil: none takes it
	Method string
	URL    string // https://HOST, with path and query
	Header http.Header
	Body   string
}

// Send sends a request on its route, and returns the answer without the values of
// secrets, unpacked, as it comes. Redirects are not followed. The error is a
// [*Refusal]; a request without a route is one.
func (p *ProgramHost) Send(ctx context.Context, q *RouteRequest) (*http.Response, error) {
	sent, req, err := p.begin(ctx, q)
	if err != nil {
		return nil, err
	}
	resp, err := p.h.cfg.HTTP.Send(req, sent.named)
	p.mu.Lock()
	defer p.mu.Unlock()
	if resp, err = sent.x.take(resp, err); err == nil {
		err = sent.opened(resp)
	}
	if err != nil {
		return nil, sent.failed(err)
	}
	return resp, nil
}

// A sending is one request of a program, from its permit to the end of its answer.
type sending struct {
	p       *ProgramHost
	x       *exchange
	named   bool
	start   int64
	consent string
	cancel  context.CancelFunc

	from   io.ReadCloser
	clean  func(p []byte, end bool) []byte
	buffer []byte
	rest   []byte // of what clean gave
	most   int64  // bytes of the body
	passed int64
	status int
	err    error
	once   sync.Once
}

func (p *ProgramHost) begin(ctx context.Context, q *RouteRequest) (*sending, *http.Request, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.h
	h.calling = netHTTPName
	r, err := p.routed(q)
	if err != nil {
		h.cfg.Gate.Refuse(p.send, caps.Request{Family: caps.Net}, "", caps.InvalidRequest)
		return nil, nil, p.refusal(invalid(err))
	}
	req, target := httpCall.touches(r)
	if q.Route == nil {
		return nil, nil, p.refusal(h.cfg.refuse(p.send, req, target, caps.RouteNotPermitted, ""))
	}
	a, err := httpCall.judge(ctx, h, p.send, &r)
	if err != nil {
		return nil, nil, p.refusal(err)
	}
	s := &sending{p: p, start: h.cfg.Now(), consent: h.consent, named: h.net.named}
	ctx, s.cancel = context.WithTimeout(ctx, h.timeLeft(caps.NetTimeoutMS, r.timeout))
	value, err := h.placed(ctx, p.send, ToolField{q.Route.Header, []ToolPart{
		{Text: q.Route.Before}, {Secret: q.Route.Secret}, {Text: q.Route.After},
	}})
	if err == nil {
		r.header = append(r.header, httpField{q.Route.Header, []string{value}})
		s.x, err = h.exchange(ctx, &r)
	}
	if err == nil {
		var out *http.Request
		if out, err = s.x.begin(a.Permit); err == nil {
			return s, out, nil
		}
	}
	return nil, nil, s.failed(err)
}

// routed is the request as it is judged and sent: what a program writes may hold
// values that it must not pass on, as what a guest writes.
func (p *ProgramHost) routed(q *RouteRequest) (httpReq, error) {
	h := p.h
	r := httpReq{method: q.Method, timeout: longestTimeout, op: p.send, body: h.scrubText(q.Body), text: q.Method}
	if len(q.Body) > MaxRequestBody {
		return r, &Fail{Errno: TooBig, Hint: "the body of a request is at most 64 MiB"}
	}
	var err error
	if r.Place, err = web.Parse(h.scrubText(q.URL)); err != nil {
		return r, fmt.Errorf("url: %w", err)
	}
	r.text += " " + r.URL.String()
	mode, ok := caps.NetMode(r.Scheme, q.Method)
	if !ok || strings.EqualFold(q.Method, "CONNECT") || strings.EqualFold(q.Method, "TRACE") {
		return r, errors.New("method: not one that can be sent; GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS are")
	}
	r.mode = mode
	for name, values := range q.Header {
		switch err := web.CheckHeader(name, values); {
		case err != nil:
			return r, fmt.Errorf("headers.%s: %w", name, err)
		case web.Dashed(name) == acceptEncoding: // the host's own
			continue
		case q.Route != nil && web.Dashed(name) == q.Route.Header:
			return r, fmt.Errorf("headers.%s: set by the route", name)
		case len(r.header) == maxHeaders:
			return r, fmt.Errorf("headers: more than the %d that are taken", maxHeaders)
		}
		clean := make([]string, len(values))
		for i, v := range values {
			clean[i] = h.scrubText(v)
		}
		r.header = append(r.header, httpField{name, clean})
	}
	return r, nil
}

// opened makes the body of resp what the program reads.
func (s *sending) opened(resp *http.Response) error {
	h := s.p.h
	s.status = resp.StatusCode
	how := strings.Join(resp.Header["Content-Encoding"], ", ")
	empty := resp.Body == http.NoBody || s.x.method == http.MethodHead
	if how != "" && !strings.EqualFold(how, "identity") && !empty {
		_ = resp.Body.Close()
		return &Fail{Errno: IO, Hint: fmt.Sprintf("the answer is encoded (%s) as nobody asked for, and cannot be looked "+
			"through for secrets", printable(how))}
	}
	s.most = math.MaxInt64
	if most, set := h.condition(caps.NetMaxResponseBytes); set {
		s.most = most
	}
	s.from, s.clean = resp.Body, func(p []byte, _ bool) []byte { return p }
	if h.cfg.Secrets != nil {
		s.clean = h.cfg.Secrets.Stream(h.replaced)
	}
	resp.Body = s
	return nil
}

// Read gives what has come of the body, without the values of secrets.
func (s *sending) Read(out []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if s.buffer == nil {
			s.buffer = make([]byte, 32<<10)
		}
		n, err := s.from.Read(s.buffer)
		s.p.mu.Lock()
		s.more(s.buffer[:n], err)
		s.p.mu.Unlock()
	}
	n := copy(out, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// more takes in a piece of the body, and the error that came behind it.
func (s *sending) more(piece []byte, err error) {
	h := s.p.h
	h.calling = netHTTPName
	s.rest = s.clean(piece, err != nil)
	s.passed += int64(len(s.rest))
	h.budget.Take(caps.NetBytes, int64(len(s.rest)))
	switch {
	case s.passed > s.most:
		h.over(caps.NetMaxResponseBytes, s.passed)
		s.err = s.x.refuse(caps.BudgetExhausted, "")
	case !h.budget.Allows(caps.NetBytes, 0):
		s.err = s.x.refuse(caps.BudgetExhausted, "")
	case err == io.EOF && s.x.ctx.Err() == nil:
		s.err = io.EOF
	case err != nil:
		s.err = s.x.failed(errBroken)
	}
	if s.err != nil && s.err != io.EOF {
		s.rest = nil
	}
}

// Close records how the request ended, once.
func (s *sending) Close() error {
	err := s.from.Close()
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.err == io.EOF {
		s.err = nil
	}
	_ = s.done(s.err) // a gate that cannot record it stays shut
	return err
}

// failed records that no answer came, and says so to the program.
func (s *sending) failed(err error) error {
	if recorded := s.done(err); recorded != nil {
		err = recorded
	}
	return s.p.refusal(err)
}

func (s *sending) done(err error) (recorded error) {
	s.once.Do(func() {
		if s.x != nil {
			s.x.end()
		}
		s.cancel()
		h := s.p.h
		h.remark, h.consent = s.consent, ""
		if s.status >= 400 {
			h.remark = fmt.Sprintf("answered %d", s.status)
		}
		recorded = h.concluded(s.p.send, s.start, &audit.Event{Bytes: s.passed}, err)
	})
	return recorded
}
