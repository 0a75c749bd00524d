package gate

import "runloop.dev/rlp/caps"

// A tally counts the calls of a run.
type tally struct {
	calls  int64
	most   int64                 // calls
	counts *[caps.Tool + 1]Count // behind, so that what [Gate.Again] touches lies together
}

// A Count is how many calls of each audit name were allowed and denied.
type Count struct{ Allowed, Denied int64 }

// count counts a call, and returns where.
func (t *tally) count(f caps.Family, allowed bool) *int64 {
	at := &t.counts[f].Denied
	if allowed {
		at = &t.counts[f].Allowed
	}
	t.calls++
	*at++
	return at
}

// Counts returns how many requests of family f were allowed and denied so far.
func (t *tally) Counts(f caps.Family) Count { return t.counts[f] }

// Calls is how many calls were counted.
func (t *tally) Calls() int64 { return t.calls }

// Spent reports whether limits.hostcalls_max is used up.
func (t *tally) Spent() bool { return t.calls > t.most }
