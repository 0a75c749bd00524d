package meter

const (
	// leafCost bounds what a function without calls, loops and bulk operations
	// may cost in all to go unchecked: its caller is checked.
	leafCost = 256

	// longBody is from how many bytes on a function is checked after each call
	// too. A stack of frames that still have much to do after their calls would
	// go long without a check otherwise.
	longBody = 4096

	dead = -1 // in place of a hole: what follows is never reached
)

// function rewrites bodies, one after the other.
//
// It reads a body once and copies it, leaving holes where charges go. What a
// charge is, is known when the code that it pays for has been read; the holes
// are filled when the body is written.
type function struct {
	reader
	m      *rewriter
	locals uint32 // parameters and locals of the guest's
	out    []byte
	holes  []hole
	frames []frame
	open   uint32 // labels that are open in out, without one around the body
	at     int32  // hole that pays for what comes next, or dead
	cost   uint64 // of the whole body, once
	calls  bool
	loops  bool
	bulk   bool
	long   bool
	exits  bool // something other than a plain branch leaves to the end
	early  bool // a loop header comes before anything that could need a check
}

// frame is a block of the guest's that is open.
type frame struct {
	op     byte
	live   bool   // its beginning is reached
	target bool   // something that is reached leaves to its label
	then   bool   // the end of its first arm is reached
	others bool   // it has a second arm
	at     int32  // hole that pays for what is around it
	head   int32  // of a loop: the hole at its header
	low    int32  // outermost frame that something within leaves to
	label  uint32 // open labels when its own was opened, with it
}

func (f *function) rewrite(m *rewriter, t funcType, body, out []byte) []byte {
	*f = function{reader: reader{b: body}, m: m, out: f.out[:0], holes: f.holes[:0], frames: f.frames[:0], long: len(body) > longBody}
	declared := f.readLocals(uint32(len(t.params)))
	f.frames = append(f.frames, frame{live: true})
	f.at = f.hole(hole{})
	for f.err == nil && len(f.frames) > 0 {
		f.instruction()
	}
	f.done()
	if f.err != nil {
		return out
	}
	return f.write(declared, m.resultType(t.results), out)
}

// readLocals reads the declarations and gives back their bytes, from the
// number of groups on.
func (f *function) readLocals(params uint32) []byte {
	start := f.p
	total := uint64(params)
	for range f.count() {
		total += uint64(f.u32())
		f.valueType()
		if total > uint64(f.m.opt.MaxLocals) {
			f.fail(ErrLimit, "%d locals in a function, at most %d are allowed", total, f.m.opt.MaxLocals)
		}
		if f.err != nil {
			return nil
		}
	}
	f.locals = uint32(total)
	return f.b[start:f.p]
}

func (f *function) hole(h hole) int32 {
	h.pos = len(f.out)
	f.holes = append(f.holes, h)
	return int32(len(f.holes) - 1)
}

// fresh begins a metered block here.
func (f *function) fresh() { f.at = f.hole(hole{}) }

func (f *function) charge(op byte) {
	if f.at != dead {
		p := price(op)
		f.holes[f.at].cost += p
		f.cost += p
	}
}

func (f *function) instruction() {
	start := f.p
	op := f.byte()
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
		f.at = dead
	case opCall, opCallIndirect:
		f.call(op)
	case opLocalGet, opLocalSet, opLocalTee:
		f.index("local", f.locals)
		f.out = append(f.out, f.b[start:f.p]...)
	case opGlobalGet, opGlobalSet:
		f.index("global", f.m.globals)
		f.out = append(f.out, f.b[start:f.p]...)
	case opRefFunc:
		f.out = appendU32(append(f.out, op), f.m.shift(f.index("function", f.m.numFuncs())))
	case opMemoryGrow:
		zero(&f.reader)
		f.grow(f.b[start:f.p], pageShift)
	case opMisc:
		f.misc()
	default:
		immediates(&f.reader, op)
		f.out = append(f.out, f.b[start:f.p]...)
	}
}

// misc is an instruction of the second table, whose number is written in its
// one short form.
func (f *function) misc() {
	op := f.u32()
	start := f.p
	misc(&f.reader, op)
	code := append([]byte{opMisc, byte(op)}, f.b[start:f.p]...)
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

// call copies a call. Around it the counter is in the global, where the
// callee finds it and leaves it.
func (f *function) call(op byte) {
	start := f.p
	var callee uint32
	if op == opCall {
		callee = f.m.shift(f.index("function", f.m.numFuncs()))
	} else {
		f.index("type", f.m.numTypes())
		f.u32()
	}
	if f.at != dead {
		f.store()
	}
	f.out = append(f.out, op)
	if op == opCall {
		f.out = appendU32(f.out, callee)
	} else {
		f.out = append(f.out, f.b[start:f.p]...)
	}
	if f.at == dead {
		return
	}
	f.load()
	f.calls = true
	f.leaves(0)
	if f.long {
		f.at = f.hole(hole{kind: holeChecked})
	}
}

// move copies an operation on as much as the number on top of the stack says,
// and charges for it before.
func (f *function) move(code []byte, shift byte) {
	if f.at != dead {
		f.bulk = true
		f.leaves(0)
		f.local(opLocalTee, f.scratch(0))
		f.local(opLocalGet, f.counter())
		f.local(opLocalGet, f.scratch(0))
		f.out = append(f.out, opI64ExtendU)
		if shift > 0 {
			f.out = append(f.out, opI64Const, shift, opI64ShrU)
		}
		f.out = append(f.out, opI64Sub)
		f.local(opLocalTee, f.counter())
		f.check()
	}
	f.out = append(f.out, code...)
}

// grow copies an operation that grows something by the number on top of the
// stack, and charges for it if it did.
func (f *function) grow(code []byte, shift byte) {
	if f.at == dead {
		f.out = append(f.out, code...)
		return
	}
	f.bulk = true
	f.leaves(0)
	f.local(opLocalTee, f.scratch(0))
	f.out = append(f.out, code...)
	f.local(opLocalTee, f.scratch(1))
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
	f.check()
}
