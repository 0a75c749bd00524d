package meter

import "math"

// blockType reads what a block takes and gives. Its bytes are kept as they are.
func (f *function) blockType() []byte {
	start := f.p
	switch t := f.s33(); {
	case f.err != nil:
	case t >= 0:
		if t >= int64(f.m.numTypes()) {
			f.fail(ErrMalformed, "type %d of %d", t, f.m.numTypes())
		}
	case t < -64 || byte(t&0x7f) != typeNone && !isValueType(byte(t&0x7f)):
		f.fail(ErrUnsupported, "block type %d", t)
	}
	return f.b[start:f.p]
}

// block opens a block, loop or if. A loop that is reached becomes
//
//	loop
//	  counter -= cost
//	  if counter >= 0
//	    what was in the loop
//	  else
//	    counter = refill(counter) + cost
//	    br loop
//	  end
//	end
//
// which keeps the call of refill, and all that it would make the engine save,
// out of the way of the others.
func (f *function) block(op byte) {
	t := f.blockType()
	if len(f.frames) > f.m.opt.MaxNesting {
		f.fail(ErrLimit, "more than %d blocks within each other", f.m.opt.MaxNesting)
		return
	}
	f.out = append(append(f.out, op), t...)
	f.open++
	fr := frame{op: op, live: f.at != dead, at: f.at, head: dead, low: math.MaxInt32, label: f.open}
	if fr.live {
		switch op {
		case opLoop:
			f.early = f.early || len(f.holes) == 1 && !f.calls && !f.bulk
			f.loops = true
			f.at = f.hole(hole{kind: holeLoop, block: t})
			fr.head = f.at
			f.open++
		case opIf:
			f.fresh()
		}
	}
	f.frames = append(f.frames, fr)
}

func (f *function) otherwise() {
	fr := &f.frames[len(f.frames)-1]
	if fr.op != opIf || fr.others {
		f.fail(ErrMalformed, "an else without its if")
		return
	}
	fr.others = true
	fr.then = f.at != dead
	f.out = append(f.out, opElse)
	f.at = dead
	if fr.live {
		f.fresh()
	}
}

// end closes the innermost block and finds out which hole pays for what comes
// behind it: the one that paid for what was before it, if nothing within can
// have gone elsewhere.
func (f *function) end() {
	fr := f.frames[len(f.frames)-1]
	f.frames = f.frames[:len(f.frames)-1]
	if len(f.frames) == 0 {
		return // the end of the function is written with what is around it
	}
	f.open = fr.label - 1
	if fr.head != dead {
		f.hole(hole{kind: holeSlow, head: fr.head})
		fr.low = 0
	}
	f.out = append(f.out, opEnd)
	f.leaves(fr.low)
	if fr.op == opLoop || !fr.live {
		return
	}
	reached := fr.target || f.at != dead
	if fr.op == opIf {
		reached = reached || fr.then || !fr.others
	} else if !fr.target {
		return
	}
	switch {
	case !reached:
		f.at = dead
	case fr.low < int32(len(f.frames)):
		f.fresh()
	default:
		f.at = fr.at
	}
}

// label reads where a branch goes and writes where that is now.
func (f *function) label() {
	depth := f.index("label", uint32(len(f.frames)))
	if f.err != nil {
		return
	}
	i := len(f.frames) - 1 - int(depth)
	f.out = appendU32(f.out, f.open-f.frames[i].label)
	if f.at != dead {
		f.exits = f.exits || i == 0
		f.frames[i].target = true
		f.leaves(int32(i))
	}
}

// leave ends the function here, with the counter put back.
func (f *function) leave() {
	if f.at != dead {
		f.store()
		f.leaves(0)
		f.at = dead
	}
	f.out = append(f.out, opReturn)
}

// branch copies a branch. One to the end of the function is a return.
func (f *function) branch(op byte) {
	if op == opBr {
		start := f.p
		if depth := f.u32(); depth == uint32(len(f.frames)-1) {
			op = opReturn
		} else {
			f.p = start
		}
	}
	if op == opReturn {
		f.leave()
		return
	}
	f.out = append(f.out, op)
	if op == opBrTable {
		n := f.count()
		f.out = appendU32(f.out, n)
		for i := uint32(0); i < n && f.err == nil; i++ {
			f.label()
		}
	}
	f.label()
	switch {
	case f.at == dead || f.err != nil:
	case op == opBrIf:
		f.fresh()
	default:
		f.at = dead
	}
}
