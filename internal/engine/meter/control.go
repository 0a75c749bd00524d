package meter

import (
	"math"

	"runloop.dev/rlp/internal/engine/wasm"
)

func (f *function) blockType() []byte {
	start := f.P
	switch t := f.S33(); {
	case f.Err != nil:
	case t >= 0:
		if t >= int64(f.m.numTypes()) {
			f.Fail(ErrMalformed, "type %d of %d", t, f.m.numTypes())
		}
	case t < -64 || byte(t&0x7f) != typeNone && !isValueType(byte(t&0x7f)):
		f.Fail(ErrUnsupported, "block type %d", t)
	}
	return f.B[start:f.P]
}

// block opens a block, loop or if. A loop that is reached becomes
//
//	loop
//	  counter -= cost
//	  if counter >= 0
//	    what was in the loop
//	  else
//	    locals = copies of locals
//	    counter = refill(counter) + cost
//	    br loop
//	  end
//	end
//
// which keeps the call, and all that it would make the engine save, out of the
// way of the others.
func (f *function) block(op byte) {
	t := f.blockType()
	if len(f.frames) > f.m.opt.MaxNesting {
		f.Fail(ErrLimit, "more than %d blocks within each other", f.m.opt.MaxNesting)
		return
	}
	fr := frame{
		op: op, live: f.at != dead, at: f.at, loop: dead, low: math.MaxInt32, surplusAt: f.surplus.node(),
		before: f.surplusAt, arms: f.arms, often: f.often(), outside: f.unseen.total(), unseen: noCall,
	}
	if fr.live && op == opLoop {
		f.owe(&fr)
		f.depth++
		f.arms = 0
		fr.often = f.often()
	}
	f.out = append(append(f.out, op), t...)
	f.open++
	fr.label = f.open
	switch {
	case fr.live && op == opLoop:
		f.early = f.early || f.simple
		f.enterLoop(&fr, t)
	case op == opIf:
		f.arms++
		f.event(eventIf, 0)
		if fr.live {
			f.fresh()
		}
	default:
		f.event(eventOpen, 0)
	}
	f.frames = append(f.frames, fr)
}

func (f *function) enterLoop(fr *frame, t []byte) {
	fr.loop = int32(len(f.loops))
	f.event(eventLoop, uint32(fr.loop))
	f.at = f.begin(hole{kind: holeLoop, loop: fr.loop, from: fr.surplusAt, weight: f.weight(weighHeader)})
	f.loops = append(f.loops, loop{nested: f.depth > 1, block: t, head: f.at})
	f.open++
	f.simple = false
	f.meet(min(f.unseen.total(), 0))
}

func (f *function) otherwise() {
	fr := &f.frames[len(f.frames)-1]
	if fr.op != opIf || fr.others {
		f.Fail(ErrMalformed, "an else without its if")
		return
	}
	fr.others = true
	fr.then = f.at != dead
	if fr.then {
		f.goOn(fr)
	}
	f.event(eventElse, 0)
	f.out = append(f.out, opElse)
	f.at = dead
	if fr.live {
		f.surplusAt = fr.before
		f.meet(fr.outside)
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
		f.last(&fr)
		return
	}
	f.open = fr.label - 1
	if fr.loop != dead {
		f.leaveLoop(&fr)
	} else {
		f.event(eventEnd, 0)
	}
	meets := fr.live && (fr.op == opIf || fr.op == opBlock && fr.target)
	if meets {
		if f.at != dead {
			f.goOn(&fr)
		}
		if fr.op == opIf && !fr.others {
			f.surplus.join(fr.before, fr.surplusAt, 0)
			fr.unseen = max(fr.unseen, fr.outside)
		}
		f.surplusAt = fr.surplusAt
		f.meet(fr.unseen)
	}
	f.arms = fr.arms
	f.out = append(f.out, opEnd)
	f.leaves(fr.low)
	if !meets {
		return
	}
	reached := fr.target || f.at != dead
	if fr.op == opIf {
		reached = reached || fr.then || !fr.others
	}
	switch {
	case !reached:
		f.at = dead
	case fr.low < int32(len(f.frames)):
		f.fresh()
	default:
		f.at = fr.at
		f.checkSite()
	}
}

// goOn goes on at a frame's label.
func (f *function) goOn(fr *frame) {
	f.owe(fr)
	fr.unseen = max(fr.unseen, f.unseen.total())
}

func (f *function) leaveLoop(fr *frame) {
	f.loops[fr.loop].back = fr.target
	f.event(eventLoopEnd, uint32(fr.loop))
	f.depth--
	f.hole(hole{kind: holeSlow, loop: fr.loop})
	fr.low = 0
}

// last ends the function: what leaves to its end by a label meets what comes
// to it, and the counter is given back.
func (f *function) last(fr *frame) {
	if f.exits {
		if f.at != dead {
			f.goOn(fr)
		}
		f.surplusAt = fr.surplusAt
		f.at = 0
		f.out = append(f.out, opEnd)
		f.meet(fr.unseen)
		f.checkSite()
	}
	if f.at != dead {
		f.atMost(tailCost)
	}
	f.pass()
	f.out = append(f.out, opEnd)
}

// label writes where a branch goes, which is i blocks from the outermost, is
// now.
func (f *function) label(i int) {
	f.out = wasm.AppendU32(f.out, f.open-f.frames[i].label)
	if f.at != dead {
		f.exits = f.exits || i == 0
		f.frames[i].target = true
		f.leaves(int32(i))
		f.event(eventJump, uint32(i))
	}
}

func (f *function) target() int {
	depth := f.index("label", uint32(len(f.frames)))
	return len(f.frames) - 1 - int(depth)
}

func (f *function) leave() {
	if f.at != dead {
		f.atMost(tailCost)
	}
	f.pass()
	if f.at != dead {
		f.leaves(0)
		f.at = dead
	}
	f.event(eventStop, 0)
	f.out = append(f.out, opReturn)
}

// branch copies a branch. One to the end of the function is a return.
func (f *function) branch(op byte) {
	switch op {
	case opReturn:
		f.leave()
	case opBr:
		i := f.target()
		switch {
		case f.Err != nil:
		case i == 0:
			f.leave()
		default:
			if f.at != dead {
				f.goOn(&f.frames[i])
			}
			f.out = append(f.out, op)
			f.label(i)
			f.event(eventStop, 0)
			f.at = dead
		}
	case opBrIf:
		f.out = append(f.out, op)
		f.split()
		if f.at != dead {
			f.fresh()
		}
	case opBrTable:
		n := f.Count("entries")
		f.out = wasm.AppendU32(append(f.out, op), n)
		for i := uint32(0); i <= n && f.Err == nil; i++ {
			f.split()
		}
		f.event(eventStop, 0)
		f.at = dead
	}
}

// split copies a label that is left to from where nothing can be charged.
func (f *function) split() {
	i := f.target()
	if f.Err != nil {
		return
	}
	if f.at != dead {
		f.surplus.join(f.surplusAt, f.frames[i].surplusAt, 0)
		f.frames[i].unseen = max(f.frames[i].unseen, f.unseen.total())
	}
	f.label(i)
}
