package meter_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"runloop.dev/rlp/internal/meter"
)

var kernels = []string{"sieve", "fib", "matmul", "sha256", "json", "sort", "strings", "fill"}

// BenchmarkOverhead is what metering costs a guest: each kernel of a Go guest,
// original and rewritten in turn, on the compiler; the best of each counts.
func BenchmarkOverhead(b *testing.B) {
	wasm := goGuest(b, "./testdata/kernels")
	cfg := features(wazero.NewRuntimeConfigCompiler())
	plain, metered := newProgram(b, cfg, wasm), newProgram(b, cfg, rewrite(b, wasm))
	logs, n := 0.0, 0
	for _, kernel := range kernels {
		b.Run(kernel, func(b *testing.B) {
			tank := meter.NewTank(plenty, 0)
			best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
			for b.Loop() {
				for i, p := range []*program{plain, metered} {
					start := time.Now()
					if e := p.run(b, tank, kernel); e.err != "" {
						b.Fatal(e)
					}
					best[i] = min(best[i], time.Since(start))
				}
			}
			ratio := float64(best[1]) / float64(best[0])
			b.ReportMetric(ratio, "ratio")
			b.ReportMetric(float64(best[0].Microseconds())/1000, "ms-plain")
			logs, n = logs+math.Log(ratio), n+1
		})
	}
	fmt.Printf("geometric mean %.3f of %d\n", math.Exp(logs/float64(n)), n)
}

// BenchmarkRewrite is how fast a module is rewritten, and how much it grows.
func BenchmarkRewrite(b *testing.B) {
	wasm := goGuest(b, "./testdata/kernels")
	out := rewrite(b, wasm)
	b.SetBytes(int64(len(wasm)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := meter.Rewrite(wasm, meter.Option{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(out))/float64(len(wasm)), "size")
}
