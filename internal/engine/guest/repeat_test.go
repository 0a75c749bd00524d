package guest_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

// repeatable runs mod with a clock of its own and random numbers from a seed.
func repeatable(t *testing.T, prepare func(guest.Config) *guest.Module, wasm []byte, fuel *int64,
	args ...string,
) result {
	t.Helper()
	var out, errOut bytes.Buffer
	sys, err := wasi.New(wasi.Config{
		Args: append([]string{"agent"}, args...), Stdout: &out, Stderr: &errOut, Random: rand.NewChaCha8([32]byte{1}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	mod := prepare(guest.Config{Module: wasm, Funcs: sys.Funcs(), MemoryBytes: 64 << 20})
	defer mod.Close()
	end := mod.Run(t.Context(), guest.RunConfig{Wall: minute, Fuel: fuel})
	return result{end, out.String(), errOut.String()}
}

// sameRun complains unless two runs did the same to the instruction.
func sameRun(t *testing.T, what string, a, b result) {
	t.Helper()
	if a.end.Kind != b.end.Kind || a.end.Fuel != b.end.Fuel || a.out != b.out || a.errOut != b.errOut {
		t.Errorf("%s: %v after %d, %q, and %v after %d, %q", what, a.end.Kind, a.end.Fuel, tail(a.out), b.end.Kind,
			b.end.Fuel, tail(b.out))
	}
}

func tail(s string) string { return s[max(0, len(s)-80):] }

// The same module with the same input takes the same fuel and says the same,
// and with less fuel stops at the same place: whatever the processors, and in
// another engine. The last place depends on nothing but the fuel.
//
//rlp:holds K24 K35 P22
func TestARunRepeatsToTheInstruction(t *testing.T) {
	if testing.Short() {
		return // the race detector takes ten seconds to compile; TestEveryBudgetEndsAtTheSamePlace is for it
	}
	wasm, dir := goGuest(t), newCache(t)
	native := func(cfg guest.Config) *guest.Module {
		cfg.CacheDir = dir
		return compile(t, cfg)
	}
	args := []string{"work", "40"}
	whole := repeatable(t, native, wasm, nil, args...)
	if whole.end.Kind != guest.OK || strings.Count(whole.out, "\n") != 40 {
		t.Fatalf("%+v %q %q", whole.end, whole.out, whole.errOut)
	}
	fuels := []*int64{nil}
	for _, part := range []int64{1, 2, 3, 5} {
		fuels = append(fuels, new(whole.end.Fuel*part/6))
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	outputs := map[string]bool{}
	for _, fuel := range fuels {
		first := repeatable(t, native, wasm, fuel, args...)
		outputs[first.out] = true
		for _, procs := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(procs)
			sameRun(t, "again", first, repeatable(t, native, wasm, fuel, args...))
		}
	}
	if len(outputs) < 4 {
		t.Errorf("fuel ends the runs in %d places", len(outputs))
	}
	// What random numbers are is the one thing that differs without a seed.
	p := program{wasm, dir}
	if a, b := p.run(t, wasi.Config{}, minute, "work", "1"), p.run(t, wasi.Config{}, minute, "work", "1"); a.out == b.out {
		t.Errorf("without a seed twice %q", a.out)
	}
	sameRun(t, "interpreted", whole, repeatable(t, interpreter(t), wasm, nil, args...))
	sameRun(t, "interpreted, with less", repeatable(t, native, wasm, fuels[3], args...), repeatable(t, interpreter(t),
		wasm, fuels[3], args...))
}

func interpreter(t *testing.T) func(guest.Config) *guest.Module {
	return func(cfg guest.Config) *guest.Module {
		mod, err := guest.Interpret(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return mod
	}
}

// A guest that is no Go program: every budget ends it where the other engine
// does, with the host's charges in between.
//
//rlp:holds K35
func TestEveryBudgetEndsAtTheSamePlace(t *testing.T) {
	calls := 0
	f := working(&calls)
	m := module{
		locals: 1, pages: 1, imports: []imported{importOf(f)},
		code: slices.Concat([]byte{opLoop, opVoid, opLocalGet, 0}, i32(0), call(0), grow(0), []byte{opLocalGet, 0}, i32(7),
			[]byte{0x6a, opLocalSet, 0, opBr, 0, opEnd}),
	}
	cfg := guest.Config{Module: m.bytes(), Funcs: []abi.Func{f}, MemoryBytes: 1 << 20}
	native, interpreted := compile(t, cfg), interpreter(t)(cfg)
	defer interpreted.Close()
	most := 0
	for fuel := int64(0); fuel < 9000; fuel += 13 {
		calls = 0
		a := native.Run(t.Context(), guest.RunConfig{Wall: wide, Fuel: &fuel})
		first := calls
		calls = 0
		b := interpreted.Run(t.Context(), guest.RunConfig{Wall: wide, Fuel: &fuel})
		if a.Kind != guest.Fuel || b.Kind != guest.Fuel || a.Fuel != fuel || b.Fuel != fuel || first != calls ||
			calls < most {
			t.Fatalf("%d: %+v after %d calls, %+v after %d", fuel, a, first, b, calls)
		}
		most = calls
	}
	if most < 10 {
		t.Errorf("%d calls at most", most)
	}
}
