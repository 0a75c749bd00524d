package meter

// Kinds of holes.
const (
	holePlain   = iota // charge
	holeChecked        // charge, and ask if there is no more
	holeLoop           // the header of a loop
	holeSlow           // what happens when there is no more at such a header
)

// hole is a place in a body where a charge goes.
type hole struct {
	kind  byte
	head  int32 // of holeSlow: its header
	pos   int
	cost  uint64
	block []byte // of holeLoop: the type of the loop
}

// The locals that are added: the counter, and two for bulk operations.
func (f *function) counter() uint32         { return f.locals }
func (f *function) scratch(i uint32) uint32 { return f.locals + 1 + i }

func (f *function) local(op byte, i uint32) { f.out = appendU32(append(f.out, op), i) }

// store puts the counter into the global.
func (f *function) store() {
	f.local(opLocalGet, f.counter())
	f.out = appendU32(append(f.out, opGlobalSet), f.m.globals)
}

// load takes it from there.
func (f *function) load() {
	f.out = appendU32(append(f.out, opGlobalGet), f.m.globals)
	f.local(opLocalSet, f.counter())
}

// check asks for more if the number on top of the stack, the counter, is below
// zero.
func (f *function) check() {
	f.out = append(f.out, opI64Const, 0, opI64LtS, opIf, typeNone)
	f.ask()
	f.local(opLocalSet, f.counter())
	f.out = append(f.out, opEnd)
}

// ask leaves the new counter on the stack.
func (f *function) ask() {
	f.local(opLocalGet, f.counter())
	f.out = appendU32(append(f.out, opCall), f.m.refill())
}

// less leaves the counter on the stack, less cost.
func (f *function) less(cost uint64) {
	f.local(opLocalGet, f.counter())
	if cost > 0 {
		f.out = append(appendS64(append(f.out, opI64Const), int64(cost)), opI64Sub)
	}
}

// enter takes cost off the counter and goes into the block of type t if there
// is enough.
func (f *function) enter(cost uint64, t []byte) {
	f.less(cost)
	f.local(opLocalTee, f.counter())
	f.out = append(append(f.out, opI64Const, 0, opI64GeS, opIf), t...)
}

// again asks for more and goes back to before enter.
func (f *function) again(cost uint64) {
	f.out = append(f.out, opElse)
	f.ask()
	if cost > 0 {
		f.out = append(appendS64(append(f.out, opI64Const), int64(cost)), opI64Add)
	}
	f.local(opLocalSet, f.counter())
	f.out = append(f.out, opBr, 1, opEnd)
}

// write appends the body with its size to out. t is the block type of its
// results. There is a block around it only if something needs a label at its
// end: one that nobody needs would still cost, in how the engine lays out code.
func (f *function) write(declared, t, out []byte) []byte {
	body := f.out
	f.out = f.m.scratch[:0]
	f.declare(declared)
	checked := (f.loops || f.calls || f.bulk || f.cost > leafCost) && !f.early
	f.load()
	if checked {
		f.holes[0].kind = holeChecked
	}
	f.fill(f.holes[0])
	if f.exits {
		f.out = append(append(f.out, opBlock), t...)
	}
	from := 0
	for _, h := range f.holes[1:] {
		f.out = append(f.out, body[from:h.pos]...)
		from = h.pos
		f.fill(h)
	}
	f.out = append(f.out, body[from:]...)
	if f.exits {
		f.out = append(f.out, opEnd)
	}
	f.store()
	f.out = append(f.out, opEnd)
	out = append(appendU32(out, uint32(len(f.out))), f.out...)
	f.m.scratch, f.out = f.out, body
	return out
}

// declare writes the locals of the guest's, and those that are added.
func (f *function) declare(declared []byte) {
	r := &reader{b: declared}
	groups := r.u32()
	if f.bulk {
		f.out = append(appendU32(f.out, groups+2), declared[r.p:]...)
		f.out = append(f.out, 1, typeI64, 2, typeI32)
		return
	}
	f.out = append(appendU32(f.out, groups+1), declared[r.p:]...)
	f.out = append(f.out, 1, typeI64)
}

func (f *function) fill(h hole) {
	switch h.kind {
	case holePlain:
		if h.cost > 0 {
			f.less(h.cost)
			f.local(opLocalSet, f.counter())
		}
	case holeChecked:
		if h.cost > 0 || h.pos == 0 {
			f.less(h.cost)
			f.local(opLocalTee, f.counter())
			f.check()
		}
	case holeLoop:
		f.enter(h.cost, h.block)
	case holeSlow:
		f.again(f.holes[h.head].cost)
	}
}
