package run

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// words are what bases, layers and requests of the test are made of.
var words = []string{
	"fs:read:/a", "fs:read:/a/b", "fs:write:/a/b", "fs:delete:/a/b/c", "fs:read:/", "network:https:a.com",
	"network:https:*.b.org", "network:https:x.b.org",
	"kb:read:notes", "kb:read:notes_raw", "kb:write:drafts", "kb:write:notes", "secrets:read:runloop/mail/key",
	"model:use:*", "model:use:local:echo",
	"process:exec:/usr/bin/grep", "env:read:PATH", "time:read:*", "mcp:call:github", "agents:launch:critic",
	"agents:launch:boss",
}

var tools = []string{"web:*", "web:net_http", "mcp:github/search", "memory:kb_put"}

func someEntries(t *rapid.T, name string, most int) []caps.Entry {
	var list []caps.Entry
	for range rapid.IntRange(0, most).Draw(t, name) {
		g, err := caps.ParseGrant(rapid.SampledFrom(words).Draw(t, "word"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, caps.Entry{Grant: g})
	}
	return list
}

// someLayer is an override, a floor or a profile that somebody is bound by.
func someLayer(t *rapid.T) *caps.Layer {
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return policy.BuiltinFloor(policy.Delegate)
	case 1:
		return &caps.Layer{Name: "none"}
	}
	l := &caps.Layer{Name: "some", Deny: someEntries(t, "denied", 3), Allow: someEntries(t, "allowed", 6)}
	for _, e := range l.Allow {
		l.Bounds = append(l.Bounds, caps.Bound{Family: e.Grant.Family, Modes: caps.AllModes(e.Grant.Family)})
	}
	if rapid.Bool().Draw(t, "tools") {
		l.Deny = append(l.Deny, caps.Entry{Grant: caps.Grant{
			Family: caps.Tool, Modes: 1,
			Scope: rapid.SampledFrom(tools).Draw(t, "tool"),
		}})
	}
	if rapid.Bool().Draw(t, "constrained") {
		l.Constraints = l.Constraints.With(caps.NetMaxResponseBytes, rapid.Int64Range(0, 100).Draw(t, "bytes"))
	}
	for _, k := range []caps.Limit{caps.WallTimeMS, caps.MemoryBytes, caps.NetBytes, caps.MaxDepth} {
		if rapid.Bool().Draw(t, "limited") {
			l.Limits = l.Limits.With(k, rapid.Int64Range(0, 1<<30).Draw(t, "limit"))
		}
	}
	return l
}

// Whatever each agent asks for, and whatever floors, bindings and overrides each
// is given, a run holds nothing that the one which launched it does not hold, and
// has no more left of any limit, to every depth.
//
//rlp:holds P18 Y38 Y46
func TestADelegateHoldsNoMoreThanItsParent(t *testing.T) {
	var requests []caps.Request
	for _, w := range append(words, "fs:write:/a/b/c", "fs:read:/ax", "network:https:y.b.org", "kb:read:contacts",
		"process:exec:/bin/sh", "agents:launch:other") {
		r, err := caps.ParseRequest(w)
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r...)
	}
	for _, tool := range tools[1:] {
		requests = append(requests, caps.Request{Family: caps.Tool, Name: tool})
	}
	deepest := 6
	if testing.Short() {
		deepest = 2
	}
	widened := 0 // what a child would hold by itself that its parent does not
	rapid.Check(t, func(t *rapid.T) {
		var above *Plan
		for depth := range rapid.IntRange(2, deepest).Draw(t, "depth") {
			p := Policy{Base: someEntries(t, "base", 12), Layers: []*caps.Layer{someLayer(t), someLayer(t)}}
			alone, err := NewPlan(p)
			if err != nil {
				t.Fatal(err)
			}
			if above != nil {
				within := above.Effective.Layer("held")
				within.Limits = above.Limits
				p.Within = Parent{Identity{Agent: "boss", RunID: aRun}, &hostcalls.Delegation{Within: within}}.Layer()
			}
			plan, err := NewPlan(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range requests {
				held := plan.Effective.Check(r).Allow
				if held && !alone.Effective.Check(r).Allow {
					t.Fatalf("depth %d: its parent gives %s, which its own layers do not leave", depth, r)
				}
				if above == nil || above.Effective.Check(r).Allow {
					continue
				}
				if held {
					t.Fatalf("depth %d: %s is held, and the parent holds %s", depth, r, above.Effective)
				}
				if alone.Effective.Check(r).Allow {
					widened++
				}
			}
			if above != nil {
				most, set := above.Effective.Constraints().Get(caps.NetMaxResponseBytes)
				if v, has := plan.Effective.Constraints().Get(caps.NetMaxResponseBytes); set && (!has || v > most) {
					t.Fatalf("depth %d: answers of %d bytes (%v), and the parent may have %d", depth, v, has, most)
				}
			}
			for l := range caps.NumLimits {
				if above == nil {
					break
				}
				if most, set := above.Limits.Get(l); set {
					if v, has := plan.Limits.Get(l); !has || v > most {
						t.Fatalf("depth %d: %s is %d (%v), and the parent has %d", depth, l, v, has, most)
					}
				}
			}
			above = &plan
		}
	})
	if widened == 0 {
		t.Error("control: no child asked for more than its parent holds")
	}
}

// A default is the operator's to lift for each agent: that a parent was given
// more memory gives its delegates no more than the default.
func TestAParentsLimitLiftsNoDefault(t *testing.T) {
	large := &caps.Layer{Name: "parent", Limits: caps.Limits{}.With(caps.MemoryBytes, 4*DefaultMemoryBytes)}
	for name, c := range map[string]struct {
		policy Policy
		want   int64
	}{
		"control: a layer of its own": {Policy{Layers: []*caps.Layer{large}}, 4 * DefaultMemoryBytes},
		"the parent's":                {Policy{Within: large}, DefaultMemoryBytes},
	} {
		plan, err := NewPlan(c.policy)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := plan.Limits.Get(caps.MemoryBytes); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// What a parent holds is met with as it is: a link that the parent moved since
// leads its delegate nowhere.
func TestAParentsPathsAreNotResolvedAgain(t *testing.T) {
	moved := func(p string) (jail.Resolved, error) {
		return jail.Resolved{Path: strings.Replace(p, "/out/sub", "/etc", 1)}, nil
	}
	p := Policy{Base: []caps.Entry{entryOf(t, "fs:read:/out/sub")}}
	p.Within = &caps.Layer{
		Name: "parent", Bounds: []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}},
		Allow: []caps.Entry{entryOf(t, "fs:read:/out")},
	}
	etc := caps.Request{Family: caps.FS, Name: "/etc/passwd"}
	for name, within := range map[string]*caps.Layer{"control: no parent": nil, "parent": p.Within} {
		q := p
		q.Within = within
		q, _, err := Canonical(q, Resolvers{Files: moved, Programs: moved})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := NewPlan(q)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Effective.Check(etc).Allow; got != (within == nil) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The changes of a delegate's report name what took each thing away.
func TestChangesNameTheParent(t *testing.T) {
	p := Policy{
		Base:   []caps.Entry{entryOf(t, "kb:read:notes"), entryOf(t, "kb:write:drafts")},
		Layers: []*caps.Layer{policy.BuiltinFloor(policy.Delegate)},
	}
	p.Within = Parent{
		Identity{Agent: "boss", RunID: aRun},
		&hostcalls.Delegation{Within: caps.Set{}.Layer("held")},
	}.Layer()
	plan, err := NewPlan(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Change{
		{Layer: "_delegate", Source: "_delegate.toml (built-in)", Capability: "kb:write:drafts", Kind: "revoked"},
		{Layer: "parent:boss", Source: "run " + aRun, Capability: "kb:read:notes", Kind: "revoked"},
	} {
		if !slices.Contains(Flatten(plan.Changes), want) {
			t.Errorf("%+v is not in %+v", want, Flatten(plan.Changes))
		}
	}
}

// What a parent is given of a report is bounded, JSON, and says how the run
// ended, however much the agent said.
func TestDelegatedReportsAreBounded(t *testing.T) {
	for name, size := range map[string]int{"control: short": 10, "long": 1 << 20, "longer": 8 << 20} {
		if testing.Short() && name == "longer" { // the race detector takes long to write it
			continue
		}
		r := &Report{
			RunID: aRun, Agent: "critic", Outcome: Exit, ExitCode: 3, Stdout: strings.Repeat("\x01", size),
			Stderr: strings.Repeat("x", size),
		}
		r.Spent = Spent{Ran: true, Calls: 5, Instructions: 64}
		d := r.Delegated(r)
		if len(d.Report) > hostcalls.MaxAgentReport || len(d.Less) > 1<<16 {
			t.Fatalf("%s: %d and %d bytes", name, len(d.Report), len(d.Less))
		}
		if !d.Ran || d.Calls != 5 || d.Instructions != 64 || d.RunID != aRun || d.Outcome != "exit" {
			t.Errorf("%s: %+v", name, d)
		}
		var got Report
		if err := json.Unmarshal(d.Report, &got); err != nil || got.ExitCode != 3 || got.RunID != aRun {
			t.Errorf("%s: %v %+v", name, err, got)
		}
		if cut := got.Stdout != r.Stdout; cut != (size > 10) || cut != got.Usage.StdoutTruncated {
			t.Errorf("%s: %d bytes of stdout, truncated %v", name, len(got.Stdout), got.Usage.StdoutTruncated)
		}
	}
}

// A run that was made is reported and paid for, whatever its bundle, its policy or
// itself fills the report with.
func TestEveryDelegateIsPaidFor(t *testing.T) {
	long := strings.Repeat("x", hostcalls.MaxAgentReport)
	for name, r := range map[string]*Report{
		"tools":      {Tools: []Attachment{{ID: "a", Needs: []string{long}}}},
		"violations": {Violations: []Violation{{Message: long}}},
		"message":    {Message: long},
		"limits":     {Limits: map[string]int64{long: 1}},
		"no JSON":    {Result: json.RawMessage("{")},
	} {
		r.RunID, r.Agent, r.Outcome, r.Spent = aRun, "critic", OK, Spent{Ran: true, Calls: 5, Instructions: 64}
		d := r.Delegated(r)
		var got Report
		if err := json.Unmarshal(d.Report, &got); err != nil || len(d.Report) > hostcalls.MaxAgentReport ||
			got.RunID != aRun || got.Outcome != OK {
			t.Errorf("%s: %d bytes, %v", name, len(d.Report), err)
		}
		if !d.Ran || d.Calls != 5 || d.Instructions != 64 || got.Message == "" && len(got.Warnings) == 0 {
			t.Errorf("%s: %+v, %v", name, got.Message, got.Warnings)
		}
	}
}

// Who waits for a run gives it longer to stop than it gives those below it.
func TestWhoWaitsLongerStandsAbove(t *testing.T) {
	var above *budget.Budget
	last := (&Spec{}).grace()
	if last != guest.DefaultGrace {
		t.Errorf("a run that nobody launched: %v", last)
	}
	for depth := range hostcalls.DefaultDepth {
		above = budget.New(caps.Limits{}, above)
		next := (&Spec{Above: above}).grace()
		if next >= last || next <= 0 {
			t.Errorf("depth %d: %v, and %v above", depth+1, next, last)
		}
		last = next
	}
}

// What bounds a run is what the one that launches it holds at that moment, and not
// what it was launched with: less after a reload, and of a lease what is left.
//
//rlp:holds Y46
func TestADelegateIsBoundByWhatIsHeldNow(t *testing.T) {
	base := []caps.Entry{entryOf(t, "kb:read:notes"), entryOf(t, "kb:read:contacts"), entryOf(t, "kb:write:drafts")}
	set, err := caps.Base(base, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(set, audit.NewMemory(), gate.Options{MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	child := func() caps.Set {
		p := Policy{Base: base, Within: Parent{
			Identity{Agent: "boss", RunID: aRun},
			&hostcalls.Delegation{Within: g.Layer("held")},
		}.Layer()}
		plan, err := NewPlan(p)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Effective
	}
	reads := func(s caps.Set) bool { return s.Covers(entryOf(t, "kb:read:contacts").Grant) }
	if s := child(); !reads(s) || len(s.Leases()) != 0 {
		t.Fatalf("control: %s", s)
	}
	drafts := entryOf(t, "kb:write:drafts")
	narrower := denying(t, "kb:read:contacts")
	narrower.Leases = []caps.Lease{{Entry: drafts, Expires: caps.Forever, MaxUses: 2}}
	if err := g.Hold(narrower); err != nil {
		t.Fatal(err)
	}
	if s := child(); reads(s) || len(s.Leases()) != 1 || s.Leases()[0].MaxUses != 2 {
		t.Errorf("after the launch its parent was narrowed; it holds %s, leases %+v", s, s.Leases())
	}
}

// What the launching run holds bounds the launched one by leases, constraints and
// limits as by scopes.
func TestADelegateHasItsParentsLeases(t *testing.T) {
	lease := caps.Lease{Entry: entryOf(t, "kb:write:drafts"), Expires: 100, MaxUses: 2}
	within := caps.Set{}.Layer("held")
	within.Leases = []caps.Lease{lease}
	within.Limits = caps.Limits{}.With(caps.NetBytes, 7)
	within.Constraints = caps.Constraints{}.With(caps.NetMaxResponseBytes, 9)
	s := &Spec{Policy: Policy{Base: []caps.Entry{entryOf(t, "kb:write:drafts")}}}
	Parent{Identity{Agent: "boss", RunID: aRun}, &hostcalls.Delegation{
		Agent: "child", Within: within,
		Tainted: "a host",
	}}.Bind(s)
	plan, err := NewPlan(s.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if got := plan.Effective.Leases(); len(got) != 1 || got[0].Grant != lease.Grant || got[0].Expires != 100 ||
		got[0].MaxUses != 2 {
		t.Errorf("leases %+v", got)
	}
	if n, set := plan.Limits.Get(caps.NetBytes); !set || n != 7 {
		t.Errorf("net_bytes %d %v", n, set)
	}
	if n, set := plan.Effective.Constraints().Get(caps.NetMaxResponseBytes); !set || n != 9 {
		t.Errorf("max_response_bytes %d %v", n, set)
	}
	if s.ParentRun != aRun || s.Taint.Cause != "a host" {
		t.Errorf("%q %q", s.ParentRun, s.Taint.Cause)
	}
}
