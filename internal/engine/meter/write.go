package meter

import (
	"slices"

	"runloop.dev/rlp/internal/engine/wasm"
)

// Kinds of holes.
const (
	holePlain   = iota // charge
	holePass           // charge, and leave the counter on the stack
	holeChecked        // charge, and ask if there is no more
	holeLoop           // the header of a loop
	holeSlow           // what happens when there is no more at such a header
)

// hole is a place in a body where a charge goes. Hostile code has as many as
// it has bytes, so they are small.
type hole struct {
	cost   uint64
	pos    int32
	from   int32 // node before it
	to     int32 // node behind it
	next   int32 // of the same weight
	loop   int32 // of holeLoop and holeSlow
	into   int32 // behind the hole that pays for this one, unless there is a check here; 0 is none
	kind   byte
	weight uint8
}

// The counter is in the local behind the parameters. Behind the guest's own
// are up to two more, for what is on top of the stack.
func (f *function) counter() uint32         { return f.params }
func (f *function) scratch(i uint32) uint32 { return f.locals + 1 + i }

func (f *function) local(op byte, i uint32) { f.out = wasm.AppendU32(append(f.out, op), i) }

// add adds n to the number on top of the stack. The engine has no short form
// for a constant below zero.
func (f *function) add(n int64) {
	switch {
	case n > 0:
		f.out = append(wasm.AppendS64(append(f.out, opI64Const), n), opI64Add)
	case n < 0:
		f.out = append(wasm.AppendS64(append(f.out, opI64Const), -n), opI64Sub)
	}
}

// compare compares the counter, on top of the stack, to what it must be at
// least when that much is owed.
func (f *function) compare(owed int64, op byte) {
	f.out = append(wasm.AppendS64(append(f.out, opI64Const), -owed), op)
}

// check asks for more if the number on top of the stack, the counter, is too
// low.
func (f *function) check(owed int64) {
	f.compare(owed, opI64GeS)
	f.out = append(f.out, opIf, typeNone, opElse)
	f.local(opLocalGet, f.counter())
	f.add(owed)
	f.out = wasm.AppendU32(append(f.out, opCall), f.m.refill())
	f.add(-owed)
	f.local(opLocalSet, f.counter())
	f.out = append(f.out, opEnd)
}

// less leaves the counter on the stack, less cost.
func (f *function) less(cost int64) {
	f.local(opLocalGet, f.counter())
	f.add(-cost)
}

// charged leaves the counter on the stack, less cost, which it has now.
func (f *function) charged(cost int64) {
	f.less(cost)
	if cost != 0 {
		f.local(opLocalTee, f.counter())
	}
}

// again asks for more and goes back to before the header of a loop.
func (f *function) again(l *loop) {
	head := &f.holes[l.head]
	owed := f.surplus.at(head.to)
	f.out = append(f.out, opElse)
	f.copies(l)
	f.local(opLocalGet, f.counter())
	f.add(owed)
	f.out = wasm.AppendU32(append(f.out, opCall), f.m.refill())
	f.add(f.due(head) - owed)
	f.local(opLocalSet, f.counter())
	f.out = append(f.out, opBr, 1, opEnd)
}

// write appends the body with its size to out. t is the block type of its
// results. There is a block around it only if something needs a label at its
// end: one that nobody needs would still cost, in how the engine lays out code.
func (f *function) write(declared, t, out []byte) []byte {
	body := f.out
	f.out = slices.Grow(f.m.scratch[:0], 2*len(body))
	f.declare(declared)
	f.fill(&f.holes[0])
	if f.exits {
		f.out = append(append(f.out, opBlock), t...)
	}
	from := int32(0)
	for i := 1; i < len(f.holes); i++ {
		h := &f.holes[i]
		f.out = append(f.out, body[from:h.pos]...)
		from = h.pos
		f.fill(h)
	}
	f.out = append(f.out, body[from:]...)
	out = append(wasm.AppendU32(out, uint32(len(f.out))), f.out...)
	f.m.scratch, f.out = f.out, body
	return out
}

func (f *function) declare(declared []byte) {
	r := newReader(declared)
	groups := r.U32()
	scratch := byte(0)
	switch {
	case f.bulk:
		scratch = 2
	case f.picks:
		scratch = 1
	default:
		f.out = append(f.out, declared...)
		return
	}
	f.out = append(wasm.AppendU32(f.out, groups+1), declared[r.P:]...)
	f.out = append(f.out, scratch, typeI32)
}

func (f *function) fill(h *hole) {
	switch h.kind {
	case holePlain:
		if due := f.due(h); due != 0 {
			f.less(due)
			f.local(opLocalSet, f.counter())
		}
	case holePass:
		f.less(f.due(h))
	case holeChecked:
		f.charged(f.due(h))
		f.check(f.surplus.at(h.to))
	case holeLoop:
		f.charged(f.due(h))
		f.compare(f.surplus.at(h.to), opI64GeS)
		f.out = append(append(f.out, opIf), f.loops[h.loop].block...)
	case holeSlow:
		f.again(&f.loops[h.loop])
	}
}
