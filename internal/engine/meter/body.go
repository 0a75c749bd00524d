package meter

import (
	"slices"

	"runloop.dev/rlp/internal/engine/wasm"
)

// function rewrites bodies, one after the other.
//
// It reads a body once and copies it, leaving holes where surplus go. What a
// charge is, is known when the code that it pays for has been read; the holes
// are filled when the body is written.
type function struct {
	reader
	emitter
	charges
	liveness
	m      *rewriter
	frames []frame
	open   uint32 // labels that are open in out, without one around the body
	depth  uint32 // loops around here
	arms   uint32 // of ifs around here, within the innermost loop
	picks  bool   // calls by a table
	bulk   bool
	exits  bool // something other than a plain branch leaves to the end
	simple bool // nothing came yet that is not always executed, or needs a check
	early  bool // a loop header comes before anything that could need a check
}

// frame is a block of the guest's that is open.
type frame struct {
	op        byte
	live      bool   // its beginning is reached
	target    bool   // something that is reached leaves to its label
	then      bool   // the end of its first arm is reached
	others    bool   // it has a second arm
	at        int32  // hole that pays for what is around it
	loop      int32  // which loop it is, or dead
	low       int32  // outermost frame that something within leaves to
	surplusAt int32  // node of its label
	before    int32  // node before it
	outside   int64  // what is unseen before it
	unseen    int64  // and at its label
	label     uint32 // open labels when its own was opened, with it
	arms      uint32 // around it
	often     uint8  // how often its label is come to
}

func (f *function) rewrite(m *rewriter, t funcType, body, out []byte, checked bool) []byte {
	f.reset(m, body)
	f.params = uint32(len(t.params))
	f.types = append(f.types, t.params[:min(len(t.params), maxTracked)]...)
	declared := f.readLocals(f.params)
	f.frames = append(f.frames, frame{live: true, loop: dead, surplusAt: f.surplus.node(), unseen: noCall})
	f.at = f.begin(hole{from: settled})
	for f.Err == nil && len(f.frames) > 0 {
		f.instruction()
	}
	f.Done()
	if f.Err != nil {
		return out
	}
	f.fold()
	f.settle()
	f.findLive()
	if checked && !f.early {
		f.holes[0].kind = holeChecked
	}
	return f.write(declared, m.resultType(t.results), out)
}

// reset forgets all but the memory.
func (f *function) reset(m *rewriter, body []byte) {
	*f = function{
		reader: *newReader(body), m: m, simple: true, frames: f.frames[:0],
		emitter: emitter{out: slices.Grow(f.out[:0], len(body)+len(body)/2), refill: m.refill()},
		charges: charges{holes: f.holes[:0], surplus: f.surplus, unseen: unseen{before: noCall}},
		liveness: liveness{
			types: f.types[:0], events: f.events[:0], loops: f.loops[:0], labels: f.labels[:0], spare: len(body) / 2,
		},
	}
	f.surplus.reset()
}

// readLocals reads the declarations and gives back their bytes, from the
// number of groups on.
func (f *function) readLocals(params uint32) []byte {
	start := f.P
	total := uint64(params)
	for range f.Count("entries") {
		n := f.U32()
		total += uint64(n)
		t := f.valueType()
		if total > uint64(f.m.opt.MaxLocals) {
			f.Fail(ErrLimit, "%d locals in a function, at most %d are allowed", total, f.m.opt.MaxLocals)
		}
		if f.Err != nil {
			return nil
		}
		for ; n > 0 && len(f.types) < maxTracked; n-- {
			f.types = append(f.types, t)
		}
	}
	f.locals = uint32(total)
	return f.B[start:f.P]
}

func (f *function) hole(h hole) int32 {
	h.pos = int32(len(f.out))
	f.holes = append(room(f.holes), h)
	return int32(len(f.holes) - 1)
}

func (f *function) begin(h hole) int32 {
	h.to = f.surplus.node()
	f.surplusAt = h.to
	return f.hole(h)
}

func (f *function) fresh() {
	f.at = f.begin(hole{from: f.surplusAt, weight: f.weight(weighCost)})
	f.simple = false
	f.stop(f.at)
}

// often is how often code here is thought to run, of what there is in the
// function: by the loops around it, and the arms of ifs within those.
func (f *function) often() uint8 {
	return uint8(min(f.depth, mostLoops)*(mostArms+1) + mostArms - min(f.arms, mostArms))
}

// weight is how much a hole here is to be kept empty.
func (f *function) weight(kind uint8) uint8 { return f.often()*weights + kind }

// owe lets code that goes on at a frame's label owe what is owed there.
func (f *function) owe(fr *frame) {
	f.hole(hole{from: f.surplusAt, to: fr.surplusAt, weight: min(f.often(), fr.often)*weights + weighFree})
	f.surplusAt = fr.surplusAt
}

// square lets nothing be owed here.
func (f *function) square() {
	f.hole(hole{from: f.surplusAt, to: settled, weight: f.weight(weighFree)})
	f.surplusAt = settled
}

// pass leaves the counter on the stack, for whoever is to have it, with
// nothing owed.
func (f *function) pass() {
	if f.at == dead {
		f.local(opLocalGet, f.counter())
		return
	}
	f.hole(hole{kind: holePass, from: f.surplusAt, to: settled, weight: f.weight(weighPass)})
	f.surplusAt = settled
}

func (f *function) instruction() {
	start := f.P
	op := f.Byte()
	f.charge(op)
	switch op {
	case opBlock, opLoop, opIf:
		f.block(op)
	case opElse:
		f.otherwise()
	case opEnd:
		f.end()
	case opBr, opBrIf, opBrTable, opReturn:
		f.branch(op)
	case opUnreachable:
		f.out = append(f.out, op)
		f.event(eventStop, 0)
		f.at = dead
	case opCall, opCallIndirect:
		f.call(op)
	case opLocalGet, opLocalSet, opLocalTee:
		f.variable(op, f.index("local", f.locals))
	case opGlobalGet, opGlobalSet:
		f.index("global", f.m.globals)
		f.out = append(f.out, f.B[start:f.P]...)
	case opRefFunc:
		if callee := f.index("function", f.m.numFuncs()); f.Err == nil {
			if f.at != dead {
				f.out = wasm.AppendS64(append(f.out, opI64Const), growing+refFuncCost)
				f.ask()
			}
			f.out = wasm.AppendU32(append(f.out, op), f.m.reference(callee))
			f.m.refers = true
		}
	case opMemoryGrow:
		zero(&f.reader)
		f.grow(f.B[start:f.P], pageShift)
	case opMisc:
		f.misc()
	default:
		immediates(&f.reader, op)
		f.out = append(f.out, f.B[start:f.P]...)
	}
}

// variable copies an instruction on a local.
func (f *function) variable(op byte, i uint32) {
	f.local(op, f.moved(i))
	switch {
	case i >= maxTracked || f.at == dead:
	case op == opLocalGet:
		f.event(eventGet, i)
	default:
		f.event(eventSet, i)
	}
}

// misc is an instruction of the second table, whose number is written in its
// one short form.
func (f *function) misc() {
	op := f.U32()
	start := f.P
	if op == miscTableInit || op == miscElemDrop {
		f.index("element segment", f.m.counts[secElement]) // one more may be added
		f.P = start
	}
	misc(&f.reader, op)
	code := append([]byte{opMisc, byte(op)}, f.B[start:f.P]...)
	switch op {
	case miscMemoryInit, miscMemoryCopy, miscMemoryFill:
		f.move(code, bytesShift)
	case miscTableInit, miscTableCopy, miscTableFill:
		f.move(code, 0)
	case miscTableGrow:
		f.grow(code, 0)
	default:
		f.out = append(f.out, code...)
	}
}

// leaves notes that something here may leave to frame i, or not come back.
func (f *function) leaves(i int32) {
	top := &f.frames[len(f.frames)-1]
	top.low = min(top.low, i)
}

// call copies a call. A function of the guest's takes the counter and gives it
// back; one of the host's finds it in the global.
func (f *function) call(op byte) {
	f.returned = noCall
	if op == opCall {
		f.callDirect()
	} else {
		f.callPicked()
	}
	f.local(opLocalSet, f.counter())
	if f.at == dead {
		return
	}
	f.simple = false
	f.event(eventCall, 0)
	f.leaves(0)
	if f.returned >= 0 {
		f.meet(f.returned)
	}
	f.checkSite()
}

func (f *function) callDirect() {
	callee := f.index("function", f.m.numFuncs())
	if f.Err != nil {
		return
	}
	f.pass()
	if callee >= f.m.imports {
		f.out = wasm.AppendU32(append(f.out, opCall), f.m.shift(callee))
		f.called(f.m.checked(callee))
		return
	}
	f.out = wasm.AppendU32(append(f.out, opGlobalSet), f.m.globals)
	f.out = wasm.AppendU32(append(f.out, opCall), callee)
	f.out = wasm.AppendU32(append(f.out, opGlobalGet), f.m.globals)
}

func (f *function) callPicked() {
	t := f.index("type", f.m.numTypes())
	table := f.U32()
	if f.Err != nil {
		return
	}
	f.picks = true
	f.local(opLocalSet, f.scratch(0))
	f.pass()
	f.local(opLocalGet, f.scratch(0))
	f.out = wasm.AppendU32(wasm.AppendU32(append(f.out, opCallIndirect), f.m.counted(t)), table)
	f.called(false)
}

// move copies an operation on as much as the number on top of the stack says,
// and surplus for it before.
func (f *function) move(code []byte, shift byte) {
	if f.at != dead {
		f.bulk, f.simple = true, false
		f.leaves(0)
		f.square()
		f.local(opLocalTee, f.scratch(0))
		f.local(opLocalGet, f.counter())
		f.local(opLocalGet, f.scratch(0))
		f.out = append(f.out, opI64ExtendU)
		if shift > 0 {
			f.out = append(f.out, opI64Const, shift, opI64ShrU)
		}
		f.out = append(f.out, opI64Sub)
		f.local(opLocalTee, f.counter())
		f.check(0)
		f.seen()
		if code[1] == miscMemoryCopy || code[1] == miscMemoryFill {
			f.inPieces(code)
			return
		}
	}
	f.out = append(f.out, code...)
}

// grow copies an operation that grows something by the number on top of the
// stack, and surplus for it if it did.
func (f *function) grow(code []byte, shift byte) {
	if f.at == dead {
		f.out = append(f.out, code...)
		return
	}
	f.bulk, f.simple = true, false
	f.leaves(0)
	f.square()
	f.local(opLocalTee, f.scratch(0))
	if code[0] == opMisc { // a table, which no allocator is asked for
		f.local(opLocalGet, f.scratch(0))
		f.out = append(wasm.AppendS64(append(f.out, opI64ExtendU, opI64Const), growing), opI64Add)
		f.ask()
	}
	f.out = append(f.out, code...)
	f.local(opLocalTee, f.scratch(1))
	if code[0] == opMisc {
		f.local(opLocalGet, f.scratch(1))
		f.out = append(f.out, opI32Const, 0x7f, opI32Ne, opIf, typeNone, opElse)
		f.out = wasm.AppendS64(append(f.out, opI64Const), growing)
		f.local(opLocalGet, f.scratch(0))
		f.out = append(f.out, opI64ExtendU, opI64Sub)
		f.ask()
		f.out = append(f.out, opEnd)
	}
	f.local(opLocalGet, f.counter())
	f.local(opLocalGet, f.scratch(0))
	f.out = append(f.out, opI64ExtendU)
	f.local(opLocalGet, f.scratch(1))
	f.out = append(f.out, opI32Const, 0x7f, opI32Ne, opI64ExtendU, opI64Mul)
	if shift > 0 {
		f.out = append(f.out, opI64Const, shift, opI64Shl)
	}
	f.out = append(f.out, opI64Sub)
	f.local(opLocalTee, f.counter())
	f.check(0)
	f.seen()
}

// checkSite makes a hole where a check can be, should one be needed. If not, what
// was before pays for what comes next, as if there were none.
func (f *function) checkSite() {
	if f.unseen.before != noCall {
		f.at = f.begin(hole{from: f.surplusAt, into: f.at + 1, weight: f.weight(weighCost)})
		f.stop(f.at)
	}
}

func (f *function) seen() {
	if f.at != dead && f.unseen.before != noCall {
		f.meet(0)
		f.checkSite()
	}
}
