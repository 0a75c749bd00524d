package ask

import (
	"fmt"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/analysis"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/launcher/run"
)

// recordRuns makes runs of decisions each, by a gate and a journal as launches
// do, and has the store take them in.
func recordRuns(t testing.TB, s *kb.Store, dir string, runs, decisions int) {
	t.Helper()
	plan, err := run.NewPlan(run.Policy{Base: analysis.Everything(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for r := range runs {
		j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{
			RunID: fmt.Sprintf("run%04d", r), TraceID: "trace", Tenant: kb.DefaultTenant, Agent: "writer",
			BundleDigest: fmt.Sprintf("%064d", 1), EffectiveDigest: fmt.Sprintf("%064d", 2),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Event(&audit.Event{Kind: audit.KindRunStart, Effective: plan.Effective.Strings()}); err != nil {
			t.Fatal(err)
		}
		g, err := gate.New(plan.Effective, j, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
		if err != nil {
			t.Fatal(err)
		}
		admit(t, g, decisions)
		if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// admit admits n requests of several families, many of them to names of their own.
func admit(t testing.TB, g *gate.Gate, n int) {
	ops := map[string]*gate.Op{}
	for _, name := range []string{"path_open", "kb_put", "net_http"} {
		op, err := g.Op(name)
		if err != nil {
			t.Fatal(err)
		}
		ops[name] = op
	}
	for i := range n {
		switch i % 4 {
		case 0, 1:
			p := fmt.Sprintf("/home/user/notes/folder%d/note-%d.md", i%50, i%20_000)
			g.Admit(ops["path_open"], caps.Request{Family: caps.FS, Mode: caps.Mode(i % 2), Name: p}, p, nil)
		case 2:
			g.Admit(ops["kb_put"], caps.Request{Family: caps.KBWrite, Name: "drafts"}, fmt.Sprintf("drafts/key-%d", i), nil)
		default:
			g.Admit(ops["net_http"], caps.Request{Family: caps.Net, Name: "api.example.com:443"}, "https://api.example.com/send",
				nil)
		}
	}
}

func candidate(t testing.TB) *analysis.Replay {
	o, findings := policy.ParseLayer("override:o.toml", "o.toml",
		[]byte("[deny]\ncapabilities = [\"fs:write:/home/user/notes/folder7\", \"kb:write:drafts\"]\n"), policy.Options{})
	if err := policy.AsError(findings); err != nil {
		t.Fatal(err)
	}
	plan, err := run.NewPlan(run.Policy{Base: analysis.Everything(nil), Layers: []*caps.Layer{o.Layer}})
	if err != nil {
		t.Fatal(err)
	}
	return analysis.New(plan.Effective)
}

func storeAt(t testing.TB) (*kb.Store, string) {
	dir := t.TempDir()
	s, err := kb.Open(t.Context(), kb.Options{Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	journals, err := kb.JournalDir(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return s, journals
}

// What is decided again are the records of real runs, all of them.
func TestDecideAgain(t *testing.T) {
	s, dir := storeAt(t)
	recordRuns(t, s, dir, 3, 1000)
	sight := candidate(t)
	if err := decideAgain(t.Context(), s, kb.Filter{}, sight); err != nil {
		t.Fatal(err)
	}
	f := sight.Forecast()
	if f.Runs != 3 || f.Stays+f.Blocked != 3000 || f.Blocked != 3*(250+10) || f.RunsBlocked != 3 || f.Depends != 0 {
		t.Errorf("%+v", f)
	}
}

// BenchmarkWhatif decides a million recorded decisions again.
func BenchmarkWhatif(b *testing.B) {
	s, dir := storeAt(b)
	start, each := time.Now(), 100_000
	if testing.Short() {
		each = 1000
	}
	recordRuns(b, s, dir, 10, each)
	b.Logf("made in %v", time.Since(start))
	for b.Loop() {
		sight := candidate(b)
		if err := decideAgain(b.Context(), s, kb.Filter{}, sight); err != nil {
			b.Fatal(err)
		}
		if f := sight.Forecast(); f.Stays+f.Blocked != 10*int64(each) {
			b.Fatalf("%+v", f)
		}
	}
}
