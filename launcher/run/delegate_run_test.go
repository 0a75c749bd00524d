package run

import (
	"context"
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
)

// A family launches children for a run that asks for them.
type family struct {
	parent  *Spec
	child   func() *Spec
	asked   int
	reports []*Report
}

func (f *family) Launch(ctx context.Context, d *hostcalls.Delegation) (*hostcalls.Delegated, error) {
	f.asked++
	s := f.child()
	Parent{f.parent.Identity, d}.Bind(s)
	r := Launch(ctx, s)
	f.reports = append(f.reports, r)
	return r.Delegated(r), nil
}

const ask = `{"agent":"child"}`

// familyOf is a run that launches a child so many times, each of which reads
// notes/key once.
func familyOf(t *testing.T, times int, own, childs []*caps.Layer) *family {
	t.Helper()
	f := &family{parent: specOf(t, audit.NewMemory(), "agents:launch:child", "kb:read:notes")}
	launch := do("agent_launch", 0, int64(len(ask)), 1024, 0x8000)
	f.parent.Module, f.parent.Policy.Layers = stepping(t, ask, slices.Repeat([]step{launch}, times)...), own
	f.parent.TraceID = "trace"
	f.parent.Components = hostcalls.Components{Agents: f, Masks: spyMasks{}}
	f.child = func() *Spec {
		s := specOf(t, audit.NewMemory(), "kb:read:notes")
		s.Agent, s.Module, s.Policy.Layers = "child", []byte(gets), childs
		s.Components = hostcalls.Components{KB: &faultyKB{get: func() {}}, Masks: spyMasks{}}
		return s
	}
	return f
}

func leasing(t *testing.T, text string, uses int64) []*caps.Layer {
	return []*caps.Layer{{Name: "l", Leases: []caps.Lease{{
		Entry: entryOf(t, text), Expires: caps.Forever,
		MaxUses: uses,
	}}}}
}

// What a launched run uses is the launching run's: its calls, its instructions, and
// the uses of its leases, and those of the child's own are one account.
//
//rlp:holds Y46
func TestWhatAChildUsesIsItsParents(t *testing.T) {
	for name, c := range map[string]struct {
		own, childs []*caps.Layer
		allowed     []int64 // of each child
	}{
		"control: nothing leased": {nil, nil, []int64{1, 1, 1}},
		"the parent's lease":      {leasing(t, "kb:read:notes", 1), nil, []int64{1, 0, 0}},
		"the child's lease":       {nil, leasing(t, "kb:read:notes", 2), []int64{1, 1, 0}},
		"both, the child's less":  {leasing(t, "kb:read:notes", 2), leasing(t, "kb:read:notes", 1), []int64{1, 0, 0}},
	} {
		f := familyOf(t, 3, c.own, c.childs)
		r := Launch(t.Context(), f.parent)
		if r.Outcome != OK || len(f.reports) != 3 || len(r.Children) != 3 {
			t.Fatalf("%s: %s %s, %d children", name, r.Outcome, r.Message, len(f.reports))
		}
		calls, fuel := int64(0), int64(0)
		for i, child := range f.reports {
			calls, fuel = calls+child.Usage.Hostcalls, fuel+child.Usage.Fuel
			if child.Usage.Allowed != c.allowed[i] || child.Usage.Allowed+child.Usage.Denied != 1 {
				t.Errorf("%s: child %d was allowed %d and denied %d", name, i, child.Usage.Allowed, child.Usage.Denied)
			}
			if child.TraceID != "trace" || child.Spent.Calls != child.Usage.Hostcalls || !child.Spent.Ran ||
				child.Spent.Instructions == 0 {
				t.Errorf("%s: child %d spent %+v in %q", name, i, child.Spent, child.TraceID)
			}
		}
		if calls == 0 || r.Usage.Hostcalls != calls+3 || r.Usage.Fuel < fuel/2 || r.Untrusted == nil {
			t.Errorf("%s: %d calls and %d fuel, and the children had %d and %d; marked by %v", name, r.Usage.Hostcalls,
				r.Usage.Fuel, calls, fuel, r.Untrusted)
		}
	}
}

// A child has of fuel what its parent has left, where anything bounds that.
func TestAChildHasWhatIsLeftOfFuel(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		f := familyOf(t, 1, nil, nil)
		if bounded {
			f.parent.Policy.BaseLimits = caps.Limits{}.With(caps.CPUFuel, 10_000_000)
		}
		if r := Launch(t.Context(), f.parent); r.Outcome != OK || len(f.reports) != 1 {
			t.Fatalf("%s: %s", r.Outcome, r.Message)
		}
		if fuel, set := f.reports[0].Limits["cpu_fuel"]; set != bounded || bounded && (fuel <= 0 || fuel >= 10_000_000) {
			t.Errorf("bounded %v: the child has %d (%v)", bounded, fuel, set)
		}
	}
}

// A run that was left behind is taken to have used all that it had, and nothing
// that it had not; one that ended, what it used.
func TestWhatIsLeftBehindHasUsedAll(t *testing.T) {
	counted, ever := entryOf(t, "kb:read:notes"), entryOf(t, "kb:read:contacts")
	leases := &caps.Layer{Name: "l", Leases: []caps.Lease{
		{Entry: counted, Expires: caps.Forever, MaxUses: 4}, {
			Entry: ever, Expires: caps.Forever - 1,
			MaxUses: caps.Unbounded,
		},
	}}
	for name, c := range map[string]struct {
		limits              caps.Limits
		abandoned           bool
		calls, instructions int64
		uses                int
	}{
		"ended":                   {caps.Limits{}.With(caps.HostcallsMax, 7).With(caps.CPUFuel, 3), false, 1, 5, 0},
		"left behind":             {caps.Limits{}.With(caps.HostcallsMax, 7).With(caps.CPUFuel, 3), true, 7, 3 * fuelUnit, 1},
		"left behind, no bound":   {caps.Limits{}, true, 0, 5, 1},
		"left behind, calls only": {caps.Limits{}.With(caps.HostcallsMax, 9), true, 9, 5, 1},
	} {
		k := talkOf(t, "kb:read:notes", "kb:read:contacts")
		plan, err := NewPlan(Policy{Base: k.run.spec.Policy.Base, BaseLimits: c.limits, Layers: []*caps.Layer{leases}})
		must(t, err)
		k.run.plan = plan
		k.run.gate.Spend()
		k.run.spend(guest.End{Fuel: 5, Abandoned: c.abandoned})
		got := k.run.report.Spent
		if !got.Ran || got.Calls != c.calls || got.Instructions != c.instructions || len(got.LeaseUses) != c.uses ||
			c.uses > 0 && got.LeaseUses[counted.Grant] != 4 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Below one root only so many runs may be left behind before no more are launched:
// what they have cannot be taken from them.
func TestTooManyThatWereLeftBehind(t *testing.T) {
	for _, c := range []struct {
		left, asked int
		abandoned   bool
	}{{3, 1, true}, {4, 0, true}, {4, 1, false}} {
		root := budget.New(caps.Limits{}, nil)
		for range c.left {
			k := talkOf(t)
			k.run.host = hostcalls.New(hostcalls.Config{Gate: k.run.gate, Above: root})
			k.run.spend(guest.End{Abandoned: c.abandoned})
		}
		f := familyOf(t, 1, nil, nil)
		f.parent.Above = root
		if r := Launch(t.Context(), f.parent); r.Outcome != OK || f.asked != c.asked {
			t.Errorf("%d left behind: %s %s, %d launched", c.left, r.Outcome, r.Message, f.asked)
		}
	}
}

// The layer by which a run bounds another one is its own, and says of each bound
// where it stands, or that it is the run's.
func TestTheLayerOfAParentIsItsOwn(t *testing.T) {
	written := caps.Pos{File: "f", Line: 1, Column: 1}
	within := &caps.Layer{Name: "held", Bounds: []caps.Bound{{Family: caps.FS}, {Family: caps.Time, Pos: written}}}
	l := Parent{Identity{Agent: "boss", RunID: aRun}, &hostcalls.Delegation{Within: within}}.Layer()
	if l.Name != "parent:boss" || !l.Sum || l.Bounds[0].Pos.File != "run "+aRun || l.Bounds[1].Pos != written {
		t.Errorf("%+v", l)
	}
	if within.Name != "held" || within.Sum || within.Bounds[0].Pos != (caps.Pos{}) {
		t.Errorf("what it holds became %+v", within)
	}
}
