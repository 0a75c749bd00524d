package meter

// A function is looked at when it is entered, but returns unseen. A guest that
// calls itself as deep as it can would do all that is left to do behind those
// calls without the host getting a word in. So a function does not return after
// more than a few instructions since a call or check.

const (
	// leafBytes bounds the body of a function that goes unchecked if it has no
	// calls, loops and bulk operations: who calls it is checked.
	leafBytes = 64

	// tailCost is how much may go unseen behind a call when a function returns,
	// and stretchCost when it does not.
	tailCost    = 32
	stretchCost = 4096

	// noCall is in place of what is unseen where no call can come before.
	noCall = -1
)

// unseen is what may have been executed since the last call or check.
type unseen struct {
	before int64 // the last place where a check can be
	since  int64
	place  int32 // which hole that is, or dead
}

func (f *function) see(cost uint64) {
	if f.unseen.before != noCall {
		f.unseen.since += int64(cost)
		f.atMost(stretchCost)
	}
}

// atMost puts a check to where there can be one, if more than that is unseen.
func (f *function) atMost(most int64) {
	u := &f.unseen
	if u.before != noCall && u.place != dead && u.before+u.since > most {
		f.holes[u.place].kind = holeChecked
		u.before, u.place = 0, dead
	}
}

func (u *unseen) total() int64 {
	if u.before == noCall {
		return noCall
	}
	return u.before + u.since
}

// stop notes that a check can be in this hole.
func (f *function) stop(hole int32) {
	f.unseen = unseen{before: f.unseen.total(), place: hole}
}

// meet notes that code goes on here of which that much was unseen.
func (f *function) meet(total int64) { f.unseen = unseen{before: total, place: dead} }

// checkSite makes a hole where a check can be, should one be needed. If not, what
// was before pays for what comes next, as if there were none.
func (f *function) checkSite() {
	if f.unseen.before != noCall {
		f.at = f.begin(hole{from: f.surplusAt, into: f.at + 1, weight: f.weight(weighCost)})
		f.stop(f.at)
	}
}

// fold lets holes pay for those behind them that have no check.
func (f *function) fold() {
	for i := len(f.holes) - 1; i > 0; i-- {
		if h := &f.holes[i]; h.into > 0 && h.kind == holePlain {
			f.holes[h.into-1].cost += h.cost
			h.cost = 0
		}
	}
}

func (f *function) seen() {
	if f.at != dead && f.unseen.before != noCall {
		f.meet(0)
		f.checkSite()
	}
}

// called notes that a function was called, which did or did not check itself.
func (f *function) called(checked bool) {
	if f.at == dead {
		return
	}
	total := int64(0)
	if !checked {
		total = max(f.unseen.total(), 0) + leafBytes
	}
	f.returned = total
}

// checked reports whether a function of the guest's is checked where it is
// entered.
func (m *rewriter) checked(f uint32) bool { return !m.leaves[f-m.imports] }

// isLeaf reports whether a body is one of a function that goes unchecked.
func isLeaf(body []byte) bool {
	if len(body) > leafBytes {
		return false
	}
	r := newReader(body)
	for range r.Count("entries") {
		r.U32()
		r.Byte()
	}
	for r.Err == nil && r.Left() > 0 {
		switch op := r.Byte(); op {
		case opLoop, opCall, opCallIndirect, opMemoryGrow, opMisc:
			return false
		case opBlock, opIf:
			r.S33()
		case opElse, opEnd, opReturn:
		case opBr, opBrIf, opLocalGet, opLocalSet, opLocalTee, opGlobalGet, opGlobalSet, opRefFunc:
			r.U32()
		case opBrTable:
			for range r.Count("entries") {
				r.U32()
			}
			r.U32()
		default:
			immediates(r, op)
		}
	}
	return r.Err == nil
}
