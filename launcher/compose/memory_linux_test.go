package compose

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// The least that any control group above the process allows counts.
func TestTheLeastMemoryThatGroupsAllow(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"memory.max": "max\n", "a/memory.max": "3000\n", "a/b/memory.max": "max\n", "c/memory.max": "900000\n",
		"memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/old/memory.limit_in_bytes": "2000\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string]int64{
		"": 5000, "0::/\n": 5000, "0::/a/b\n": 3000, "0::/c\n": 5000, "0::/gone\n": 5000, "x\n": 5000,
		"4:memory:/old\n3:cpu:/a\n0::/\n": 2000, "4:memory:/\n0::/a\n": 3000,
	} {
		if got := leastMemory(root, []byte(groups), 5000); got != want {
			t.Errorf("%q: %d, want %d", groups, got, want)
		}
	}
	if MemoryForRuns() <= 0 {
		t.Error("this machine has no memory")
	}
}

// The heap is bounded by what the runs may have, unless GOMEMLIMIT has said so before.
func TestTheHeapOfAServiceIsBounded(t *testing.T) {
	was := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(was)
	for _, c := range []struct{ forRuns, want int64 }{{0, math.MaxInt64}, {192 << 20, 128 << 20}, {96 << 20, 128 << 20}} {
		if BoundHeap(c.forRuns); debug.SetMemoryLimit(-1) != c.want {
			t.Errorf("%d: %d, want %d", c.forRuns, debug.SetMemoryLimit(-1), c.want)
		}
	}
}
