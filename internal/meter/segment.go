package meter

// Bits of the kind of an element segment.
const (
	elemPassive  = 1 // or declared, if the next bit is set as well
	elemExplicit = 2 // names its table, if it is active
	elemExprs    = 4 // of expressions, not of indices
	elemLast     = 7
)

// constant copies a constant expression, its functions moved.
func (m *rewriter) constant(r *reader, out []byte) []byte {
	for r.err == nil {
		start := r.p
		op := r.byte()
		switch op {
		case opI32Const, opI64Const, opF32Const, opF64Const, opRefNull, opEnd:
			if op != opEnd {
				immediates(r, op)
			}
			out = append(out, r.b[start:r.p]...)
			if op == opEnd {
				return out
			}
		case opGlobalGet:
			out = appendU32(append(out, op), r.index("global", m.globals))
		case opRefFunc:
			out = append(out, op)
			if f := r.index("function", m.numFuncs()); r.err == nil {
				out = appendU32(out, m.reference(f))
			}
		case opVector:
			if c := r.byte(); c != vectorConst {
				r.fail(ErrMalformed, "instruction 0xfd %#x in a constant", c)
			}
			r.take(16)
			out = append(out, r.b[start:r.p]...)
		default:
			r.fail(ErrUnsupported, "instruction %#x in a constant", op)
		}
	}
	return out
}

func (m *rewriter) readElements(r *reader, n uint32) {
	out := make([]byte, 0, r.left()+r.left()/4)
	for range n {
		if out = m.element(r, out); r.err != nil {
			return
		}
	}
	m.content[secElement] = out
}

// element copies one segment of any of the eight kinds.
func (m *rewriter) element(r *reader, out []byte) []byte {
	kind := r.u32()
	if kind > elemLast {
		r.fail(ErrMalformed, "element segment of kind %d", kind)
		return out
	}
	out = append(out, byte(kind))
	if kind&elemPassive == 0 {
		if kind&elemExplicit != 0 {
			out = appendU32(out, r.u32())
		}
		out = m.constant(r, out)
	}
	switch typed := kind&(elemPassive|elemExplicit) != 0; {
	case typed && kind&elemExprs != 0:
		out = append(out, r.refType())
	case typed:
		if c := r.byte(); c != 0 {
			r.fail(ErrUnsupported, "elements of kind %#x", c)
		}
		out = append(out, 0)
	}
	n := r.count()
	out = appendU32(out, n)
	for range n {
		if kind&elemExprs != 0 {
			out = m.constant(r, out)
		} else if f := r.index("function", m.numFuncs()); r.err == nil {
			out = appendU32(out, m.reference(f))
		}
		if r.err != nil {
			break
		}
	}
	return out
}

// readData looks at where data goes. Nothing in it has to be changed, for a
// function is no place and makes the module invalid with any index.
func (m *rewriter) readData(r *reader, n uint32) {
	var scratch []byte
	for range n {
		switch kind := r.u32(); kind {
		case 0, 2:
			if kind == 2 && r.u32() != 0 {
				r.fail(ErrUnsupported, "a memory other than the first")
			}
			scratch = m.constant(r, scratch[:0])
		case 1:
		default:
			r.fail(ErrMalformed, "data segment of kind %d", kind)
		}
		r.take(r.u32())
		if r.err != nil {
			return
		}
	}
}
