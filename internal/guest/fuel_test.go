package guest_test

import (
	"testing"

	"runloop.dev/rlp/internal/guest"
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
