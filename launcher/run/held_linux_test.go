package run

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// runsOf is set for the process that the test below starts: what each run there may have.
const runsOf = "RLP_TEST_RUNS_OF"

// Runs that print for ever take no more of their process than their
// limits, all at once: a process of its own says how much that was. Control: the same
// runs with thirty times as much take several times as much.
func TestMemoryOfManyRuns(t *testing.T) {
	if limit := os.Getenv(runsOf); limit != "" {
		n, err := strconv.ParseInt(limit, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		before := peak(t)
		manyRuns(t, n)
		fmt.Printf("grew by %d\n", peak(t)-before)
		return
	}
	const mib = 1 << 20
	grew := func(limit int64) (kib int) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryOfManyRuns$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", runsOf, limit))
		out, err := cmd.CombinedOutput()
		if _, rest, ok := strings.Cut(string(out), "grew by "); err != nil || !ok {
			t.Fatalf("%v: %s", err, out)
		} else if _, err := fmt.Sscan(rest, &kib); err != nil {
			t.Fatal(err)
		}
		return kib
	}
	little, much := grew(mib), grew(30*mib)
	t.Logf("runs of 1 MiB took %d KiB, of 30 MiB %d", little, much)
	if little > much/3 {
		t.Errorf("runs of 1 MiB took %d KiB, runs of 30 MiB %d KiB", little, much)
	}
}

// manyRuns launches ten runs at once, each of which ends for want of memory, and
// keeps their reports.
func manyRuns(t *testing.T, limit int64) {
	prints := repeats("wasi_snapshot_preview1", "fd_write", 0x7f, "\x10\x00\x00\x00\x00\x00\x01\x00", 1, 0, 1, 8)
	reports := make(chan *Report)
	const runs = 10
	for range runs {
		spec := specOf(t, audit.NewMemory())
		spec.Module = prints
		limits := caps.Limits{}.With(caps.MemoryBytes, limit).With(caps.StdoutMaxBytes, 1<<40)
		spec.Policy.Layers = []*caps.Layer{{Name: "operator", Limits: limits}}
		go func() { reports <- Launch(t.Context(), spec) }()
	}
	var kept []*Report
	for range runs {
		r := <-reports
		if kept = append(kept, r); r.Outcome != Memory {
			t.Errorf("%s: %s", r.Outcome, r.Message)
		}
	}
	if len(kept[0].Stdout) < int(limit)/2 {
		t.Errorf("only %d bytes were printed", len(kept[0].Stdout))
	}
}

// peak is the most memory that this process ever had, in KiB.
func peak(t *testing.T) (kib int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
