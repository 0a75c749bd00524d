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

func (u *unseen) total() int64 {
	if u.before == noCall {
		return noCall
	}
	return u.before + u.since
}

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
