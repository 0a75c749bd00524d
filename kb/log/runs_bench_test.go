package log

import (
	"fmt"
	"testing"

	"runloop.dev/rlp/kb/wire"
)

// BenchmarkRuns is the newest 50 of a log of 100,000 runs.
func BenchmarkRuns(b *testing.B) {
	e := openLog(b, newPlace(b))
	n := 100_000
	if testing.Short() {
		n = 1000
	}
	for run := range n {
		if err := e.log.madeUp(fmt.Sprintf("0197b3e2-7c1d-7e4a-9d00-%012d", run), 2, true); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		r, err := wire.Ask(b.Context(), e, &runsRequest{Limit: 50})
		if err != nil || len(r.Runs) != 50 {
			b.Fatal(len(r.Runs), err)
		}
	}
}
