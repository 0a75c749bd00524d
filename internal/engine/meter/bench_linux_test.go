package meter_test

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/engine/meter"
)

// guests are what is measured: programs of the same kernels, by their language.
func guests(b *testing.B) map[string][]byte {
	b.Helper()
	list := map[string][]byte{"go": goGuest(b, "./testdata/kernels")}
	if c, ok := cGuest(b); ok {
		list["c"] = c
	}
	return list
}

// BenchmarkOverhead is what metering costs a guest: each kernel, original and
// rewritten in turn, on the compiler, in processor time; the best of each
// counts. The ratio is the geometric mean: of seven kernels in Go, where fill
// is the standard library's, and of all in C.
func BenchmarkOverhead(b *testing.B) {
	list := guests(b)
	for _, lang := range slices.Sorted(maps.Keys(list)) {
		b.Run(lang, func(b *testing.B) { overhead(b, list[lang], lang == "c") })
	}
}

func overhead(b *testing.B, wasm []byte, fill bool) {
	out := rewrite(b, wasm)
	cfg := features(wazero.NewRuntimeConfigCompiler())
	both := []*program{newProgram(b, cfg, wasm), newProgram(b, cfg, out)}
	best := map[string]*[2]time.Duration{}
	for b.Loop() {
		for range size(3, 1, 3) {
			for _, kernel := range kernels {
				if best[kernel] == nil {
					best[kernel] = &[2]time.Duration{math.MaxInt64, math.MaxInt64}
				}
				for i, p := range both {
					best[kernel][i] = min(best[kernel][i], processorTime(b, p, kernel))
				}
			}
		}
	}
	logs, n, worst := 0.0, 0.0, 0.0
	for _, kernel := range kernels {
		ratio := float64(best[kernel][1]) / float64(best[kernel][0])
		b.ReportMetric(ratio, kernel)
		worst = max(worst, ratio)
		if kernel != "fill" || fill {
			logs, n = logs+math.Log(ratio), n+1
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(math.Exp(logs/n), "ratio/op")
	b.ReportMetric(worst, "worst/op")
}

// processorTime is what one run of a kernel takes of the processor: on a
// machine with other work it is steadier than the time that goes by.
func processorTime(b *testing.B, p *program, kernel string) time.Duration {
	b.Helper()
	runtime.GC()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fuel := meter.NewFuel(plenty, 0)
	start := used(b)
	if e := p.run(b, fuel, kernel); e.err != "" {
		b.Fatal(e)
	}
	return used(b) - start
}

func used(b *testing.B) time.Duration {
	b.Helper()
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkRewrite is how fast a module is rewritten, and how much it grows.
func BenchmarkRewrite(b *testing.B) {
	list := guests(b)
	for _, lang := range slices.Sorted(maps.Keys(list)) {
		b.Run(lang, func(b *testing.B) {
			wasm := list[lang]
			out := rewrite(b, wasm)
			b.SetBytes(int64(len(wasm)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := meter.Rewrite(wasm, meter.Option{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(out))/float64(len(wasm)), "size/op")
		})
	}
}

// BenchmarkCompile is how much longer the engine takes to compile a module
// that meters itself; the best of each counts.
func BenchmarkCompile(b *testing.B) {
	list := guests(b)
	for _, lang := range slices.Sorted(maps.Keys(list)) {
		b.Run(lang, func(b *testing.B) {
			rt := newRuntime(b, features(wazero.NewRuntimeConfigCompiler()))
			both := [][]byte{list[lang], rewrite(b, list[lang])}
			best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
			for b.Loop() {
				for i, wasm := range both {
					start := time.Now()
					if err := compiles(rt, wasm); err != nil {
						b.Fatal(err)
					}
					best[i] = min(best[i], time.Since(start))
				}
			}
			b.ReportMetric(float64(best[1])/float64(best[0]), "ratio/op")
		})
	}
}
