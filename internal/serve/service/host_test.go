package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

// A host does what a test tells it.
type host struct {
	check  func(*service.Request) error
	launch func(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error)
	log    service.Log
}

func (h *host) Check(_ context.Context, _ *service.Caller, q *service.Request) error {
	if h.check != nil {
		return h.check(q)
	}
	return nil
}

func (h *host) Launch(ctx context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report,
	error,
) {
	if h.launch == nil {
		return report(c.Tenant, q, b, launcher.OK), nil
	}
	r, err := h.launch(ctx, q, b)
	if r != nil {
		r.Tenant = c.Tenant
	}
	return r, err
}

func (h *host) Log(_ context.Context, c *service.Caller) (service.Log, error) {
	if h.log == nil {
		return nil, errors.New("this host has no log")
	}
	if l, is := h.log.(logs); is {
		return l[c.Tenant], nil
	}
	return h.log, nil
}

func (h *host) Surface(context.Context, *service.Caller, service.Door) (*service.Surface, error) {
	return nil, errors.New("not asked for")
}

func (h *host) Agents(context.Context, *service.Caller) ([]service.Agent, error) {
	return nil, errors.New("not asked for")
}

func (h *host) Ask(context.Context, *service.Caller, []byte, ...string) ([]byte, error) {
	return nil, errors.New("not asked for")
}

// logs are one for each tenant.
type logs map[string]service.Log

func (logs) Audit(context.Context, kb.Filter) iter.Seq2[audit.Record, error] { panic("of no tenant") }

func (logs) Lines(context.Context, kb.Filter) iter.Seq2[[]byte, error] { panic("of no tenant") }

func (logs) Head(context.Context) (kb.Head, error) { panic("of no tenant") }

func (logs) Runs(context.Context, kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	panic("of no tenant")
}

func report(tenant string, q *service.Request, b service.Begin, o launcher.Outcome) *launcher.Report {
	return &launcher.Report{
		RunID: b.RunID, TraceID: q.TraceID, Tenant: tenant, Agent: q.Agent, Version: "1.0.0",
		Outcome: o,
	}
}

const every = service.Launch | service.Read | service.Operate

func caller(name, tenant string) *service.Caller {
	return &service.Caller{Name: name, Tenant: tenant, May: every}
}

func ask(agent string) *service.Request {
	return &service.Request{Door: service.HTTP, Agent: agent, Input: json.RawMessage(`{}`)}
}

// serve makes a service; what is zero in o is for tests.
func serve(h *host, o service.Options) *service.Service {
	o.Host = h
	if o.Now == nil {
		o.Now = time.Now
	}
	return service.New(o)
}

func submit(t testing.TB, s *service.Service, c *service.Caller, q *service.Request) *service.Run {
	t.Helper()
	r, err := s.Submit(context.Background(), c, q, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ended(t testing.TB, r *service.Run) service.State {
	t.Helper()
	select {
	case <-r.Done():
	case <-time.After(time.Minute):
		t.Fatalf("run %s is %s after a minute", r.ID(), r.State().State)
	}
	return r.State()
}

// A stage is where launches stand until a test lets them go on.
type stage struct {
	mu      sync.Mutex
	order   []string // of agents, as they began
	begun   chan string
	release chan struct{}
}

func newStage() *stage { return &stage{begun: make(chan string, 4096), release: make(chan struct{})} }

// launch waits for the test, or to be cancelled.
func (p *stage) launch(ctx context.Context, q *service.Request, b service.Begin) (*launcher.Report, error) {
	p.mu.Lock()
	p.order = append(p.order, q.Agent)
	p.mu.Unlock()
	p.begun <- q.Agent
	select {
	case <-p.release:
		return report("", q, b, launcher.OK), nil
	case <-ctx.Done():
		if !errors.Is(context.Cause(ctx), context.Canceled) { // as launches tell it from what breaks them
			return nil, context.Cause(ctx)
		}
		return report("", q, b, launcher.Cancelled), nil
	}
}

func (p *stage) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.order, " ")
}
