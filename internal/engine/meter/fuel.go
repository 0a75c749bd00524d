package meter

import "math"

// DefaultSlice is how many instructions a guest gets at a time: about a tenth
// of a millisecond of computing.
const DefaultSlice = 250_000

// Fuel is the host's half: the budget of one run, and what of it is not yet
// in the counter of the module. What is left of the run is always the budget and
// the counter together, so it does not depend on the size of the slices.
//
// Fuel is used by the guest's goroutine alone.
type Fuel struct{ reserve, slice int64 }

// NewFuel is a budget of so many instructions, given out by slice at a time; the
// counter that goes with it is zero. Neither may be negative, and a slice of 0
// is [DefaultSlice].
func NewFuel(budget, slice int64) *Fuel {
	if slice <= 0 {
		slice = DefaultSlice
	}
	return &Fuel{reserve: max(budget, 0), slice: slice}
}

// Refill is what the import does: counter is its argument, next its result.
// Without ok the budget is used up and the guest must not go on.
//
// The exported counter, of which the running functions hold what it is by now,
// is to be set to next, or to counter if the guest does not go on: if a trap
// ends the guest, [Fuel.Left] is what was left when it last asked, or called.
func (t *Fuel) Refill(counter int64) (next int64, ok bool) {
	left := t.reserve + counter
	if left < 0 {
		return 0, false
	}
	next = min(left, t.slice)
	t.reserve = left - next
	return next, true
}

// Return takes back what a refill gave and the guest will not use.
func (t *Fuel) Return(n int64) { t.reserve += n }

// Charge takes n instructions for work of the host's own and does not look
// whether there are as many.
func (t *Fuel) Charge(n int64) { t.reserve -= n }

// Spend takes n instructions for work of the host's own, in a call of it,
// where the exported counter is counter and has to be next afterwards. Without
// ok the budget is passed and the guest must not go on. As it looks at what is
// left of the whole, its answer does not depend on the size of the slices.
func (t *Fuel) Spend(n, counter int64) (next int64, ok bool) {
	t.reserve -= n
	if t.reserve < 0 {
		counter += t.reserve
		t.reserve = 0
	}
	return counter, t.reserve+counter >= 0
}

// growing is added to what a growth asks for. No counter is that low: one
// instruction moves at most 1<<32 things.
const growing = math.MinInt64 / 2

// A reference to a function is an object of the host's, each time that one is
// made.
const refFuncCost = 4

// Growth reports whether the argument of the import is no counter but how many
// more elements of tables the host is about to hold for the guest, or, below zero, does not after all. What is
// returned then is not looked at; the import does not return if they are too many.
func Growth(counter int64) (elements int64, ok bool) {
	if counter > growing/2 {
		return 0, false
	}
	return counter - growing, true
}

// Left is what is left of the budget when the exported counter is counter. It
// is negative when the budget was passed after the last place that looks.
func (t *Fuel) Left(counter int64) int64 { return t.reserve + counter }
