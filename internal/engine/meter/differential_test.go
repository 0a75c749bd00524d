package meter_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/engine/meter"
)

// bench is a module in an engine, with what it wrote.
type bench struct {
	rt      wazero.Runtime
	fuel    *meter.Fuel
	outputs []uint32
	refills int   // since the last output
	hostFee int64 // what env.out costs besides
}

func newBench(t testing.TB, cfg wazero.RuntimeConfig) *bench {
	t.Helper()
	b := &bench{rt: newRuntime(t, cfg), fuel: &meter.Fuel{}}
	serve(t, b.rt, b.fuel, func() { b.refills++ })
	out := func(_ context.Context, mod api.Module, stack []uint64) {
		b.outputs = append(b.outputs, uint32(stack[0]))
		b.refills = 0
		if b.hostFee > 0 {
			counter := counterOf(mod)
			counter.Set(counter.Get() - uint64(b.hostFee))
			if b.fuel.Left(int64(counter.Get())) < 0 {
				panic(errExhausted)
			}
		}
	}
	_, err := b.rt.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(out), []api.ValueType{api.ValueTypeI32},
			nil).Export("out").Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seen is all that a guest can be seen by.
type seen struct {
	results, err, memory, outputs string
	global                        uint64
}

// play instantiates wasm, calls each function named with args, and says what
// there was to see, and what is left of the budget.
func (b *bench) play(t testing.TB, wasm []byte, budget, slice int64, call string, args ...uint64) (seen, int64) {
	t.Helper()
	*b.fuel = *meter.NewFuel(budget, slice)
	b.outputs = nil
	compiled, err := b.rt.CompileModule(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	defer compiled.Close(context.Background())
	mod, err := begun(b.rt.InstantiateModule(t.Context(), compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions()))
	if err != nil {
		return seen{err: outcome(err), outputs: fmt.Sprint(b.outputs)}, 0
	}
	defer mod.Close(context.Background())
	results, err := mod.ExportedFunction(call).Call(t.Context(), args...)
	s := seen{
		results: fmt.Sprint(results), err: outcome(err), outputs: fmt.Sprint(b.outputs),
		global: mod.ExportedGlobal("global").Get(),
	}
	mem, _ := mod.Memory().Read(0, mod.Memory().Size())
	s.memory = fmt.Sprintf("%d %x", len(mem), sha256.Sum256(mem))
	left := int64(0)
	if mod.ExportedGlobal(meter.CounterName) != nil {
		left = b.fuel.Left(int64(counterOf(mod).Get()))
	}
	return s, left
}

// construct is a function of (i32) -> i32 and what it costs for some arguments.
type construct struct {
	name   string
	code   string
	blocks []sig // types 3, 4, ...
	costs  map[uint64]int64
}

// constructs are all that control can do, each with its price counted by hand.
// Function 2 is (i32) -> i32, gives back 3 times its argument and costs 3.
var constructs = []construct{
	{name: "empty", code: "get 0", costs: map[uint64]int64{0: 1}},
	{name: "free", code: "nop; block; nop; end; get 0; drop; get 0", costs: map[uint64]int64{0: 2}},
	{name: "return", code: "get 0; if; i32 5; return; end; i32 6", costs: map[uint64]int64{0: 3, 1: 4}},
	{name: "if", code: "get 0; if; i32 1; call 0; end; get 0", costs: map[uint64]int64{0: 3, 1: 5}},
	{name: "if else", code: "get 0; if i32; i32 1; else; i32 2; i32 3; add; end", costs: map[uint64]int64{0: 5, 1: 3}},
	{name: "if dead", code: "get 0; if; unreachable; end; i32 9", costs: map[uint64]int64{0: 3}},
	{
		name: "if both leave", code: "block; get 0; if; br 1; else; br 1; end; unreachable; end; i32 1",
		costs: map[uint64]int64{0: 4, 1: 4},
	},
	{
		name: "if with a parameter", code: "get 0; get 0; if 3; i32 1; add; else; i32 2; i32 3; add; add; end",
		blocks: []sig{{i32, i32}}, costs: map[uint64]int64{0: 7, 1: 5},
	},
	{name: "block left", code: "block; get 0; br_if 0; i32 1; call 0; end; get 0", costs: map[uint64]int64{0: 5, 1: 3}},
	{
		name: "block left twice", code: "block; block; get 0; br_if 1; i32 1; call 0; end; i32 2; call 0; end; get 0",
		costs: map[uint64]int64{0: 7, 1: 3},
	},
	{
		name: "block with results", code: "block 3; get 0; i32 7; get 0; br_if 0; drop; i32 8; end; add",
		blocks: []sig{{"", i32 + i32}}, costs: map[uint64]int64{0: 6, 2: 5},
	},
	{name: "table", code: "block; block; block; get 0; br_table 0 1 2 1; end; i32 10; return; end; i32 11; return; end; " +
		"i32 12", costs: map[uint64]int64{0: 4, 1: 4, 2: 3, 9: 4}},
	{name: "table to the end", code: "i32 4; get 0; br_table 0 0; unreachable", costs: map[uint64]int64{0: 3}},
	{name: "loop", code: "loop; get 0; if; get 0; i32 1; sub; set 0; br 1; end; end; get 0", costs: map[uint64]int64{
		0: 3,
		1: 10, 5: 38,
	}},
	{name: "loop never left back", code: "loop; get 0; call 0; end; get 0", costs: map[uint64]int64{0: 3}},
	{
		name: "loop of nothing", code: "block; loop; get 0; br_if 1; i32 1; set 0; br 0; end; end; get 0",
		costs: map[uint64]int64{0: 8, 1: 3},
	},
	{
		name: "loop with a parameter", code: "get 0; loop 3; i32 1; sub; tee 0; get 0; br_if 0; end",
		blocks: []sig{{i32, i32}}, costs: map[uint64]int64{1: 6, 3: 16},
	},
	{name: "loop in loop", code: "loop; i32 3; set 1; loop; get 1; i32 1; sub; tee 1; br_if 0; end; get 0; i32 1; sub; " +
		"tee 0; br_if 0; end; get 1", costs: map[uint64]int64{1: 23, 2: 45}},
	{name: "loop left far", code: "block; block; loop; get 0; br_if 1; get 0; eqz; br_if 2; end; end; i32 1; return; " +
		"end; i32 2", costs: map[uint64]int64{0: 6, 1: 4}},
	{
		name: "dead", code: "get 0; return; loop; br 0; end; block; i32 1; br_if 0; end; if; else; end; i32 1; call 2; drop",
		costs: map[uint64]int64{0: 2},
	},
	{name: "call", code: "get 0; call 2; call 2", costs: map[uint64]int64{1: 9}},
	{name: "call indirect", code: "get 0; i32 1; call_indirect 2", costs: map[uint64]int64{1: 6}},
	{name: "select", code: "i32 1; i32 2; get 0; select", costs: map[uint64]int64{0: 4}},
	{name: "globals", code: "get 0; global.set 0; global.get 0", costs: map[uint64]int64{0: 3}},
	{name: "fill", code: "i32 0; i32 1; get 0; memory.fill; i32 0; load", costs: map[uint64]int64{
		0: 6, 7: 6, 8: 7,
		800: 106,
	}},
	{name: "copy", code: "i32 9; i32 1; get 0; memory.copy; i32 0; load", costs: map[uint64]int64{0: 6, 16: 8}},
	{name: "init", code: "i32 9; i32 0; get 0; memory.init 0; i32 9; load", costs: map[uint64]int64{0: 6, 4: 6}},
	{
		name: "fill in a block", code: "block; get 0; br_if 0; i32 0; i32 1; i32 64; memory.fill; end; i32 0; load",
		costs: map[uint64]int64{0: 16, 1: 4},
	},
	{name: "grow", code: "get 0; memory.grow", costs: map[uint64]int64{0: 2, 1: 2 + 8192, 100: 2}},
	{name: "table grow", code: "ref.null; get 0; table.grow", costs: map[uint64]int64{0: 3, 5: 8}},
	{name: "table fill", code: "i32 0; ref.null; get 0; table.fill; i32 1", costs: map[uint64]int64{0: 5, 5: 10}},
	{name: "table copy", code: "i32 0; i32 1; get 0; table.copy; i32 1", costs: map[uint64]int64{0: 5, 2: 7}},
	{name: "references", code: "ref.func 1; is_null; ref.null; is_null; add", costs: map[uint64]int64{0: 5}},
	{
		name: "vectors and floats", code: "v128; v128; i32x4.add; i32x4.lane0; f64; f64.floor; i32.sat; add",
		costs: map[uint64]int64{0: 8},
	},
	{name: "trap", code: "i32 1; call 0; get 0; get 0; div_u; drop; unreachable"},
	{name: "trap in memory", code: "i32 -1; load"},
	{name: "fill beyond", code: "i32 60000; i32 1; i32 60000; memory.fill; i32 1"},
	{name: "indirect of another type", code: "get 0; i32 0; call_indirect 0; i32 1"},
}

func (c construct) module() []byte {
	return testModule{
		fns:    []fn{{sig: sig{i32, i32}, locals: i32, code: c.code}, {sig: sig{i32, i32}, code: "get 0; i32 3; mul"}},
		blocks: c.blocks,
	}.bytes()
}

// Each construct does the same rewritten as before, and costs what it says.
func TestConstructs(t *testing.T) {
	for engine, cfg := range engines() {
		b := newBench(t, cfg)
		for _, c := range constructs {
			wasm := c.module()
			metered := rewrite(t, wasm)
			for _, arg := range append(slices.Sorted(maps.Keys(c.costs)), 1, 2, 3) {
				want, _ := b.play(t, wasm, 0, 0, "1", arg)
				got, _ := b.play(t, metered, plenty, 0, "1", arg)
				if got != want {
					t.Errorf("%s: %s(%d): %+v, rewritten %+v", engine, c.name, arg, want, got)
				}
			}
			for arg, cost := range c.costs {
				for _, slice := range []int64{1, 3, 1000} {
					s, left := b.play(t, metered, plenty, slice, "1", arg)
					if plenty-left != cost || s.err != "" {
						t.Errorf("%s: %s(%d) by slices of %d cost %d, want %d %s", engine, c.name, arg, slice, plenty-left, cost, s.err)
					}
				}
			}
		}
	}
}
