package hostcalls

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/model"
)

// fakeAgents answers every delegation, and keeps what it was given.
type fakeAgents struct {
	asked  []*Delegation
	answer Delegated
	err    error
}

func (f *fakeAgents) Launch(_ context.Context, d *Delegation) (*Delegated, error) {
	f.asked = append(f.asked, d)
	got := f.answer
	return &got, f.err
}

func agentRig(t *testing.T, grants ...string) (*rig, *fakeAgents) {
	t.Helper()
	r := newRig(t, grants...)
	f := &fakeAgents{answer: Delegated{
		Report: []byte(`{"run_id":"r1","outcome":"ok","stdout":"hello"}`), Less: []byte(`{"run_id":"r1"}`),
		RunID: "r1", Outcome: "ok", Ran: true, Calls: 3, Instructions: 640,
	}}
	r.host.cfg.Agents = f
	return r, f
}

// A delegation is asked for by name alone, in an object of known keys.
func TestRequestsForAgentsAreReadStrictly(t *testing.T) {
	r, f := agentRig(t, "agents:launch:critic")
	if n, got := r.call("agent_launch",
		` {"agent":"critic","input":{"a":[1,"}"]},"allow":["fs:read:/tmp"],"deny":["kb:write:*"],"limits":{"max_steps":2}} `); n < 0 || !strings.Contains(got, "hello") {
		t.Fatalf("control: %d %s", n, got)
	}
	d := f.asked[0]
	if string(d.Input) != `{"a":[1,"}"]}` || !slices.Equal(d.Allow, []string{"fs:read:/tmp"}) ||
		!slices.Equal(d.Deny, []string{"kb:write:*"}) || d.Limits["max_steps"] != 2 {
		t.Errorf("%+v", d)
	}
	for _, text := range []string{
		``, `{}`, `[]`, `{"agent":""}`, `{"agent":"*"}`, `{"agent":"/srv/critic"}`, `{"agent":"../critic"}`,
		`{"agent":"Critic"}`, `{"agent":1}`,
		`{"agent":"critic","agent":"critic"}`, `{"Agent":"critic"}`, `{"agent":"critic","tenant":"x"}`,
		`{"agent":"critic"}{}`, `{"agent":"critic","input":}`,
		`{"agent":"critic","input":1 2}`, `{"agent":"critic","allow":"fs:read:/tmp"}`,
		`{"agent":"critic","allow":["nonsense"]}`, `{"agent":"critic","deny":["fs:eat:/"]}`,
		`{"agent":"critic","limits":{"wall_time_ms":-1}}`, `{"agent":"critic","limits":{"wall_time_ms":1.5}}`,
		`{"agent":"critic","limits":{"walls":1}}`, `{"agent":"critic","limits":[]}`,
	} {
		if n, _ := r.call("agent_launch", text); n != -28 {
			t.Errorf("%s: %d", text, n)
		}
	}
	r.mem = make([]byte, 4<<20)
	if n, _ := r.call("agent_launch", `{"agent":"critic","input":"`+strings.Repeat("x", MaxAgentInput)+`"}`); n != -1 {
		t.Errorf("an input beyond the bound: %d", n)
	}
	if len(f.asked) != 1 {
		t.Errorf("%d launches", len(f.asked))
	}
}

// What is wrong with a request is said, with its place; bounds are the last of
// what is taken.
func TestRequestsForAgentsNameTheirPlace(t *testing.T) {
	words := func(n int) string { return `["` + strings.Repeat(`fs:read:/tmp","`, n-1) + `fs:read:/tmp"]` }
	r, f := agentRig(t, "agents:launch:critic")
	r.mem = make([]byte, 4<<20)
	for text, place := range map[string]string{
		`{"agent":"*"}`:                   "agent: the name of an installed agent",
		`{"agent":"Critic"}`:              "agent: the name of an installed agent",
		`{}`:                              "agent: the name of an installed agent",
		`{"agent":"critic","tenant":"x"}`: "tenant: no key of a request",
		`{"agent":"critic","input":}`:     "input: not JSON",
		`{"agent":"critic","input":{"a":1,"a":2}}`:                  "input.a: given twice",
		`{"agent":"critic","allow":"fs:read:/tmp"}`:                 "allow: a list of capabilities",
		`{"agent":"critic","allow":{}}`:                             "allow: a list of capabilities",
		`{"agent":"critic","deny":["fs:read:/tmp",1]}`:              "deny[1]: a text",
		`{"agent":"critic","allow":["fs:read:/tmp","nonsense"]}`:    "allow[1]: ",
		`{"agent":"critic","allow":` + words(MaxAgentWords+1) + `}`: "allow[1024]: one more than the 1024",
		`{"agent":"critic","limits":{"net_bytes":-1}}`:              "limits.net_bytes: a whole number",
		`{"agent":"critic","limits":{"walls":1}}`:                   "limits.walls: ",
	} {
		if n, a := r.denial("agent_launch", text); n != -28 || !strings.HasPrefix(a.Hint, place) {
			t.Errorf("%.60s: %d %+v, want %q", text, n, a, place)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("%d launches", len(f.asked))
	}
	for text, want := range map[string][2]int{ // how many words, and how long an input
		`{"agent":"critic"}`: {-1, -1},
		// allows nothing, which is not the same as saying nothing
		`{"agent":"critic","allow":[]}`:                                                         {0, -1},
		`{"agent":"critic","allow":` + words(MaxAgentWords) + `}`:                               {MaxAgentWords, -1},
		`{"agent":"critic","input": ` + strings.Repeat("1", 100) + ` }`:                         {-1, 100},
		`{"agent":"critic","input": "` + strings.Repeat("x", MaxAgentInput-2) + `","allow":[]}`: {0, MaxAgentInput},
	} {
		f.asked = nil
		if n, a := r.call("agent_launch", text); n < 0 || len(f.asked) != 1 {
			t.Errorf("%.60s: %d %s", text, n, a)
			continue
		}
		if d := f.asked[0]; d.Allow == nil != (want[0] < 0) || len(d.Allow) != max(0, want[0]) ||
			d.Input == nil != (want[1] < 0) || len(d.Input) != max(0, want[1]) {
			t.Errorf("%.60s: %d words, %v; an input of %d", text, len(d.Allow), d.Allow == nil, len(d.Input))
		}
	}
}

// A launch that comes to nothing is the guest's and the operator's to know: what
// was refused, why, and what the operator is warned of.
func TestALaunchThatComesToNothing(t *testing.T) {
	r, f := agentRig(t, "agents:launch:critic")
	var warned []string
	r.host.cfg.Warn = func(m string) { warned = append(warned, m) }
	f.answer = Delegated{
		Report: []byte(`{"outcome":"refused"}`), Outcome: "refused", Why: "its policy asks for more",
		Warnings: []string{"no such grant", "nor that"},
	}
	if n, got := r.call("agent_launch", `{"agent":"critic"}`); n < 0 || !strings.Contains(got, "refused") {
		t.Errorf("%d %s", n, got)
	}
	if e := r.log.Events[len(r.log.Events)-1]; e.ErrorSummary != "refused: its policy asks for more" ||
		!slices.Equal(warned, f.answer.Warnings) {
		t.Errorf("recorded %+v, warned of %q", e, warned)
	}
	f.err = &Fail{Errno: Noent, Hint: "agent: no such agent is installed"}
	if n, a := r.denial("agent_launch", `{"agent":"critic"}`); n != -44 || a.Hint != f.err.(*Fail).Hint {
		t.Errorf("%d %+v", n, a)
	}
	if got := r.host.Children(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// A boundModel is a model's component that keeps what it is bound to.
type boundModel struct {
	Model
	bounds model.Limits
}

func (m *boundModel) Bound(l model.Limits) { m.bounds = l }

// A run that has no limit of something gives none on, but for its time and what
// a report has room for. The limits of the model, which runs have in common, hold
// from the first launch on.
func TestWithoutLimitsNoneAreGivenOn(t *testing.T) {
	r, f := agentRig(t, "agents:launch:critic")
	m := &boundModel{}
	r.host.cfg.Model = m
	r.host.cfg.Limits = caps.Limits{}.With(caps.ModelTokens, 77).With(caps.StderrMaxBytes, 10)
	r.host.cfg.Left = func() (time.Duration, int64, bool) { return time.Second, 7, false }
	if n, _ := r.call("agent_launch", `{"agent":"critic"}`); n < 0 {
		t.Fatal(n)
	}
	want := map[string]int64{
		"max_depth": DefaultDepth - 1, "wall_time_ms": 1000, "stdout_max_bytes": MaxAgentReport / 4, "stderr_max_bytes": 10,
		"model_tokens": 77,
	}
	if got := f.asked[0].Within.Limits.Map(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if m.bounds.Tokens != 77 {
		t.Errorf("the model's component counts to %d", m.bounds.Tokens)
	}
}

// A report lists so many children and no more; how many stand above a run is
// what its budget says.
func TestChildrenAndDepthAreCounted(t *testing.T) {
	r, _ := agentRig(t, "agents:launch:critic")
	for range MaxChildren + 1 {
		if n, _ := r.call("agent_launch", `{"agent":"critic"}`); n < 0 {
			t.Fatal(n)
		}
	}
	if n := len(r.host.Children()); n != MaxChildren {
		t.Errorf("%d children are listed", n)
	}
	var none *budget.Budget
	root := budget.New(caps.Limits{}, nil)
	if none.Depth() != 0 || root.Depth() != 1 || budget.New(caps.Limits{}, root).Depth() != 2 {
		t.Errorf("%d, %d", none.Depth(), root.Depth())
	}
}

// What was not granted is not launched, and neither is anything that is too deep.
//
//rlp:holds A58 A59
func TestDepthAndGrantBoundDelegation(t *testing.T) {
	r, _ := agentRig(t, "agents:launch:critic")
	if n, a := r.denial("agent_launch", `{"agent":"other"}`); n != -2 || a.Reason != "agent_not_permitted" {
		t.Errorf("%d %+v", n, a)
	}
	for _, c := range []struct {
		depth int64 // -1: nothing said
		below int64 // what the launched run has; -1: nothing is launched
	}{{-1, DefaultDepth - 1}, {3, 2}, {1, 0}, {0, -1}} {
		r, f := agentRig(t, "agents:launch:critic")
		if c.depth >= 0 {
			r.host.cfg.Limits = caps.Limits{}.With(caps.MaxDepth, c.depth)
		}
		if c.below < 0 {
			if n, a := r.denial("agent_launch", `{"agent":"critic"}`); n != -19 || a.Reason != "budget_exhausted" ||
				!strings.Contains(a.Hint, "max_depth") || len(f.asked) > 0 {
				t.Errorf("depth %d: %d %+v", c.depth, n, a)
			}
			continue
		}
		if n, _ := r.call("agent_launch", `{"agent":"critic"}`); n < 0 {
			t.Fatalf("depth %d: %d", c.depth, n)
		}
		if below, set := f.asked[0].Within.Limits.Get(caps.MaxDepth); !set || below != c.below {
			t.Errorf("depth %d leaves %d", c.depth, below)
		}
	}
}

// A run gives on what it has left and no more, and pays for what was used,
// whatever came of it.
func TestTheRestIsGivenOnAndPaidFor(t *testing.T) {
	r, f := agentRig(t, "agents:launch:critic", "fs:read:/work")
	f.answer.Outcome = "trap"
	r.host.cfg.Limits = caps.Limits{}.With(caps.HostcallsMax, 10).With(caps.NetBytes, 100).With(caps.MemoryBytes,
		1<<20).With(caps.StdoutMaxBytes, 1<<40)
	r.host.budget.Bound(r.host.cfg.Limits)
	r.host.budget.Take(caps.NetBytes, 30)
	r.host.cfg.Left = func() (time.Duration, int64, bool) { return 1500 * time.Millisecond, 7, true }
	r.host.moved = 0
	if n, _ := r.call("agent_launch", `{"agent":"critic"}`); n < 0 {
		t.Fatal(n)
	}
	got := f.asked[0].Within.Limits.Map()
	for key, want := range map[string]int64{
		"hostcalls_max": 9, "net_bytes": 70, "memory_bytes": 1 << 20, "wall_time_ms": 1500, "cpu_fuel": 7,
		"stdout_max_bytes": MaxAgentReport / 4,
	} {
		if got[key] != want {
			t.Errorf("%s: %d, want %d", key, got[key], want)
		}
	}
	if r.gate.Calls() != 4 || r.host.moved < 640 {
		t.Errorf("%d calls and %d instructions are charged for", r.gate.Calls(), r.host.moved)
	}
	if got := r.host.Children(); !slices.Equal(got, []Child{{"r1", "critic", "trap"}}) {
		t.Errorf("%v", got)
	}
	if s, _, err := r.gate.Set().Narrow(f.asked[0].Within); err != nil || s.String() != r.gate.Set().String() {
		t.Errorf("what bounds the launched run is not what this one holds: %s (%v)", s, err)
	}
	if done := r.log.Events[len(r.log.Events)-1]; done.Verb != "agent_launch" || done.ErrorSummary != "trap r1" {
		t.Errorf("recorded %+v", done)
	}
}

// What another agent answers is content from outside; what never ran says
// nothing.
//
//rlp:holds Y28
func TestAnAnswerMarksTheRun(t *testing.T) {
	for _, ran := range []bool{true, false} {
		r, f := agentRig(t, "agents:launch:critic")
		f.answer.Ran = ran
		if n, _ := r.call("agent_launch", `{"agent":"critic"}`); n < 0 {
			t.Fatal(n)
		}
		if cause, tainted := r.gate.Tainted(); tainted != ran || ran && cause != gate.Cause(caps.SourceWord(caps.Agents),
			"critic") {
			t.Errorf("ran %v: %q %v", ran, cause, tainted)
		}
		if r.call("agent_launch", `{"agent":"critic"}`); len(f.asked) == 2 && f.asked[1].Tainted != "" != ran {
			t.Errorf("a run that is marked launches one that is not: %q", f.asked[1].Tainted)
		}
	}
}

// A report never has a secret of this run in it, and stays JSON.
func TestReportsAreWithoutThisRunsSecrets(t *testing.T) {
	for _, c := range []struct{ secret, report, want string }{
		{"open sesame", `{"stdout":"a open sesame b"}`, "a [secret] b"},
		{"nothing of it", `{"stdout":"open sesame"}`, "open sesame"}, // control
		{`","result`, `{"stdout":"open","result":"sesame"}`, "r1"},   // across two texts
	} {
		r, f := agentRig(t, "agents:launch:critic")
		r.host.cfg.Secrets = oneSecret{"rlsec_abc", c.secret, "runloop/door/word"}
		f.answer.Report = []byte(c.report)
		n, got := r.call("agent_launch", `{"agent":"critic"}`)
		if n < 0 || strings.Contains(got, c.secret) || !json.Valid([]byte(got)) || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s", c.report, n, got)
		}
	}
}

// A run that cannot be ended keeps its memory: a few of them end delegation.
func TestRunsThatAreLeftBehindEndDelegation(t *testing.T) {
	r, f := agentRig(t, "agents:launch:critic")
	below := New(Config{Above: budget.New(caps.Limits{}, r.host.budget)})
	for i := range budget.MaxStray {
		if n, _ := r.call("agent_launch", `{"agent":"critic"}`); n < 0 {
			t.Fatalf("with %d left behind: %d", i, n)
		}
		below.LeftBehind()
	}
	if n, a := r.denial("agent_launch", `{"agent":"critic"}`); n != -19 || a.Reason != "rate_limited" ||
		!strings.Contains(a.Hint, "did not stop") || len(f.asked) != budget.MaxStray {
		t.Errorf("%d %+v", n, a)
	}
}

// Uses of a lease are one account as well: what a launched run used up is gone,
// and what it is given is what is left.
func TestLeasesAreSharedWithWhatIsLaunched(t *testing.T) {
	r, f := agentRig(t, "agents:launch:critic", "kb:write:drafts")
	drafts, err := caps.ParseGrant("kb:write:drafts")
	if err != nil {
		t.Fatal(err)
	}
	lease := caps.Lease{Entry: caps.Entry{Grant: drafts}, Expires: caps.Forever, MaxUses: 5}
	if err := r.gate.Hold(&caps.Layer{Name: "lease", Leases: []caps.Lease{lease}}); err != nil {
		t.Fatal(err)
	}
	if n, _ := r.call("kb_put", "drafts", "k", "v"); n < 0 {
		t.Fatal(n)
	}
	f.answer.LeaseUses = map[caps.Grant]int64{drafts: 3}
	for _, left := range []int64{4, 1} {
		if n, _ := r.call("agent_launch", `{"agent":"critic"}`); n < 0 {
			t.Fatal(n)
		}
		if got := f.asked[len(f.asked)-1].Within.Leases; len(got) != 1 || got[0].MaxUses != left {
			t.Errorf("%+v, want %d uses left", got, left)
		}
	}
	if n, a := r.denial("kb_put", "drafts", "k", "v"); n != -2 || a.Reason != "lease_expired" {
		t.Errorf("%d %+v", n, a)
	}
}

// The leases of an agent are one account for all its runs below one root, whoever
// of them launches it; the launching run's own are not.
func TestLeasesOfADelegateAreOneAccount(t *testing.T) {
	r, f := agentRig(t, "agents:launch:critic", "agents:launch:other")
	drafts, err := caps.ParseGrant("kb:write:drafts")
	if err != nil {
		t.Fatal(err)
	}
	f.answer.LeaseUses = map[caps.Grant]int64{drafts: 3}
	for i, agent := range []string{"critic", "critic", "other"} {
		if n, _ := r.call("agent_launch", `{"agent":"`+agent+`"}`); n < 0 {
			t.Fatal(n)
		}
		above := f.asked[i].Above
		below := budget.New(caps.Limits{}, above) // of a run that it launched
		for name, want := range map[string]int64{"critic": min(int64(i+1), 2) * 3, "other": int64(i/2) * 3, "boss": 0} {
			if got, deep := above.LeaseUses(name)[drafts], below.LeaseUses(name)[drafts]; got != want || deep != want {
				t.Errorf("after launch %d: %s used %d and %d, want %d", i+1, name, got, deep, want)
			}
		}
	}
	if (*budget.Budget)(nil).LeaseUses("critic") != nil || budget.New(caps.Limits{}, nil).LeaseUses("critic") != nil {
		t.Error("a run of another root has used something")
	}
}
