// Package report is how the benchmarks of the peers say what they found: the
// same figures in the same units as those of the project.
package report

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Median times do, once a turn, and reports the middle.
func Median(b *testing.B, do func() error) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-us")
}

// Each reports what each of n more instances takes of memory.
func Each(b *testing.B, n int, more func() error) {
	before, err := resident()
	for i := 0; i < n && err == nil; i++ {
		err = more()
	}
	if err != nil {
		b.Fatal(err)
	}
	after, err := resident()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after-before)/1024/float64(n), "KiB/instance")
}

// resident returns the bytes that this process holds, once everything that is
// garbage has been given back.
func resident() (int, error) {
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	f := bytes.Fields(data)
	if len(f) < 2 {
		return 0, fmt.Errorf("/proc/self/statm holds %q", data)
	}
	pages, err := strconv.Atoi(string(f[1]))
	return pages * os.Getpagesize(), err
}
