package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Bounds of what initializes itself before main, in all packages together: each
// start of every command pays for it. Allocations are counted, for a time is another
// on each machine; GODEBUG=inittrace=1 shows both. It is 2,170 and 319,000; with
// a library for Prometheus and one for screens it was 4,400 and 638,000.
const (
	mostInitAllocs = 2_250
	mostInitBytes  = 335_000
)

func TestProgramStartsWithLittle(t *testing.T) {
	t.Parallel()
	order, allocs, bytes := initTrace(t, t.TempDir(), builtProgram(t))
	if allocs > mostInitAllocs || bytes > mostInitBytes {
		t.Errorf("before main it makes %d allocations of %d bytes; at most %d and %d", allocs, bytes, mostInitAllocs,
			mostInitBytes)
	}
	if !slices.Contains(order, "github.com/tetratelabs/wazero/internal/engine/wazevo") {
		t.Error("control: the engine is not among its packages")
	}
	t.Log(len(order), allocs, bytes)
}

// initTrace is what a program initializes before main, and what it allocates in
// all packages together.
func initTrace(t *testing.T, home, program string) (order []string, allocs, bytes int) {
	t.Helper()
	cmd := exec.Command(program, "launch", filepath.Join(home, "none"))
	cmd.Env = []string{"HOME=" + home, "GODEBUG=inittrace=1"}
	text, _ := cmd.CombinedOutput()
	lines := regexp.MustCompile(`(?m)^init (\S+) @.* ms clock, (\d+) bytes, (\d+) allocs$`).FindAllSubmatch(text, -1)
	for _, l := range lines {
		b, err := strconv.Atoi(string(l[2]))
		a, err2 := strconv.Atoi(string(l[3]))
		if err != nil || err2 != nil {
			t.Fatalf("not a trace: %s", l[0])
		}
		order, allocs, bytes = append(order, string(l[1])), allocs+a, bytes+b
	}
	if len(lines) < 20 || cmd.ProcessState.ExitCode() != 65 {
		t.Fatalf("no trace, exit %v: %s", cmd.ProcessState, text)
	}
	return order, allocs, bytes
}
