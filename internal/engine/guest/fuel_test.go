package guest_test

import (
	"context"
	"slices"
	"testing"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/engine/meter"
)

// Fuel ends a run that would not end, always at the same instruction.
//
//rlp:holds K24 K25
func TestFuelEndsComputing(t *testing.T) {
	for name, m := range map[string]module{
		"_start":        {code: spin()},
		"start section": {code: spin(), start: true},
		"recursion":     {code: append(call(0), call(0)...)},
	} {
		mod := compile(t, guest.Config{Module: m.bytes()})
		for range 3 {
			end := mod.Run(t.Context(), guest.RunConfig{Wall: wide, Fuel: new(int64(1_000))})
			if end.Kind != guest.Fuel || end.Fuel != 1_000 || end.Abandoned {
				t.Errorf("%s: %+v", name, end)
			}
		}
	}
}

// working is a host function with charges, and how often it was called.
func working(calls *int) abi.Func {
	var moved int64
	return abi.Func{
		Module: "m", Name: "work", Params: []abi.Type{abi.I32, abi.I32}, Cost: 500, Moved: &moved,
		Call: func(_ context.Context, _ []byte, stack []uint64) error {
			*calls++
			moved += int64(uint32(stack[0]))
			return nil
		},
	}
}

// A run takes what it takes: with so much fuel it ends by itself, with one
// instruction less it does not, and the host's work counts as the guest's.
//
//rlp:holds K24 K25
func TestHostWorkIsCharged(t *testing.T) {
	calls := 0
	f := working(&calls)
	work := slices.Concat(i32(2000), i32(0), call(0))
	mod := compile(t, guest.Config{Module: module{imports: []imported{importOf(f)}, code: slices.Concat(work, work,
		work)}.bytes(), Funcs: []abi.Func{f}})
	run := func(fuel *int64) (guest.End, int) {
		calls = 0
		return mod.Run(t.Context(), guest.RunConfig{Wall: wide, Fuel: fuel}), calls
	}
	free, _ := run(nil)
	if free.Kind != guest.OK || free.Fuel <= 3*2500 || free.Fuel > 3*2500+50 {
		t.Fatalf("%+v", free)
	}
	for _, c := range []struct {
		fuel  int64
		kind  guest.Kind
		calls int
	}{
		{free.Fuel, guest.OK, 3},
		{free.Fuel - 1, guest.Fuel, 3},
		{2*2500 + 400, guest.Fuel, 2},
		{2*2500 - 100, guest.Fuel, 2},
		{2500 + 400, guest.Fuel, 1},
		{500, guest.Fuel, 0},
		{1, guest.Fuel, 0},
		{0, guest.Fuel, 0},
	} {
		end, calls := run(&c.fuel)
		if end.Kind != c.kind || end.Fuel != c.fuel || calls != c.calls {
			t.Errorf("with %d: %+v, %d calls", c.fuel, end, calls)
		}
	}
}

// What the budget does not reach is not done by ending before anyone looks.
func TestTheEndIsALookToo(t *testing.T) {
	for name, tail := range map[string][]byte{"return": nil, "exit": append(i32(0), call(0)...)} {
		m := module{imports: []imported{importOf(exit())}, code: append(slices.Repeat(append(i32(1), opDrop), 100), tail...)}
		mod := compile(t, guest.Config{Module: m.bytes(), Funcs: []abi.Func{exit()}})
		if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide, Fuel: new(int64(10))}); end.Kind != guest.Fuel ||
			end.Fuel != 10 {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

// A trap loses what was counted since the guest last asked for more, and no
// more than that.
func TestATrapIsCountedUpToTheLastSlice(t *testing.T) {
	code := slices.Concat(counting(10_000_000).code, []byte{opUnreachable})
	mod := compile(t, guest.Config{Module: module{locals: 1, code: code}.bytes()})
	whole := compile(t, guest.Config{Module: counting(10_000_000).bytes()})
	want := whole.Run(t.Context(), guest.RunConfig{Wall: wide}).Fuel
	for range 2 {
		end := mod.Run(t.Context(), guest.RunConfig{Wall: wide})
		if end.Kind != guest.Trap || end.Fuel > want+10 || end.Fuel < want-meter.DefaultSlice-10 || want < 10_000_000 {
			t.Errorf("%+v, and %d without the trap", end, want)
		}
	}
}
