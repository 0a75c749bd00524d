package meter_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/engine/meter"
)

// moving is a module with 40 pages that can grow to 64: function 1 copies,
// function 2 fills.
func moving(t *testing.T) []byte {
	three := sig{i32 + i32 + i32, ""}
	wasm := testModule{fns: []fn{
		{sig: three, code: "get 0; get 1; get 2; memory.copy"},
		{sig: three, code: "get 0; get 1; get 2; memory.fill"},
	}}.bytes()
	out := bytes.Replace(wasm, []byte{5, 4, 1, 1, 1, 4}, []byte{5, 4, 1, 1, 40, 64}, 1)
	if bytes.Equal(wasm, out) {
		t.Fatal("no memory section")
	}
	return out
}

// A mover is an instance whose memory is the same at the beginning of each call.
type mover struct {
	mod   api.Module
	bench *bench
}

func newMover(t *testing.T, cfg wazero.RuntimeConfig, wasm []byte) *mover {
	t.Helper()
	b := newBench(t, cfg)
	m := &mover{bench: b}
	*b.fuel = *meter.NewFuel(plenty, 0)
	var err error
	if m.mod, err = b.rt.InstantiateWithConfig(t.Context(), wasm,
		wazero.NewModuleConfig().WithName("").WithStartFunctions()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.mod.Close(context.Background()) })
	return m
}

func (m *mover) call(t *testing.T, begin []byte, name string, args ...uint64) (string, [32]byte) {
	t.Helper()
	mem, _ := m.mod.Memory().Read(0, m.mod.Memory().Size())
	copy(mem, begin)
	_, err := m.mod.ExportedFunction(name).Call(t.Context(), args...)
	return outcome(err), sha256.Sum256(mem)
}

// However much is copied or filled, from where to where, in pieces it is the
// same as at once, and what fails has done nothing.
func TestPiecesMakeTheWhole(t *testing.T) {
	const size = 40 << 16
	wasm := moving(t)
	cfg := features(wazero.NewRuntimeConfigCompiler())
	whole, parts := newMover(t, cfg, wasm), newMover(t, cfg, rewrite(t, wasm))
	r := rand.New(rand.NewPCG(1, 2))
	begin := make([]byte, size)
	for i := range begin {
		begin[i] = byte(r.Uint32())
	}
	const piece = 1 << 20
	cases := [][3]uint64{
		{0, 0, size},
		{0, 64, size - 64},
		{64, 0, size - 64},
		{0, piece, size - piece},
		{piece, 0, size - piece},
		{0, 1, piece},
		{0, 1, piece + 1},
		{1, 0, piece + 1},
		{1, 0, 2 * piece},
		{1, 0, 2*piece + 1},
		{0, 0, size + 1},
		{1, 0, size},
		{0, 1, size},
		{1<<32 - 1, 0, 2 * piece},
		{0, 1<<32 - 1, 2 * piece},
		{0, 0, 1<<32 - 1},
	}
	for range 60 {
		n := uint64(r.IntN(size))
		cases = append(cases, [3]uint64{uint64(r.IntN(size)) % (size - n + 5), uint64(r.IntN(size)) % (size - n + 5), n})
	}
	failed := 0
	for _, c := range cases {
		for _, name := range []string{"1", "2"} {
			wantErr, want := whole.call(t, begin, name, c[:]...)
			gotErr, got := parts.call(t, begin, name, c[:]...)
			if wantErr != gotErr || want != got {
				t.Errorf("function %s of %v: %q, not %q; the memory is the same: %t", name, c, gotErr, wantErr, want == got)
			}
			if wantErr != "" {
				failed++
			}
		}
	}
	parts.bench.refills = 0
	parts.call(t, begin, "2", 0, 0, 2*piece+1)
	if n := parts.bench.refills; n < 2 {
		t.Errorf("the host had %d turns", n)
	}
	if failed < 8 || failed > len(cases) {
		t.Errorf("%d of %d failed", failed, 2*len(cases))
	}
}
