package guest_test

import (
	"slices"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/guest"
)

// deep is a guest that calls itself a million times, and has much to do in each
// frame when it is returned to, all of it without a loop.
func deep(work ...[]byte) []byte {
	const depth = 1_000_000
	count := slices.Concat(i32(0), i32(0), []byte{opLoad, 2, 0}, i32(1), []byte{0x6a, 0x36, 2, 0}) // memory[0]++
	further := slices.Concat(i32(0), []byte{opLoad, 2, 0}, i32(depth), []byte{0x49, opIf, opVoid}, call(0), []byte{opEnd})
	return module{locals: 2, pages: 1, code: slices.Concat(i32(1), []byte{opLocalSet, 1}, count, further,
		slices.Concat(work...))}.bytes()
}

// Frames that are returned to look at the deadline as well as those that are
// entered, and the end is no way round it.
//
//rlp:holds K23 K24
func TestDeadlinesHoldOnTheWayBack(t *testing.T) {
	divide := []byte{opLocalGet, 0, opLocalGet, 1, 0x6e, opLocalSet, 0}
	work := slices.Repeat(divide, 500)
	apart := slices.Concat([]byte{0x02, opVoid, opLocalGet, 1, opBrIf, 0, opEnd}, work) // in a block of its own
	for name, code := range map[string][]byte{"straight": deep(work), "apart": deep(apart)} {
		mod := compile(t, guest.Config{Module: code, MemoryBytes: 256 << 20})
		end := mod.Run(t.Context(), guest.RunConfig{Wall: 100 * time.Millisecond})
		if end.Kind != guest.Timeout || end.Abandoned || end.Wall > time.Second {
			t.Errorf("%s: %+v", name, end)
		}
		for range 2 {
			end := mod.Run(t.Context(), guest.RunConfig{Wall: minute, Fuel: new(int64(100_000_000))})
			if end.Kind != guest.Fuel || end.Fuel != 100_000_000 {
				t.Errorf("%s: %+v", name, end)
			}
		}
	}
}
