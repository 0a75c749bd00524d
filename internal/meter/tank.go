package meter

// DefaultSlice is how many instructions a guest gets at a time: about a tenth
// of a millisecond of computing.
const DefaultSlice = 250_000

// A Tank is the host's half: the budget of one run, and what of it is not yet
// in the counter of the module. What is left of the run is always the tank and
// the counter together, so it does not depend on the size of the slices.
//
// A Tank is used by the guest's goroutine alone.
type Tank struct{ reserve, slice int64 }

// NewTank is a tank of budget instructions, given out by slice at a time; the
// counter that goes with it is zero. Neither may be negative, and a slice of 0
// is [DefaultSlice].
func NewTank(budget, slice int64) *Tank {
	if slice <= 0 {
		slice = DefaultSlice
	}
	return &Tank{reserve: max(budget, 0), slice: slice}
}

// Refill is what the import does: counter is its argument, next its result.
// Without ok the budget is used up and the guest must not go on.
//
// The exported counter, which a running function has taken a copy of, has to
// grow by as much, next - counter, for [Tank.Left] to stay true if a trap ends
// the function before it writes its copy back.
func (t *Tank) Refill(counter int64) (next int64, ok bool) {
	left := t.reserve + counter
	if left < 0 {
		return 0, false
	}
	next = min(left, t.slice)
	t.reserve = left - next
	return next, true
}

// Return takes back what a refill gave and the guest will not use.
func (t *Tank) Return(n int64) { t.reserve += n }

// Left is what is left of the budget when the exported counter is counter. It
// is negative when the budget was passed after the last place that looks.
//
// The host charges its own work by taking it off the exported counter during
// the call, and ends the guest if Left is then negative.
func (t *Tank) Left(counter int64) int64 { return t.reserve + counter }
