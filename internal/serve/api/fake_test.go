package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

// A host does what a test tells it.
type host struct {
	log    *log
	away   error // why it shows nothing
	agents []service.Agent
	check  func(*service.Request) error
	launch func(context.Context, *service.Caller, *service.Request, service.Begin) (*launcher.Report, error)
}

func (h *host) Check(_ context.Context, _ *service.Caller, q *service.Request) error {
	switch {
	case h.check != nil:
		return h.check(q)
	case q.Agent == "" && q.Bundle == nil && q.Reference == "":
		return service.FieldErrors{{Field: "agent", Why: "is missing"}}
	case q.Agent == "unknown":
		return fmt.Errorf("no agent unknown is installed: %w", service.ErrNotFound)
	}
	return nil
}

func (h *host) Launch(ctx context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report,
	error,
) {
	if h.launch == nil {
		return reportOf(c, q, b, launcher.OK), nil
	}
	return h.launch(ctx, c, q, b)
}

func (h *host) Log(_ context.Context, c *service.Caller) (service.Log, error) {
	if h.away != nil {
		return nil, h.away
	}
	if c.Tenant != "default" {
		return &log{}, nil
	}
	return h.log, nil
}

func (h *host) Surface(_ context.Context, _ *service.Caller, d service.Door) (*service.Surface, error) {
	if h.away != nil {
		return nil, h.away
	}
	return &service.Surface{
		SchemaVersion: "1", Grant: string(d) + "_default", Layers: []string{"protected"},
		Limits: map[string]int64{"max_steps": 2000},
		Families: []service.SurfaceFamily{
			{
				Name: "fs", Category: "fs", Tier: "local_state", Effects: []string{"io-read", "io-write"}, EffectDefault: "io-read",
				Destructive: true, Verbs: []string{}, TakenBy: "runner_default",
			},
			{
				Name: "time", Category: "core", Tier: "pure", Effects: []string{"pure"}, EffectDefault: "pure", SandboxSafe: true,
				Available: true, Verbs: []string{"time_now"},
			},
		},
	}, nil
}

func (h *host) Agents(context.Context, *service.Caller) ([]service.Agent, error) {
	if h.away != nil {
		return nil, h.away
	}
	if h.agents != nil {
		return h.agents, nil
	}
	return []service.Agent{{
		Name: "notes_digest", Version: "1.0.0", Signature: "unsigned",
		InputSchema: []byte(`{"type":"object"}`),
	}}, nil
}

func (h *host) Ask(context.Context, *service.Caller, []byte, ...string) ([]byte, error) {
	return nil, errors.New("not asked for")
}

func reportOf(c *service.Caller, q *service.Request, b service.Begin, o launcher.Outcome) *launcher.Report {
	return &launcher.Report{
		RunID: b.RunID, TraceID: q.TraceID, Tenant: c.Tenant, Agent: q.Agent, Version: "1.0.0", Outcome: o, Base: []string{},
		Effective: []string{}, Changes: []launcher.Change{},
		Limits: map[string]int64{"max_steps": 2000}, Generation: 1,
		Usage: launcher.Usage{Families: map[string]launcher.FamilyUsage{}}, Result: json.RawMessage(`{"sum":3}`),
	}
}

// A log is records in memory, as a store would give them.
type log struct {
	mu      sync.Mutex
	records []audit.Record
	fail    error
	breaks  bool
}

func (l *log) Audit(_ context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		l.mu.Lock()
		all := slices.Clone(l.records)
		l.mu.Unlock()
		if l.fail != nil {
			yield(audit.Record{}, l.fail)
			return
		}
		if l.breaks && f.AfterOfRun > 0 {
			panic("a secret of the record")
		}
		n := 0
		for _, r := range all {
			if r.Seq <= f.After || f.Run != "" && (r.Head.RunID != f.Run || r.RunSeq <= f.AfterOfRun) || f.Agent != "" &&
				r.Head.Agent != f.Agent || r.Time.UnixMilli() < f.SinceMS ||
				f.Decision != "" && (r.Decision == nil || r.Decision.Deny != (f.Decision == "deny")) || f.Cap != "" &&
				(r.Decision == nil || !strings.HasPrefix(r.Decision.Cap, f.Cap)) {
				if f.Search != nil && r.Seq > f.After && !f.Search.Looked(r.Seq) {
					return
				}
				continue
			}
			if n++; f.Limit > 0 && n > f.Limit || !yield(r, nil) {
				return
			}
		}
	}
}

func (l *log) Lines(ctx context.Context, f kb.Filter) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for r, err := range l.Audit(ctx, f) {
			var line []byte
			if err == nil {
				line, err = r.AppendJSON(nil)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

func (l *log) Head(context.Context) (kb.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return kb.Head{Size: uint64(len(l.records)), Root: [32]byte{1}}, l.fail
}

func (l *log) Runs(_ context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	l.mu.Lock()
	byID := map[string]*kb.RunSummary{}
	for _, r := range l.records {
		s := byID[r.Head.RunID]
		if s == nil {
			s = &kb.RunSummary{
				RunID: r.Head.RunID, Agent: r.Head.Agent, TraceID: r.Head.TraceID, BeganMS: r.Time.UnixMilli(),
				First: r.Seq,
			}
			byID[s.RunID] = s
		}
		s.Records = r.RunSeq
		if audit.Ends(r.Kind()) {
			s.End, s.EndedMS, s.Outcome = r.Kind(), r.Time.UnixMilli(), r.Event.Outcome
		}
	}
	l.mu.Unlock()
	return func(yield func(kb.RunSummary, error) bool) {
		var list []*kb.RunSummary
		for _, s := range byID {
			if (q.Before == "" || s.RunID < q.Before) && (q.Agent == "" || s.Agent == q.Agent) {
				list = append(list, s)
			}
		}
		slices.SortFunc(list, func(a, b *kb.RunSummary) int { return strings.Compare(b.RunID, a.RunID) })
		for i, s := range list {
			if q.Limit > 0 && i >= q.Limit || !yield(*s, nil) {
				return
			}
		}
	}
}

// add records a run of n decisions, each second one denied, and its end.
func (l *log) add(run string, n int) {
	head := audit.Head{RunID: run, TraceID: strings.Repeat("ab", 16), Tenant: "default", Agent: "notes_digest"}
	put := func(r audit.Record) { l.put(head, r) }
	put(audit.Record{Event: &audit.Event{Kind: audit.KindRunStart}})
	for i := range n {
		put(audit.Record{Decision: &audit.DecisionRecord{
			Cap: "fs.read", Op: "fs_read", Target: "/x", Deny: i%2 == 1,
			Reason: "granted",
		}})
	}
	put(audit.Record{Event: &audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}})
}

func (l *log) put(head audit.Head, r audit.Record) audit.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Seq, r.Head, r.Time, r.Kept, r.RunSeq = uint64(len(l.records))+1, head, time.UnixMilli(1_800_000_000_000+
		int64(len(l.records))).UTC(), true, 1
	for i := len(l.records) - 1; i >= 0; i-- {
		if l.records[i].Head.RunID == head.RunID {
			r.RunSeq = l.records[i].RunSeq + 1
			break
		}
	}
	l.records = append(l.records, r)
	return r
}

// A door lets in whoever says their name: tests have nobody to keep out.
type door map[string]*service.Caller

func (d door) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Who") == "breaks" {
			panic("broken")
		}
		if c := d[r.Header.Get("X-Who")]; c != nil {
			r = r.WithContext(service.WithCaller(r.Context(), c))
		}
		next.ServeHTTP(w, r)
	})
}

const all = service.Launch | service.Read | service.Operate

func callers() door {
	return door{
		"":         {Name: "user:1", Tenant: "default", May: all, EveryTenant: true},
		"reader":   {Name: "token:reader", Tenant: "default", May: service.Read},
		"launcher": {Name: "token:launcher", Tenant: "default", May: service.Launch},
		"other":    {Name: "token:other", Tenant: "other", May: all},
		"nobody":   {},
	}
}

// A kit is a service that listens.
type kit struct {
	*httptest.Server
	t       testing.TB
	host    *host
	service *service.Service
}

func serve(t testing.TB, h *host, o Options, so service.Options) *kit {
	t.Helper()
	k := &kit{t: t, host: h}
	var handler http.Handler
	handler, k.service = handlerOf(h, o, so)
	k.Server = httptest.NewServer(handler)
	t.Cleanup(k.Close)
	return k
}

// handlerOf is all of it without a network.
func handlerOf(h *host, o Options, so service.Options) (http.Handler, *service.Service) {
	if h.log == nil {
		h.log = &log{}
	}
	so.Host, so.Now = h, time.Now
	if so.Workers == 0 {
		so.Workers = 4
	}
	o.Service, o.Host, o.Access = service.New(so), h, callers()
	if o.Now == nil {
		o.Now = time.Now
	}
	return Handler(o), o.Service
}

// An ask is a request of a test.
type ask struct {
	method, path, body string
	head               []string // "Name: value"
}

func (k *kit) request(ctx context.Context, a ask) *http.Request {
	k.t.Helper()
	if a.method == "" {
		a.method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, a.method, k.URL+a.path, strings.NewReader(a.body))
	if err != nil {
		k.t.Fatal(err)
	}
	if a.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, line := range a.head {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// do asks, and returns the answer with its body read.
func (k *kit) do(a ask) (*http.Response, string) {
	k.t.Helper()
	resp, err := k.Client().Do(k.request(context.Background(), a))
	if err != nil {
		k.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return resp, string(body)
}

// run posts a body to /run.
func (k *kit) run(body string, head ...string) (int, map[string]any) {
	k.t.Helper()
	resp, text := k.do(ask{http.MethodPost, "/run", body, head})
	return resp.StatusCode, object1(k.t, text)
}

func object1(t testing.TB, text string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	return v
}

func violated(run string) error {
	return &service.ViolationError{RunID: run, TraceID: strings.Repeat("ab", 16), Violations: []launcher.Violation{
		{Code: caps.CapMissing, Message: "runner_default took it", Capability: "fs:read:/x", Layer: "runner_default"},
		{Code: caps.CapMissing, Message: "request took it", Capability: "net:x.example:443", Layer: "request"},
	}}
}
