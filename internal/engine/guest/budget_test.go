package guest_test

import (
	"bytes"
	"slices"
	"testing"

	"runloop.dev/rlp/internal/engine/guest"
)

// calls is a module whose _start calls f, which has as many i64 locals, does body
// and then calls itself.
func calls(locals uint32, body []byte) []byte {
	code := slices.Concat(u(1), u(locals), []byte{0x7e}, body, call(1), []byte{opEnd})
	start := slices.Concat(u(0), call(1), []byte{opEnd})
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, u(1), []byte{0x60, 0, 0}),
		section(3, u(2), u(0), u(0)),
		section(4, u(1), []byte{0x70, 0, 0}),
		section(5, u(1), []byte{0}, u(1)),
		section(7, u(1), text("_start"), []byte{0}, u(0)),
		section(9, u(1), []byte{3, 0}, u(1), u(1)), // f is declared, so that code may refer to it
		section(10, u(2), u(uint32(len(start))), start, u(uint32(len(code))), code),
	)
}

const mib = 1 << 20

// What a guest makes the host hold beside its memory counts as memory: its calls,
// its tables and the references that it makes. Control: a larger limit lets it go
// on.
func TestMemoryBoundsAllThatAGuestMakesTheHostHold(t *testing.T) {
	tables := slices.Concat([]byte{opLoop, opVoid, 0xd0, 0x70}, i32(1000), []byte{0xfc, 15, 0, opDrop, opBr, 0, opEnd})
	references := []byte{opLoop, opVoid, 0xd2, 1, opDrop, opBr, 0, opEnd}
	for name, c := range map[string]struct {
		module []byte
		wide   guest.Kind // how it ends with a lot of memory
	}{
		"calls":      {calls(1, nil), guest.Trap},
		"tables":     {calls(1, tables), guest.Fuel},
		"references": {calls(1, references), guest.Fuel},
	} {
		fuel := int64(10_000_000)
		if testing.Short() && name == "references" { // under the race detector a minute is too short for more
			fuel = 1_000_000
		}
		for _, limit := range []int64{mib, 3 * mib, 500 * mib} {
			want := guest.Memory
			if limit == 500*mib {
				want = c.wide
			}
			mod := compile(t, guest.Config{Module: c.module, MemoryBytes: limit})
			end := mod.Run(t.Context(), guest.RunConfig{Wall: wide, Fuel: new(fuel)})
			if end.Kind != want || end.PeakMemory > limit {
				t.Errorf("%s with %d MiB: %+v", name, limit/mib, end)
			}
			if want == guest.Memory && end.PeakMemory < limit/2 {
				t.Errorf("%s with %d MiB: only %d bytes are told", name, limit/mib, end.PeakMemory)
			}
		}
	}
}

// The memory and the stack share one limit, whichever is first.
func TestMemoryAndStackShareALimit(t *testing.T) {
	// if there are less than two pages
	once := slices.Concat([]byte{0x3f, 0}, i32(2), []byte{0x49, opIf, opVoid}, grow(30*16), []byte{opEnd})
	for name, c := range map[string]struct {
		body  []byte
		limit int64
		kind  guest.Kind
	}{
		"control: room for both":  {once, 200 * mib, guest.Trap},
		"a stack beside a memory": {once, 60 * mib, guest.Memory},
		"a memory beside a stack": {grow(1), 60 * mib, guest.Memory},
		"the stack alone":         {nil, 60 * mib, guest.Memory},
	} {
		mod := compile(t, guest.Config{Module: calls(1, c.body), MemoryBytes: c.limit})
		if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != c.kind || end.PeakMemory > c.limit {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

// Frames as large as frames get are told of as others are: they leave pages between
// them untouched.
func TestLargeFramesAreTold(t *testing.T) {
	const params, limit = 1000, 3 * mib
	types, code := u(params), u(0)
	for i := range uint32(params) {
		types, code = append(types, 0x7e), slices.Concat(code, []byte{0x20}, u(i))
	}
	code = slices.Concat(code, call(1), []byte{opEnd})
	start := slices.Concat(u(0), bytes.Repeat([]byte{0x42, 0}, params), call(1), []byte{opEnd})
	wasm := slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, u(2), []byte{0x60, 0, 0, 0x60}, types, u(0)),
		section(3, u(2), u(0), u(1)),
		section(5, u(1), []byte{0}, u(1)),
		section(7, u(1), text("_start"), []byte{0}, u(0)),
		section(10, u(2), u(uint32(len(start))), start, u(uint32(len(code))), code),
	)
	for _, module := range [][]byte{wasm, calls(1, nil)} {
		if end := runWith(t, guest.Config{Module: module, MemoryBytes: limit}, wide); end.Kind != guest.Memory ||
			end.PeakMemory < limit*9/10 || end.PeakMemory > limit {
			t.Errorf("%+v", end)
		}
	}
}

// What a start section does counts as what _start does.
func TestStartSectionsHaveNoStackOfTheirOwn(t *testing.T) {
	m := module{start: true, code: call(0)}
	if end := runWith(t, guest.Config{Module: m.bytes(), MemoryBytes: mib}, wide); end.Kind != guest.Memory ||
		end.PeakMemory > mib {
		t.Errorf("%+v", end)
	}
}

// Many guests at once take no more than their limits together, whatever each does
// with its own.
func TestManyGuestsStayWithinTheirLimits(t *testing.T) {
	const guests, limit = 40, mib
	frames, deep := calls(500, nil), calls(1, nil)
	ends := make(chan guest.End, guests)
	for i := range guests {
		mod := compile(t, guest.Config{Module: [][]byte{frames, deep}[i%2], MemoryBytes: limit})
		go func() { ends <- mod.Run(t.Context(), guest.RunConfig{Wall: wide}) }()
	}
	total := int64(0)
	for range guests {
		end := <-ends
		if end.Kind != guest.Memory {
			t.Errorf("%+v", end)
		}
		total += end.PeakMemory
	}
	if total > guests*limit {
		t.Errorf("together they took %d bytes", total)
	}
}
