package guest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/guest"
)

// BenchmarkLoad makes a Go guest ready to run, from this package's cache (with
// metering) and by the engine alone from its own (without), and with nothing in
// either. All take turns; medians.
func BenchmarkLoad(b *testing.B) {
	wasm := goGuest(b)
	sys, err := wasi.New(wasi.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer sys.Close()
	ours := func(dir string) {
		mod, err := guest.Compile(b.Context(), guest.Config{
			Compiler: os.Executable, Module: wasm, Funcs: sys.Funcs(),
			CacheDir: dir,
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := mod.Close(); err != nil {
			b.Fatal(err)
		}
	}
	warm, engine := filepath.Join(b.TempDir(), "cache"), b.TempDir()
	ours(warm)
	engineLoads(b, wasm, engine)
	var times [4][]time.Duration
	for b.Loop() {
		for i, f := range []func(){
			func() { ours(warm) },
			func() { engineLoads(b, wasm, engine) },
			func() { ours(filepath.Join(b.TempDir(), "cold")) },
			func() { engineLoads(b, wasm, b.TempDir()) },
		} {
			for range map[bool]int{true: 5, false: 1}[i < 2] {
				began := time.Now()
				f()
				times[i] = append(times[i], time.Since(began))
			}
		}
	}
	for i, unit := range []string{"ns/warm", "ns/engine_warm", "ns/cold", "ns/engine_cold"} {
		slices.Sort(times[i])
		b.ReportMetric(float64(times[i][len(times[i])/2]), unit)
	}
}

// engineLoads is the engine alone with a cache in dir.
func engineLoads(b *testing.B, wasm []byte, dir string) {
	ctx := context.Background()
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	rt := wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithCompilationCache(cache))
	if _, err := rt.CompileModule(experimental.WithCompilationWorkers(ctx, 2), wasm); err != nil {
		b.Fatal(err)
	}
	_, _ = rt.Close(ctx), cache.Close(ctx)
}
