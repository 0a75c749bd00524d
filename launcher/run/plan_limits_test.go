package run

import (
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
)

// How deep runs may stand below one another is the operator's to say: what a
// bundle asks for beyond the default it does not get.
func TestDepthIsTheOperatorsToLift(t *testing.T) {
	ask := func(n int64) caps.Limits { return caps.Limits{}.With(caps.MaxDepth, n) }
	operator := []*caps.Layer{{Name: "config", Limits: ask(20)}}
	for _, c := range []struct {
		policy Policy
		want   int64
	}{
		{Policy{}, -1},
		{Policy{BaseLimits: ask(0)}, 0},
		{Policy{BaseLimits: ask(3)}, 3},
		{Policy{BaseLimits: ask(1_000_000)}, hostcalls.DefaultDepth},
		{Policy{BaseLimits: ask(1_000_000), Layers: operator}, 20},
		// the launching run's own is held to already
		{Policy{BaseLimits: ask(1_000_000), Within: &caps.Layer{Limits: ask(19)}}, 19},
	} {
		plan, err := NewPlan(c.policy)
		if err != nil {
			t.Fatal(err)
		}
		if got := limitOr(plan.Limits, caps.MaxDepth); got != c.want {
			t.Errorf("%v: %d, want %d", c.policy.BaseLimits.Map(), got, c.want)
		}
	}
}

// What an agent asks for that launches another one takes no default's place: it
// is no operator, whatever it has left itself.
func TestARequestOfAnAgentLiftsNoDefault(t *testing.T) {
	limits := caps.Limits{}.With(caps.WallTimeMS, 2*DefaultWallMS).With(caps.HostcallsMax, 1<<40)
	request := []*caps.Layer{{Name: "config"}, {Name: CallerLayer, Limits: limits}}
	wall := func(p Policy) int64 {
		plan, err := NewPlan(p)
		if err != nil {
			t.Fatal(err)
		}
		return limitOr(plan.Limits, caps.WallTimeMS)
	}
	byAgent := Policy{Layers: request, Within: &caps.Layer{Name: "parent:a", Limits: limits}}
	if got := wall(byAgent); got != DefaultWallMS {
		t.Errorf("by an agent: %d, want %d", got, DefaultWallMS)
	}
	if got := wall(Policy{Layers: request}); got != 2*DefaultWallMS { // the control: the flags of the operator
		t.Errorf("by the operator: %d", got)
	}
	isRequest := func(l *caps.Layer) bool { return l.Name == CallerLayer }
	if slices.ContainsFunc(byAgent.Operators(), isRequest) || len(byAgent.Layers) != 2 {
		t.Errorf("%v", byAgent.Operators())
	}
}
