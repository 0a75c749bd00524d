package printable_test

import (
	"testing"

	"runloop.dev/rlp/internal/base/printable"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 runs", 1: "1 run", 2: "2 runs"} {
		if got := printable.Count(n, "run"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
