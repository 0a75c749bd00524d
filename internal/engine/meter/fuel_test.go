package meter_test

import (
	"math/rand/v2"
	"testing"

	"runloop.dev/rlp/internal/engine/meter"
)

// life is what a guest does: computes, looks, and calls the host.
type life []struct {
	cost int64
	kind byte // 'c' computes, 'l' looks, 'h' has the host work
}

func (l life) run(budget, slice int64) (ended int, left int64) {
	fuel, counter := meter.NewFuel(budget, slice), int64(0)
	for i, step := range l {
		ok := true
		switch step.kind {
		case 'c':
			counter -= step.cost
		case 'l':
			if counter < 0 {
				var next int64
				if next, ok = fuel.Refill(counter); ok {
					counter = next
				}
			}
		case 'h':
			counter, ok = fuel.Spend(step.cost, counter)
		}
		if !ok {
			return i, fuel.Left(counter)
		}
	}
	return len(l), fuel.Left(counter)
}

// Where the budget ends, and what is left, does not depend on how it is given
// out, with the host's own work in between.
//
//rlp:holds K24
func TestTheSliceDoesNotShow(t *testing.T) {
	ends := map[bool]int{}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l life
		for range 60 {
			l = append(l, life{{int64(r.IntN(300)), "clh"[r.IntN(3)]}}...)
		}
		budget := int64(r.IntN(6000))
		at, left := l.run(budget, 1<<40)
		ends[at < len(l)]++
		for _, slice := range []int64{1, 7, 100, 1000} {
			if a, b := l.run(budget, slice); a != at || b != left {
				t.Fatalf("seed %d, budget %d, slice %d: ends at %d with %d, not at %d with %d", seed, budget, slice, a, b, at, left)
			}
		}
	}
	if ends[true] < 100 || ends[false] < 100 {
		t.Errorf("%d ended, %d did not", ends[true], ends[false])
	}
}
