package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// A fakeHost does runs by the name of the agent, and notes what it was asked.
type fakeHost struct {
	mu      sync.Mutex
	agents  map[string][]service.Agent // by tenant
	says    json.RawMessage            // the result of the agent says
	records map[string][]audit.Record  // by tenant
	asked   []string
	inputs  []string
	begun   chan string // ids of runs of "slow"
	ended   chan string
	tick    func() // before each record of "flood"
}

func newFake() *fakeHost {
	f := &fakeHost{agents: map[string][]service.Agent{}, records: map[string][]audit.Record{}, begun: make(chan string,
		100), ended: make(chan string, 100)}
	for _, name := range []string{"denied", "echo", "flood", "list", "loud", "printer", "refused", "slow", "trap"} {
		f.install("acme", service.Agent{
			Name: name, Version: "1.0.0", Description: "does " + name, Signature: "unsigned",
			ReadOnly: true,
		})
	}
	f.install("other", service.Agent{Name: "secretive", Version: "1.0.0"})
	return f
}

func (f *fakeHost) install(tenant string, a service.Agent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.agents[tenant] = append(f.agents[tenant], a)
	slices.SortFunc(f.agents[tenant], func(a, b service.Agent) int { return strings.Compare(a.Name, b.Name) })
}

func (f *fakeHost) remove(tenant, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.agents[tenant] = slices.DeleteFunc(slices.Clone(f.agents[tenant]), func(a service.Agent) bool {
		return a.Name == name
	})
}

func (f *fakeHost) Agents(_ context.Context, c *service.Caller) ([]service.Agent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.agents[c.Tenant]), nil
}

func (f *fakeHost) Check(ctx context.Context, c *service.Caller, r *service.Request) error {
	list, _ := f.Agents(ctx, c)
	if !slices.ContainsFunc(list, func(a service.Agent) bool { return a.Name == r.Agent }) {
		return fmt.Errorf("no agent %s is installed: %w", r.Agent, service.ErrNotFound)
	}
	if r.Door != service.MCP {
		return service.FieldErrors{{Field: "door", Why: "a test asks through MCP"}}
	}
	return nil
}

// record puts a record into the log, and tells it.
func (f *fakeHost) record(c *service.Caller, b service.Begin, agent string, n uint64, d *audit.DecisionRecord,
	e *audit.Event,
) {
	f.mu.Lock()
	list := f.records[c.Tenant]
	r := audit.Record{
		Seq: uint64(len(list)) + 1, RunSeq: n, Time: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), Kept: true, Decision: d,
		Event: e,
		Head:  audit.Head{RunID: b.RunID, TraceID: strings.Repeat("ab", 16), Tenant: c.Tenant, Agent: agent},
	}
	f.records[c.Tenant] = append(list, r)
	f.mu.Unlock()
	b.Record(&r)
}

func denials() []audit.DecisionRecord {
	return []audit.DecisionRecord{
		{
			Cap: "fs.read", Op: "path_open", Target: "/etc/passwd", Deny: true, Reason: "cap_missing",
			Layer: "profile:mcp_default",
		},
		{
			Cap: "fs.read", Op: "path_open", Target: "/etc/passwd", Deny: true, Reason: "cap_missing",
			Layer: "profile:mcp_default",
		},
		{Cap: "net.get", Op: "net_http", Target: "https://evil.example/", Deny: true, Reason: "cap_missing", Layer: "base"},
	}
}

func (f *fakeHost) Launch(ctx context.Context, c *service.Caller, q *service.Request,
	b service.Begin,
) (*launcher.Report, error) {
	f.mu.Lock()
	f.inputs = append(f.inputs, string(q.Input))
	f.mu.Unlock()
	r := &launcher.Report{RunID: b.RunID, TraceID: q.TraceID, Tenant: c.Tenant, Agent: q.Agent, Outcome: launcher.OK}
	f.record(c, b, q.Agent, 1, nil, &audit.Event{Kind: audit.KindRunStart})
	n := uint64(1)
	switch q.Agent {
	case "denied":
		for _, d := range denials() {
			n++
			f.record(c, b, q.Agent, n, &d, nil)
			r.Usage.Denied++
		}
		r.Result = json.RawMessage(`{"got":"little"}`)
	case "clock":
		f.record(c, b, q.Agent, 2, &audit.DecisionRecord{
			Cap: "time.now", Op: "clock_time_get", Deny: true, Severity: audit.Warn,
			Reason: "cap_missing",
		}, nil)
		n, r.Usage.Denied = 2, 1
	case "flood":
		for range 10_000 {
			n++
			f.tick()
			f.record(c, b, q.Agent, n, &audit.DecisionRecord{
				Cap: "fs.read", Op: "path_open", Target: fmt.Sprint("/", n),
				Deny: true, Reason: "cap_missing",
			}, nil)
			r.Usage.Denied++
		}
	case "list":
		r.Result = json.RawMessage(`[1,2]`)
	case "loud":
		r.Result, _ = json.Marshal(strings.Repeat("é", 3<<20))
	case "says":
		r.Result, r.Stdout = f.says, "\x1b[2J\u202eprinted"
	case "printer":
		r.Stdout = strings.Repeat("x", 10_000) + "the end"
		r.Usage.StdoutBytes = int64(len(r.Stdout))
	case "printing":
		var say struct{ Print string }
		if err := json.Unmarshal(q.Input, &say); err != nil {
			return nil, err
		}
		r.Stdout, r.Stderr, r.Outcome, r.ExitCode, r.Message = say.Print, say.Print, launcher.Exit, 3, say.Print
	case "refused":
		f.record(c, b, q.Agent, 2, nil, &audit.Event{Kind: audit.KindPolicyRejected, Outcome: "refused"})
		return nil, &service.ViolationError{
			RunID: b.RunID, TraceID: q.TraceID,
			Warnings: []string{"there is no adapter \"cor\""}, Violations: []launcher.Violation{
				{Message: "it calls net_http, and nothing of the family net is left", Capability: "net:*", Layer: "mcp_default"},
				{Message: "it calls kb_put, and nothing of kb_write is left", Capability: "kb:write:*", Layer: "token:ci"},
			},
		}
	case "slow":
		f.begun <- b.RunID
		<-ctx.Done()
		r.Outcome, r.ExitCode = launcher.Cancelled, launcher.StatusCancelled
		defer func() { f.ended <- b.RunID }()
	case "trap":
		r.Outcome, r.ExitCode, r.Message, r.Stderr = launcher.Trap, 1, "unreachable", "it broke\n"
	case "broken":
		return nil, errors.New("a path of the host: /home/operator/x")
	default:
		r.Result = json.RawMessage(q.Input)
	}
	f.record(c, b, q.Agent, n+1, nil, &audit.Event{Kind: audit.KindRunComplete, Outcome: string(r.Outcome)})
	return r, nil
}

func (f *fakeHost) Log(_ context.Context, c *service.Caller) (service.Log, error) {
	return &fakeLog{f, c.Tenant}, nil
}

func (f *fakeHost) Surface(context.Context, *service.Caller, service.Door) (*service.Surface, error) {
	return &service.Surface{Grant: "mcp_default"}, nil
}

func (f *fakeHost) Explain(_ context.Context, c *service.Caller, agent string, q ask.Query) (*ask.Explanation, error) {
	f.note(fmt.Sprintf("%s explain %s %s run=%s at=%d", c.Tenant, agent, q.Text, q.Run, q.At))
	if agent == "long" {
		return &ask.Explanation{Decision: "deny", Hidden: []string{strings.Repeat("x", 1<<20)}}, nil
	}
	if !slices.ContainsFunc(f.agents[c.Tenant], func(a service.Agent) bool { return a.Name == agent }) {
		return nil, service.ErrNotFound
	}
	return &ask.Explanation{Decision: "deny", Edits: []ask.Edit{{Text: "add it"}}}, nil
}

func (f *fakeHost) Search(_ context.Context, c *service.Caller, q kb.Query) ([]ask.Hit, error) {
	f.note(fmt.Sprintf("%s search %s %s k=%d raw=%t", c.Tenant, q.Domain, q.Text, q.K, q.Raw))
	if q.Domain == "nowhere" {
		return nil, &ask.Error{Err: errors.New("there is no such domain")}
	}
	return []ask.Hit{{Key: "a", Score: 1.5, Snippet: strings.Repeat("long ", 1000), Label: "untrusted"}}, nil
}

func (f *fakeHost) note(asked string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, asked)
}

func (f *fakeHost) lastAsked() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[len(f.asked)-1]
}

type fakeLog struct {
	host   *fakeHost
	tenant string
}

func (l *fakeLog) Audit(_ context.Context, q kb.Filter) iter.Seq2[audit.Record, error] {
	if q.Agent == "breaks" {
		panic("a secret of the record")
	}
	l.host.mu.Lock()
	all := slices.Clone(l.host.records[l.tenant])
	l.host.mu.Unlock()
	all = slices.DeleteFunc(all, func(r audit.Record) bool {
		return q.Run != "" && r.Head.RunID != q.Run || q.Agent != "" && r.Head.Agent != q.Agent || q.Decision == "deny" &&
			!r.Denied() || r.Seq <= q.After
	})
	if q.Limit > 0 && len(all) > q.Limit {
		all = all[len(all)-q.Limit:]
	}
	return func(yield func(audit.Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (l *fakeLog) Lines(context.Context, kb.Filter) iter.Seq2[[]byte, error] {
	return func(func([]byte, error) bool) {}
}

func (l *fakeLog) Head(context.Context) (kb.Head, error) { return kb.Head{}, nil }

func (l *fakeLog) Runs(_ context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	l.host.mu.Lock()
	byID := map[string]*kb.RunSummary{}
	for _, r := range l.host.records[l.tenant] {
		if byID[r.Head.RunID] == nil {
			byID[r.Head.RunID] = &kb.RunSummary{
				RunID: r.Head.RunID, Agent: r.Head.Agent, BeganMS: r.Time.UnixMilli(),
				EndedMS: r.Time.UnixMilli(), End: "run.complete", Outcome: "ok",
			}
		}
	}
	l.host.mu.Unlock()
	var list []kb.RunSummary
	for id, s := range byID {
		if q.Before == "" || id < q.Before {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b kb.RunSummary) int { return strings.Compare(b.RunID, a.RunID) })
	return func(yield func(kb.RunSummary, error) bool) {
		for i, s := range list {
			if q.Limit > 0 && i == q.Limit || !yield(s, nil) {
				return
			}
		}
	}
}

// drained ends a service, and holds that it has nothing left.
func drained(t *testing.T, s *service.Service) {
	t.Helper()
	if err := s.Drain(context.Background()); err != nil {
		t.Errorf("draining: %v", err)
	}
}
