package console

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
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
	"runloop.dev/rlp/launcher/ask"
)

// now is the time of every page in tests.
var now = time.Date(2026, 11, 22, 21, 30, 0, 0, time.UTC)

func clockOfTests() time.Time { return now }

// runID is a run id that sorts by n.
func runID(n int) string {
	at := now.Add(-time.Duration(1_000_000-n) * time.Second).UnixMilli()
	return fmt.Sprintf("%08x-%04x-7a%02x-8c2d-%012x", at>>16, at&0xffff, n%256, n)
}

// A fakeLog is records in memory, as a store would give them.
type fakeLog struct {
	mu      sync.Mutex
	records []audit.Record
	runs    []kb.RunSummary // the newest first
}

func (l *fakeLog) Audit(_ context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		for _, r := range l.matching(f) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (l *fakeLog) matching(f kb.Filter) []audit.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []audit.Record
	for _, r := range l.records {
		decision := "allow"
		if r.Denied() {
			decision = "deny"
		}
		switch {
		case f.Run != "" && r.Head.RunID != f.Run, f.Agent != "" && r.Head.Agent != f.Agent, r.Seq <= f.After,
			r.Time.UnixMilli() < f.SinceMS:
		case f.Decision != "" && (r.Decision == nil || decision != f.Decision):
		case f.Cap != "" && (r.Decision == nil || r.Decision.Cap != f.Cap && !strings.HasPrefix(r.Decision.Cap, f.Cap+".")):
		default:
			list = append(list, r)
		}
	}
	if f.Limit > 0 && len(list) > f.Limit {
		list = list[len(list)-f.Limit:]
	}
	return list
}

func (l *fakeLog) Lines(_ context.Context, f kb.Filter) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for range l.matching(f) {
			if !yield([]byte("{}"), nil) {
				return
			}
		}
	}
}

func (l *fakeLog) Head(context.Context) (kb.Head, error) {
	return kb.Head{Size: uint64(len(l.records)), Root: [32]byte{0xea, 0x8a, 0x1c}}, nil
}

func (l *fakeLog) Runs(_ context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	return func(yield func(kb.RunSummary, error) bool) {
		n := 0
		for _, s := range l.runs {
			if q.Before != "" && s.RunID >= q.Before || q.Agent != "" && s.Agent != q.Agent {
				continue
			}
			if n++; q.Limit > 0 && n > q.Limit || !yield(s, nil) {
				return
			}
		}
	}
}

// add appends the records of one run, and what they come to.
func (l *fakeLog) add(run, agent string, began time.Time, decisions []audit.DecisionRecord, end audit.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := audit.Head{
		RunID: run, TraceID: "c1794453bf3e4f838760209632c4c693", Tenant: "default", Agent: agent,
		BundleDigest: strings.Repeat("2e8e442a", 8), EffectiveDigest: strings.Repeat("b1818dde", 8),
	}
	at, seq := began, uint64(0)
	first := uint64(len(l.records)) + 1
	put := func(r audit.Record) {
		seq++
		r.Seq, r.RunSeq, r.Time, r.Head, r.Kept = uint64(len(l.records))+1, seq, at, head, true
		l.records = append(l.records, r)
	}
	s := kb.RunSummary{RunID: run, Agent: agent, BeganMS: began.UnixMilli(), First: first, TraceID: head.TraceID}
	put(audit.Record{Event: &audit.Event{Kind: audit.KindRunStart, Effective: heldByNotes()}})
	for _, d := range decisions {
		at = at.Add(7 * time.Millisecond)
		put(audit.Record{Decision: &d})
		if s.Allowed++; d.Deny {
			s.Allowed--
			s.Denied++
			continue
		}
		if strings.HasPrefix(d.Op, "kb_") {
			at = at.Add(9 * time.Millisecond)
			put(audit.Record{Event: &audit.Event{Kind: audit.KindCallDone, Verb: d.Op, Status: "ok", DurationMS: 9.2, Bytes: 2}})
		}
	}
	if end.Kind != "" {
		if at = at.Add(20 * time.Millisecond); end.Outcome == "timeout" {
			at = began.Add(30 * time.Second)
		}
		end.Usage = map[string]int64{"allowed": s.Allowed, "denied": s.Denied, "wall_ms": at.Sub(began).Milliseconds()}
		put(audit.Record{Event: &end})
		s.EndedMS, s.End, s.Outcome, s.Message, s.ExitCode = at.UnixMilli(), end.Kind, end.Outcome, end.Message, end.ExitCode
	}
	s.Records = seq
	l.runs = slices.Insert(l.runs, 0, s)
}

func heldByNotes() []string {
	return []string{
		"fs:read:/home/mara/notes", "fs:read:/home/mara/out", "fs:write:/home/mara/out", "kb:write:artifacts",
		"kb:write:contacts", "model:use:local",
	}
}

func allowed(capability, op, target string) audit.DecisionRecord {
	return audit.DecisionRecord{Cap: capability, Op: op, Target: target, Reason: "granted"}
}

func denied(capability, op, target, reason, layer string) audit.DecisionRecord {
	return audit.DecisionRecord{
		Cap: capability, Op: op, Target: target, Deny: true, Severity: audit.Warn, Reason: reason,
		Layer: layer,
	}
}

// aDay fills l with what agents of an office do in a day.
func aDay(l *fakeLog) {
	for i := range 60 {
		began := now.Add(-time.Duration(60-i) * 11 * time.Minute)
		switch agent := []string{"notes_digest", "tree_audit", "mail_writer", "repo_janitor"}[i%4]; {
		case i%13 == 7:
			l.add(runID(i), agent, began, []audit.DecisionRecord{allowed("fs.read", "path_open", "/home/mara/notes")},
				audit.Event{
					Kind: audit.KindRunFailed, Outcome: "timeout", ExitCode: 124,
					Message: "it ran for longer than its 30 s",
				})
		case i%17 == 11:
			l.add(runID(i), agent, began, nil, audit.Event{
				Kind: audit.KindPolicyRejected, Outcome: "policy_rejected",
				ExitCode: 77, Message: "net is all that it works with, and nothing of it is left",
			})
		case agent == "tree_audit":
			l.add(runID(i), agent, began, []audit.DecisionRecord{
				allowed("fs.read", "path_open", "/home/mara/notes"),
				allowed("fs.read", "path_open", "/home/mara/notes/talks.md"),
			}, audit.Event{
				Kind:    audit.KindRunComplete,
				Outcome: "ok",
			})
		default:
			l.add(runID(i), agent, began, digestOfNotes(), audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
		}
	}
}

func digestOfNotes() []audit.DecisionRecord {
	return []audit.DecisionRecord{
		denied("time.now", "clock_time_get", "", "cap_missing", ""),
		allowed("fs.read", "path_open", "/home/mara/notes"),
		allowed("fs.read", "path_open", "/home/mara/notes/inbox/forwarded.md"),
		denied("fs.read", "path_open", "/home/mara/private/salary.md", "path_not_permitted", ""),
		denied("fs.read", "path_open", "/etc/hostname", "path_not_permitted", ""),
		allowed("fs.read", "path_open", "/home/mara/notes/talks.md"),
		denied("fs.write", "path_open", "/home/mara/out/digest.md", "path_not_permitted", "override:notes_digest.toml"),
		allowed("kb.write", "kb_put", "contacts/ines@lighthouse.example"),
		allowed("kb.write", "kb_put", "contacts/pieter@lighthouse.example"),
		allowed("kb.write", "kb_put", "artifacts/digest"),
	}
}

// A fakeHost answers as rlp does, and notes what it was asked.
type fakeHost struct {
	service.Host
	t        testing.TB
	log      *fakeLog
	mu       sync.Mutex
	answers  answers
	errs     map[string]error // by the name of the question
	asked    []string         // the names of questions
	about    []ask.Query
	trials   []ask.Trial
	pictured bool // explanations fit what is asked about
	launch   func(context.Context, *service.Request, service.Begin) (*launcher.Report, error)
	agents   []service.Agent // nil: a few
	changed  []ask.ChangedServer
}

// answers are what a host says; each page gets copies.
type answers struct {
	Explanation ask.Explanation
	Verify      ask.Verification
	Inspect     ask.Inspection
	Show        ask.Holding
	Lanes       ask.LaneSurvey
	Suggest     ask.Suggestion
	Override    ask.Override // what is there
	Change      ask.Override // what is tried
	WhatIf      ask.Forecast
}

func newFakeHost(t testing.TB) *fakeHost {
	h := &fakeHost{t: t, log: &fakeLog{}, errs: map[string]error{}}
	h.answers.Explanation, h.answers.WhatIf = explained(), forecast()
	for file, into := range map[string]any{
		"verify": &h.answers.Verify, "inspect": &h.answers.Inspect, "show": &h.answers.Show, "lanes": &h.answers.Lanes,
		"suggest": &h.answers.Suggest, "override": &h.answers.Override, "change": &h.answers.Change,
	} {
		data, err := os.ReadFile(filepath.Join("testdata", file+".json"))
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// explained is why the digest was not written.
func explained() ask.Explanation {
	at := caps.Pos{File: "/home/mara/.runloop/caps/overrides/notes_digest.toml", Line: 2, Column: 9}
	const layer, what = "override:notes_digest.toml", `fs_rw = ["/home/mara/out/digest.md"]`
	return ask.Explanation{
		Explanation: caps.Explanation{
			Asked: "fs:write:/home/mara/out/digest.md", Code: caps.PathNotPermitted, Scope: "/home/mara/out",
			Votes: []caps.Vote{{Layer: "base", Allow: true}, {Layer: layer, Pos: at}},
		},
		Decision: "deny", Layer: layer, Kind: "file, tier local_state, effects io-write", Verified: true,
		Edits: []ask.Edit{{Layer: layer, Do: "add", What: what, Source: at, Text: "add to line 2 of " + at.File + ": " +
			what}},
		Past: &ask.Past{
			Run: "01a20578-71c5-768a-a45b-926af6d65077", At: 26,
			Asked: []ask.AskedThen{{RunSeq: 26, Op: "path_open", Decision: "deny", Reason: "path_not_permitted", Layer: layer}},
		},
	}
}

// forecast is what another override would have blocked.
func forecast() ask.Forecast {
	const layer, first = "override:-", "01a20578-2321-74ed-a632-6d069315c67f"
	return ask.Forecast{
		Candidates: []string{layer}, Decisions: ask.Tally{Blocked: 4, Denied: 8, Stay: 74}, Runs: 2, Blocking: 2,
		Blocked: []ask.Block{
			{
				Cap: "kb.write", Op: "kb_put", Target: "artifacts/notes_digest", Count: 2, Runs: 2, Layer: layer,
				Reason: "domain_not_permitted", First: ask.First{Run: first, RunSeq: 60, Seq: 60},
			},
			{
				Cap: "fs.write", Op: "path_open", Target: "/home/mara/out/digest.md", Count: 1, Runs: 1, Layer: layer,
				Reason: "path_not_permitted", First: ask.First{Run: first, RunSeq: 26, Seq: 26},
			},
			{
				Cap: "fs.write", Op: "path_open", Target: "/home/mara/out/digest.json", Count: 1, Runs: 1, Layer: layer,
				Reason: "path_not_permitted", First: ask.First{Run: first, RunSeq: 27, Seq: 27},
			},
		},
	}
}

// said notes a question, and answers it with a copy of v.
func said[A any](h *fakeHost, question string, v *A) (*A, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, question)
	if err := h.errs[question]; err != nil {
		return nil, err
	}
	told := *v
	return &told, nil
}

func (h *fakeHost) Inspect(_ context.Context, _ *service.Caller, agent string) (*ask.Inspection, error) {
	return said(h, "inspect "+agent, &h.answers.Inspect)
}

func (h *fakeHost) Holding(_ context.Context, _ *service.Caller, agent string) (*ask.Holding, error) {
	return said(h, "holding "+agent, &h.answers.Show)
}

func (h *fakeHost) Explain(_ context.Context, _ *service.Caller, agent string, q ask.Query) (*ask.Explanation, error) {
	h.about = append(h.about, q)
	e, err := said(h, "explain "+agent, &h.answers.Explanation)
	if err == nil && h.pictured && strings.Contains(q.Text, "/private/") { // which the agent's own policy does not ask for
		e.Asked, e.Scope, e.Votes = q.Text, "", []caps.Vote{{Layer: "base"}}
		e.Layer, e.Edits, e.Verified = "base", nil, false
	}
	return e, err
}

func (h *fakeHost) Override(_ context.Context, _ *service.Caller, agent string) (*ask.Override, error) {
	return said(h, "override "+agent, &h.answers.Override)
}

func (h *fakeHost) TryOverride(_ context.Context, _ *service.Caller, agent string, t ask.Trial) (*ask.Override, error) {
	h.trials = append(h.trials, t)
	if t.Save { // it is what is there from now on
		h.answers.Override.Digest = digestSaved
	}
	return said(h, "try "+agent, &h.answers.Change)
}

func (h *fakeHost) WhatIf(_ context.Context, _ *service.Caller, agent string, _ []byte) (*ask.Forecast, error) {
	return said(h, "whatif "+agent, &h.answers.WhatIf)
}

func (h *fakeHost) Suggest(_ context.Context, _ *service.Caller, agent string) (*ask.Suggestion, error) {
	return said(h, "suggest "+agent, &h.answers.Suggest)
}

func (h *fakeHost) ChangedServers(context.Context, *service.Caller) ([]ask.ChangedServer, error) {
	return h.changed, nil
}

func (h *fakeHost) Verify(context.Context, *service.Caller) (*ask.Verification, error) {
	return said(h, "verify", &h.answers.Verify)
}

func (h *fakeHost) Lanes(context.Context, *service.Caller) (*ask.LaneSurvey, error) {
	return said(h, "lanes", &h.answers.Lanes)
}

// The digests of the override that is there, and of what takes its place, in
// testdata.
const (
	digestBefore = "4d81c237520fcc77132cc3246cbe96a8d8f4d62f770193819a4090953c71b0fd"
	digestSaved  = "6caff75be05f2b4c2038511351f1450f9ebbe63d1075ed3b91eb1e3526a51561"
)

func (h *fakeHost) Log(context.Context, *service.Caller) (service.Log, error) { return h.log, nil }

func (h *fakeHost) Agents(ctx context.Context, c *service.Caller) ([]service.Agent, error) {
	return h.SomeAgents(ctx, c, service.AgentQuery{})
}

func (h *fakeHost) SomeAgents(_ context.Context, _ *service.Caller, q service.AgentQuery) ([]service.Agent, error) {
	list := slices.Clone(h.agents)
	if h.agents == nil {
		list = fewAgents()
	}
	list = slices.DeleteFunc(list, func(a service.Agent) bool {
		return q.Name != "" && a.Name != q.Name ||
			a.Name <= q.After
	})
	if q.Limit > 0 {
		list = list[:min(len(list), q.Limit)]
	}
	return list, nil
}

func fewAgents() []service.Agent {
	return []service.Agent{
		{
			Name: "mail_writer", Version: "0.2.0",
			Description: "Writes a mail about what it is told, and sends it by the mailer", Families: []string{
				"model",
				"agents",
			}, Signature: "unsigned",
		},
		{
			Name: "notes_digest", Version: "0.1.0",
			Description: "Reads a folder of Markdown notes and writes a digest of their contacts, open to-dos and dates",
			Families:    []string{"fs", "kb_write"}, Signature: "valid, by mara@lighthouse.example",
		},
		{
			Name: "scraper", Version: "1.4.2", Description: "Follows links", Families: []string{"net"},
			Signature: "invalid: the bundle is another than the one that was signed", Problem: "its signature is not valid",
		},
	}
}

func (h *fakeHost) Check(context.Context, *service.Caller, *service.Request) error { return nil }

func (h *fakeHost) Launch(ctx context.Context, _ *service.Caller, r *service.Request,
	b service.Begin,
) (*launcher.Report, error) {
	return h.launch(ctx, r, b)
}

// operator may everything.
func operator() *service.Caller {
	return &service.Caller{Name: "user:1000", Tenant: "default", May: service.Launch | service.Read | service.Operate}
}

// noRuns is a service in which nothing is under way.
type noRuns struct{}

func (noRuns) Runs(context.Context, *service.Caller) []service.State { return nil }
func (noRuns) Run(context.Context, *service.Caller, string) (*service.Run, error) {
	return nil, service.ErrNotFound
}

func (noRuns) Submit(context.Context, *service.Caller, *service.Request, string) (*service.Run, error) {
	return nil, service.ErrForbidden
}
func (noRuns) Cancel(context.Context, *service.Caller, string) error { return service.ErrNotFound }

// as serves h to a caller who was proved.
func as(h http.Handler, c *service.Caller) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(service.WithCaller(r.Context(), c)))
	})
}

// result is a document of a report.
func result(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// retell puts decisions in the place of a run's, as if it had made them.
func (l *fakeLog) retell(run string, decisions []audit.DecisionRecord) {
	l.mu.Lock()
	var agent string
	l.records = slices.DeleteFunc(l.records, func(r audit.Record) bool {
		if r.Head.RunID == run {
			agent = r.Head.Agent
		}
		return r.Head.RunID == run
	})
	for i := range l.records {
		l.records[i].Seq = uint64(i) + 1
	}
	l.runs = slices.DeleteFunc(l.runs, func(s kb.RunSummary) bool { return s.RunID == run })
	l.mu.Unlock()
	l.add(run, agent, now, decisions, audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"})
}

// seqOf is the number of the first record of a run about a capability.
func (l *fakeLog) seqOf(run, capability string) uint64 {
	for _, r := range l.records {
		if r.Head.RunID == run && r.Decision != nil && r.Decision.Cap == capability && r.Decision.Deny {
			return r.Seq
		}
	}
	return 0
}
