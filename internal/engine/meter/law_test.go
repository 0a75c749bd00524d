package meter_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"runloop.dev/rlp/internal/engine/meter"
)

// lawful checks one random program: rewritten it does what it did, and costs
// the same on both engines and by slices of any size, to its end and to its
// exhaustion; to a trap, on both engines by the same slices.
func lawful(t testing.TB, benches map[string]*bench, seed uint64, slice int64) (ended bool) {
	t.Helper()
	wasm := randomModule(seed)
	metered := rewrite(t, wasm)
	if !bytes.Equal(metered, rewrite(t, wasm)) {
		t.Fatalf("seed %d: rewritten differently the second time", seed)
	}
	a, b := seed%7, seed%11
	want, _ := benches["compiler"].play(t, wasm, 0, 0, "1", a, b)
	cost := int64(-1)
	for engine, p := range benches {
		for _, s := range []int64{meter.DefaultSlice, slice} {
			got, left := p.play(t, metered, plenty, s, "1", a, b)
			if got != want {
				t.Fatalf("seed %d, %s, slice %d: %+v, rewritten %+v", seed, engine, s, want, got)
			}
			if cost < 0 {
				cost = plenty - left
			}
			// What a trap interrupts is known as of the last slice.
			if plenty-left != cost && (want.err == "" || s == meter.DefaultSlice) {
				t.Fatalf("seed %d, %s, slice %d: cost %d and %d", seed, engine, s, cost, plenty-left)
			}
		}
	}
	for budget := cost / 7; budget < cost; budget += 1 + cost/7 {
		first, left := benches["compiler"].play(t, metered, budget, 0, "1", a, b)
		if !strings.HasPrefix(want.outputs, strings.TrimSuffix(first.outputs, "]")) {
			t.Fatalf("seed %d: with %d of %d it wrote %s, with all %s", seed, budget, cost, first.outputs, want.outputs)
		}
		for engine, p := range benches {
			again, leftAgain := p.play(t, metered, budget, slice, "1", a, b)
			if first != again || left != leftAgain {
				t.Fatalf("seed %d, %s, budget %d, slice %d: %+v %d, by large slices %+v %d", seed, engine, budget, slice, again,
					leftAgain, first, left)
			}
		}
	}
	return want.err == ""
}

func bothEngines(t testing.TB) map[string]*bench {
	t.Helper()
	list := map[string]*bench{}
	for name, cfg := range engines() {
		list[name] = newBench(t, cfg)
	}
	return list
}

// The law of fuel, on random programs.
func TestRandomPrograms(t *testing.T) {
	benches := bothEngines(t)
	ended, n := 0, uint64(size(120, 30, 20_000))
	for seed := range n {
		slice := []int64{1, 2, 5, 17, 100, 999, 1_000_000}[seed%7]
		if lawful(t, benches, seed, slice) {
			ended++
		}
	}
	if ended < int(n)/4 || ended == int(n) {
		t.Errorf("of %d programs %d came to an end: too few, or no traps among them", n, ended)
	}
}

// FuzzPrograms is the same law, on as many programs as there is time for.
func FuzzPrograms(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(seed+1000, uint32(seed*1000))
	}
	f.Fuzz(func(t *testing.T, seed uint64, slice uint32) {
		lawful(t, bothEngines(t), seed, 1+int64(slice%1_000_000))
	})
}

// Every computation without an end comes to one, where the budget is.
func TestEndlessComputations(t *testing.T) {
	budget := int64(size(3_000_000, 400_000, 30_000_000))
	endless := map[string]string{
		"loop":      "loop; br 0; end; get 0",
		"loops":     "loop; loop; get 0; br_if 1; br 0; end; end; get 0",
		"recursion": "get 0; call 3; drop; get 0; call 3",
		"fill": "loop; i32 0; i32 1; i32 65536; memory.fill; i32 0; i32 1; i32 65535; memory.copy; br 0; end; " +
			"get 0",
		"fills, no loop":   strings.Repeat("i32 0; i32 1; i32 65536; memory.fill; ", 500) + "get 0",
		"growing":          "loop; i32 0; memory.grow; drop; br 0; end; get 0",
		"without an entry": "loop; get 0; br_table 0 0; end; get 0",
	}
	for engine, p := range bothEngines(t) {
		for name, code := range endless {
			wasm := testModule{fns: []fn{
				{sig: sig{i32, i32}, code: code},
				{sig: sig{"", ""}, code: "loop; br 0; end"},
				{sig: sig{i32, i32}, code: "get 0; if i32; get 0; i32 1; sub; call 3; get 0; i32 1; sub; call 3; add; else; i32 " +
					"1; end"},
			}}.bytes()
			start := time.Now()
			s, left := p.play(t, rewrite(t, wasm), budget, 0, "1", 30)
			if s.err != errExhausted.Error() || left > budget || left < -100_000 {
				t.Errorf("%s: %s: %q, %d left", engine, name, s.err, left)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("%s: %s took %v", engine, name, d)
			}
		}
	}
}

// A guest that calls itself as deep as it can, with much to do behind the call,
// asks for fuel on its way back as often as on any other.
func TestUnwinding(t *testing.T) {
	const depth, tail, slice = 1000, 400, 4000
	after := strings.Repeat("get 0; i32 3; mul; set 0; ", tail/4)
	down := "get 0; i32 1; sub; call 1; drop; "
	for name, code := range map[string]string{
		"straight on": "get 0; if; " + down + "else; get 0; call 0; end; " + after + "get 0",
		"in an arm":   "get 0; if; " + down + "get 0; if; " + after + "end; else; get 0; call 0; end; get 0",
		"and returns": "get 0; eqz; if; get 0; call 0; i32 1; return; end; " + down + after + "get 0; return",
		"by a table": "get 0; if; get 0; i32 1; sub; i32 0; call_indirect 2; drop; else; get 0; call 0; end; " + after +
			"get 0",
		"and calls leaves": "get 0; if; " + down + "else; get 0; call 0; end; " + strings.Repeat("get 0; call 2; drop; ",
			tail/20) + "get 0",
	} {
		leaf := strings.Repeat("get 0; i32 3; mul; set 0; ", 5) + "get 0"
		wasm := testModule{fns: []fn{{sig: sig{i32, i32}, code: code}, {sig: sig{i32, i32}, code: leaf}}}.bytes()
		for engine, p := range bothEngines(t) {
			s, _ := p.play(t, rewrite(t, wasm), plenty, slice, "1", depth)
			if p.refills < depth*tail/slice/2 || s.outputs != "[0]" {
				t.Errorf("%s: %s: asked %d times on its way back, %+v", engine, name, p.refills, s)
			}
		}
	}
}

// What a loop changes is the same behind a refill, of whatever type it is and
// to the bit: these floats are signalling.
func TestLocalsSurviveRefills(t *testing.T) {
	code := "i32 2141192193; f32.bits; set 2; i64 9221120237041090577; f64.bits; set 3; " +
		"loop; " +
		"get 1; i64 4294967297; i64.add; set 1; " +
		"get 2; i32.bits; i32 3; add; f32.bits; set 2; " +
		"get 3; i64.bits; i64 5; i64.add; f64.bits; set 3; " +
		"get 0; i32 1; sub; tee 0; br_if 0; end; " +
		"get 1; wrap; call 0; get 2; i32.bits; call 0; get 3; i64.bits; wrap; call 0; i32 0"
	wasm := testModule{fns: []fn{{sig: sig{i32, i32}, locals: i64 + f32 + f64, code: code}}}.bytes()
	const n = 50
	want := fmt.Sprint([]uint32{n, 2141192193 + 3*n, uint32(9221120237041090577&0xffffffff) + 5*n})
	for engine, p := range bothEngines(t) {
		for _, slice := range []int64{1, 10, 100, 0} {
			if s, _ := p.play(t, rewrite(t, wasm), plenty, slice, "1", n); s.err != "" || s.outputs != want {
				t.Errorf("%s: by slices of %d: %+v, want %s", engine, slice, s, want)
			}
		}
	}
}

// A start function is metered like any other.
func TestStartFunction(t *testing.T) {
	wasm := testModule{start: 2, fns: []fn{
		{sig: sig{"", i32}, code: "i32 1"},
		{sig: sig{"", ""}, code: "i32 5; call 0; loop; br 0; end"},
	}}.bytes()
	for engine, p := range bothEngines(t) {
		s, _ := p.play(t, rewrite(t, wasm), 1_000_000, 0, "1")
		if s.err != errExhausted.Error() || s.outputs != "[5]" {
			t.Errorf("%s: %+v", engine, s)
		}
	}
}

// What the host surplus for its own work counts at once and to the unit.
func TestHostWork(t *testing.T) {
	wasm := testModule{fns: []fn{{
		sig:  sig{i32, i32},
		code: "loop; get 0; call 0; get 0; i32 1; sub; tee 0; br_if 0; end; get 0",
	}}}.bytes()
	for engine, p := range bothEngines(t) {
		p.hostFee = 1000
		for _, slice := range []int64{1, 100, 1500, 0} {
			s, left := p.play(t, rewrite(t, wasm), plenty, slice, "1", 5)
			if cost := int64(plenty) - left; cost != 5*1007+1 || s.err != "" {
				t.Errorf("%s: slice %d: cost %d, %s", engine, slice, cost, s.err)
			}
			if s, _ := p.play(t, rewrite(t, wasm), 3500, slice, "1", 5); s.err != errExhausted.Error() ||
				s.outputs != "[5 4 3 2]" {
				t.Errorf("%s: slice %d: %+v", engine, slice, s)
			}
		}
	}
}

// Real guests do the same rewritten, and cost the same wherever they run.
func TestRealGuests(t *testing.T) {
	c, ok := cGuest(t)
	if ok {
		sameGuest(t, c, 1.4, kernels[:size(len(kernels), 2, len(kernels))], "strings")
	}
	if !ok || !testing.Short() {
		sameGuest(t, goGuest(t, "./testdata/kernels"), 1.25, []string{"fib", "sha256", "json", "none"}, "none")
	}
}

// sameGuest runs a guest both ways, and one kernel of it on the interpreter.
func sameGuest(t *testing.T, wasm []byte, most float64, kernels []string, slowly string) {
	t.Helper()
	out := rewrite(t, wasm)
	if growth := float64(len(out)) / float64(len(wasm)); growth > most {
		t.Errorf("it grew to %.3f of its size", growth)
	}
	plain := newProgram(t, features(wazero.NewRuntimeConfigCompiler()), wasm)
	metered := newProgram(t, features(wazero.NewRuntimeConfigCompiler()), out)
	for _, kernel := range kernels {
		want := plain.run(t, meter.NewFuel(0, 0), kernel)
		first := metered.run(t, meter.NewFuel(plenty, 0), kernel)
		again := metered.run(t, meter.NewFuel(plenty, 1234), kernel)
		if first.out != want.out || first.err != want.err || first != again || first.left == plenty {
			t.Errorf("%s: %.300v, rewritten %.300v, by slices %.300v", kernel, want, first, again)
		}
		if kernel == slowly && !testing.Short() {
			slow := newProgram(t, features(wazero.NewRuntimeConfigInterpreter()), out)
			if e := slow.run(t, meter.NewFuel(plenty, 0), kernel); e != first {
				t.Errorf("%s: %.300v, by the interpreter %.300v", kernel, first, e)
			}
		}
		if e := metered.run(t, meter.NewFuel((plenty-first.left)/2, 0), kernel); e.err != errExhausted.Error() {
			t.Errorf("%s with half of its fuel: %+v", kernel, e)
		}
	}
}
