package wasm_test

import (
	"bytes"
	"context"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"runloop.dev/rlp/internal/dev/tools/bench/wasm"
)

func TestSays(t *testing.T) {
	rt := wazero.NewRuntime(t.Context())
	defer rt.Close(context.Background())
	wasi_snapshot_preview1.MustInstantiate(t.Context(), rt)
	var out bytes.Buffer
	_, err := rt.InstantiateWithConfig(t.Context(), wasm.Says("ok\n"), wazero.NewModuleConfig().WithStdout(&out))
	if err != nil || out.String() != "ok\n" {
		t.Errorf("it said %q, %v", out.String(), err)
	}
}

func TestTimes(t *testing.T) {
	rt := wazero.NewRuntime(t.Context())
	defer rt.Close(context.Background())
	calls := 0
	if _, err := rt.NewHostModuleBuilder("m").NewFunctionBuilder().WithFunc(func() { calls++ }).Export("f").Instantiate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, 200} {
		calls = 0
		m := wasm.Module{
			Imports: []wasm.Func{{Module: "m", Name: "f"}}, Locals: []wasm.Type{wasm.I32},
			Code: wasm.Times(0, n, wasm.Call(0)), Pages: 1,
		}
		mod, err := rt.InstantiateWithConfig(t.Context(), m.Bytes(), wazero.NewModuleConfig())
		if err != nil || calls != n {
			t.Fatalf("%d calls, %v", calls, err)
		}
		if err := mod.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mod, err := rt.InstantiateWithConfig(t.Context(), wasm.Nothing("run", []wasm.Type{wasm.I32}), wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := mod.ExportedFunction("run").Call(t.Context()); err != nil || len(got) != 1 || got[0] != 0 {
		t.Errorf("it returned %v, %v", got, err)
	}
}

func TestSteps(t *testing.T) {
	rt := wazero.NewRuntime(t.Context())
	defer rt.Close(context.Background())
	wasi_snapshot_preview1.MustInstantiate(t.Context(), rt)
	var slept []int64
	looked := looks{}
	config := wazero.NewModuleConfig().WithNanosleep(func(ns int64) { slept = append(slept, ns) }).
		WithFSConfig(wazero.NewFSConfig().WithFSMount(looked, "/"))
	if _, err := rt.InstantiateWithConfig(t.Context(), wasm.Steps(3, 5*time.Millisecond), config); err != nil {
		t.Fatal(err)
	}
	if len(slept) != 3 || slept[0] != 5_000_000 || looked["x"] != 3 {
		t.Errorf("it slept %v and looked at %v", slept, looked)
	}
}

// looks counts by name what is opened.
type looks map[string]int

func (l looks) Open(name string) (fs.File, error) {
	l[name]++
	return fstest.MapFS{}.Open(name)
}
