package guest_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

// looping calls function 0 n times: loop { f(1, 2); if --n continue }.
func looping(f abi.Func, n int) module {
	body := []byte{opLoop, opVoid}
	for range f.Params {
		body = append(body, i32(1)...)
	}
	body = append(body, call(0)...)
	for range f.Results {
		body = append(body, opDrop)
	}
	body = append(body, opLocalGet, 0)
	body = append(body, i32(1)...)
	body = append(body, 0x6b, 0x22, 0, opBrIf, 0, opEnd) // i32.sub, local.tee
	code := append(i32(uint32(n)), opLocalSet, 0)
	return module{pages: 1, locals: 1, imports: []imported{importOf(f)}, code: append(code, body...)}
}

const benchCalls = 1 << 20

var empty = abi.Func{
	Module: "m", Name: "f", Params: []abi.Type{abi.I32, abi.I32}, Results: []abi.Type{abi.I32},
	Call: func(_ context.Context, _ []byte, stack []uint64) error { stack[0] = 0; return nil },
}

// BenchmarkHostCall compares, in one run and one runtime configuration, an
// empty function given to the engine directly, the same through this package's
// table, and WASI's cheapest.
func BenchmarkHostCall(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			instance := rawInstance(b, looping(empty, benchCalls))
			b.StartTimer()
			if _, err := instance.ExportedFunction("_start").Call(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/benchCalls, "ns/call")
	})
	sys, err := wasi.New(wasi.Config{})
	if err != nil {
		b.Fatal(err)
	}
	byName := map[string]abi.Func{"table": empty}
	for _, f := range sys.Funcs() {
		byName[f.Name] = f
	}
	for _, name := range []string{"table", "sched_yield"} {
		b.Run(name, func(b *testing.B) {
			f := byName[name]
			mod := compile(b, guest.Config{Module: looping(f, benchCalls).bytes(), Funcs: []abi.Func{f}, MemoryBytes: 1 << 20})
			for b.Loop() {
				if end := mod.Run(b.Context(), guest.RunConfig{Wall: time.Minute}); end.Kind != guest.OK {
					b.Fatalf("%+v", end)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/benchCalls, "ns/call")
		})
	}
}

// rawInstance is m in the engine alone, configured as this package does it.
func rawInstance(b *testing.B, m module) api.Module {
	rt := wazero.NewRuntimeWithConfig(b.Context(), wazero.NewRuntimeConfigCompiler())
	b.Cleanup(func() { _ = rt.Close(context.Background()) })
	raw := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = 0 })
	types := []api.ValueType{api.ValueTypeI32, api.ValueTypeI32}
	_, err := rt.NewHostModuleBuilder("m").NewFunctionBuilder().WithGoModuleFunction(raw, types,
		types[:1]).Export("f").Instantiate(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	instance, err := rt.InstantiateWithConfig(b.Context(), m.bytes(), wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		b.Fatal(err)
	}
	return instance
}

// BenchmarkLaunch is compiling, linking and running: the smallest module, and a
// Go guest from a warm cache.
func BenchmarkLaunch(b *testing.B) {
	tiny := module{pages: 1, imports: []imported{importOf(exit())}}.bytes()
	large := goGuest(b)
	cache := b.TempDir() + "/cache"
	for name, wasm := range map[string][]byte{"tiny": tiny, "go": large} {
		b.Run(fmt.Sprintf("%s-%dKiB", name, len(wasm)>>10), func(b *testing.B) {
			for b.Loop() {
				sys, err := wasi.New(wasi.Config{Args: []string{"agent", "hello"}})
				if err != nil {
					b.Fatal(err)
				}
				mod, err := guest.Compile(b.Context(), guest.Config{
					Compiler: os.Executable, Module: wasm, Funcs: sys.Funcs(),
					MemoryBytes: 64 << 20, CacheDir: cache,
				})
				if err != nil {
					b.Fatal(err)
				}
				if end := mod.Run(b.Context(), guest.RunConfig{Wall: time.Minute}); end.Kind != guest.OK {
					b.Fatalf("%+v", end)
				}
				sys.Close()
				if err := mod.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
