package main

import (
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/dev/tools/bench/report"
	"runloop.dev/rlp/internal/dev/tools/bench/wasm"
)

// compiled is a module that does nothing, ready to be instantiated.
func compiled(b *testing.B) (wazero.Runtime, wazero.CompiledModule) {
	rt := wazero.NewRuntimeWithConfig(b.Context(), wazero.NewRuntimeConfigCompiler())
	m, err := rt.CompileModule(b.Context(), wasm.Nothing("run", nil))
	if err != nil {
		b.Fatal(err)
	}
	return rt, m
}

// called is an instance that has been called once.
func called(b *testing.B, rt wazero.Runtime, m wazero.CompiledModule) (api.Module, error) {
	instance, err := rt.InstantiateModule(b.Context(), m, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	_, err = instance.ExportedFunction("run").Call(b.Context())
	return instance, err
}

// BenchmarkInstantiate is an instance of a compiled module, one call of it that
// does nothing, and its end.
func BenchmarkInstantiate(b *testing.B) {
	rt, m := compiled(b)
	defer rt.Close(b.Context())
	report.Median(b, func() error {
		instance, err := called(b, rt, m)
		if err != nil {
			return err
		}
		return instance.Close(b.Context())
	})
}

// BenchmarkIdle is what a thousand instances that were called once and wait
// take of the machine's memory, each.
func BenchmarkIdle(b *testing.B) {
	for b.Loop() {
		rt, m := compiled(b)
		report.Each(b, 1000, func() error {
			_, err := called(b, rt, m)
			return err
		})
		rt.Close(b.Context())
	}
}
