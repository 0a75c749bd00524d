package meter

import (
	"slices"

	"runloop.dev/rlp/internal/engine/wasm"
)

// again asks for more and goes back to before the header of a loop.
func (f *function) again(l *loop) {
	head := &f.holes[l.head]
	owed := f.surplus.at(head.to)
	f.out = append(f.out, opElse)
	f.copies(&f.emitter, l)
	f.local(opLocalGet, f.counter())
	f.add(owed)
	f.out = wasm.AppendU32(append(f.out, opCall), f.refill)
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
