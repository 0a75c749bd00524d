package guest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

// What a call finds left is what the run still has: what the call itself costs
// is gone, and what comes after it has the rest to the instruction.
func TestLeftIsTheRest(t *testing.T) {
	var mod *guest.Module
	var walls []time.Duration
	var fuel []int64
	ask := abi.Func{Module: "m", Name: "ask", Cost: 500, Call: func(context.Context, []byte, []uint64) error {
		wall, left, bounded := mod.Left()
		if walls = append(walls, wall); bounded {
			fuel = append(fuel, left)
		}
		return nil
	}}
	mod = compile(t, guest.Config{Module: module{imports: []imported{importOf(ask)}, code: slices.Concat(call(0),
		call(0))}.bytes(), Funcs: []abi.Func{ask}})
	end := mod.Run(t.Context(), guest.RunConfig{Wall: wide, Fuel: new(int64(2000))})
	if end.Kind != guest.OK || len(fuel) != 2 || fuel[0]-fuel[1] != 500 || fuel[0] > 1500 || 2000-end.Fuel > fuel[1] {
		t.Errorf("%v left, and %+v", fuel, end)
	}
	if len(walls) != 2 || walls[0] < walls[1] || walls[0] > wide {
		t.Errorf("wall times left: %v", walls)
	}
	fuel = nil
	if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK || fuel != nil {
		t.Errorf("fuel that nothing bounds: %v, %+v", fuel, end)
	}
}

// Who was given less time on the way is told of that, and not of what the launch
// said.
func TestATimeoutNamesTheTimeThatWasGiven(t *testing.T) {
	wait := abi.Func{Module: "m", Name: "wait", Call: func(ctx context.Context, _ []byte, _ []uint64) error {
		abi.ClockOf(ctx).Bound(time.Millisecond)
		<-ctx.Done()
		return ctx.Err()
	}}
	mod := compile(t, guest.Config{
		Module: module{imports: []imported{importOf(wait)}, code: call(0)}.bytes(),
		Funcs:  []abi.Func{wait},
	})
	if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.Timeout ||
		end.Given != time.Millisecond {
		t.Errorf("%+v", end)
	}
}
