package guest_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/guest"
)

// BenchmarkFirstInstruction is from the beginning of a run to the first thing
// that its guest does, and the whole of it, of a module that is compiled and in
// a library: the smallest one, and one written in Go.
func BenchmarkFirstInstruction(b *testing.B) {
	for name, wasm := range map[string][]byte{
		"tiny": module{pages: 1, imports: []imported{{module: "test", name: "first"}}, code: call(0)}.bytes(),
		"go":   goGuest(b),
	} {
		b.Run(name, func(b *testing.B) {
			library := guest.NewLibrary(0)
			defer library.Close()
			var began time.Time
			var first, whole, link []time.Duration
			for b.Loop() {
				sys, err := wasi.New(wasi.Config{Args: []string{"agent", "hello"}})
				if err != nil {
					b.Fatal(err)
				}
				funcs := append(sys.Funcs(), host("first", func(context.Context, []byte) error { return nil }))
				seen := false
				for i := range funcs {
					do := funcs[i].Call
					funcs[i].Call = func(ctx context.Context, mem []byte, stack []uint64) error {
						if !seen {
							seen, first = true, append(first, time.Since(began))
						}
						return do(ctx, mem, stack)
					}
				}
				started := time.Now()
				mod, err := guest.Compile(b.Context(), guest.Config{
					Compiler: os.Executable, Module: wasm, Funcs: funcs,
					MemoryBytes: 64 << 20, Library: library,
				})
				if err != nil {
					b.Fatal(err)
				}
				began = time.Now()
				link = append(link, began.Sub(started))
				end := mod.Run(b.Context(), guest.RunConfig{Wall: time.Minute})
				whole = append(whole, time.Since(began))
				if end.Kind != guest.OK {
					b.Fatalf("%+v", end)
				}
				sys.Close()
				if err := mod.Close(); err != nil {
					b.Fatal(err)
				}
			}
			for unit, list := range map[string][]time.Duration{"p50-first-us": first, "p50-run-us": whole, "p50-link-us": link} {
				slices.Sort(list)
				b.ReportMetric(float64(list[len(list)/2].Nanoseconds())/1000, unit)
			}
		})
	}
}
