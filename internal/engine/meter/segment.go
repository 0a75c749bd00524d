package meter

import "runloop.dev/rlp/internal/engine/wasm"

// Bits of the kind of an element segment.
const (
	elemPassive  = 1 // or declared, if the next bit is set as well
	elemExplicit = 2 // names its table, if it is active
	elemExprs    = 4 // of expressions, not of indices
	elemLast     = 7
)

// constant copies a constant expression, its functions moved.
func (m *rewriter) constant(r *reader, out []byte) []byte {
	for r.Err == nil {
		start := r.P
		op := r.Byte()
		switch op {
		case opI32Const, opI64Const, opF32Const, opF64Const, opRefNull, opEnd:
			if op != opEnd {
				immediates(r, op)
			}
			out = append(out, r.B[start:r.P]...)
			if op == opEnd {
				return out
			}
		case opGlobalGet:
			out = wasm.AppendU32(append(out, op), r.index("global", m.globals))
		case opRefFunc:
			out = append(out, op)
			if f := r.index("function", m.numFuncs()); r.Err == nil {
				out = wasm.AppendU32(out, m.reference(f))
			}
		case opVector:
			if c := r.Byte(); c != vectorConst {
				r.Fail(ErrMalformed, "instruction 0xfd %#x in a constant", c)
			}
			r.Take(16)
			out = append(out, r.B[start:r.P]...)
		default:
			r.Fail(ErrUnsupported, "instruction %#x in a constant", op)
		}
	}
	return out
}

func (m *rewriter) readElements(r *reader, n uint32) {
	out := make([]byte, 0, r.Left()+r.Left()/4)
	for range n {
		if out = m.element(r, out); r.Err != nil {
			return
		}
	}
	m.content[secElement] = out
}

func (m *rewriter) element(r *reader, out []byte) []byte {
	kind := r.U32()
	if kind > elemLast {
		r.Fail(ErrMalformed, "element segment of kind %d", kind)
		return out
	}
	out = append(out, byte(kind))
	if kind&elemPassive == 0 {
		if kind&elemExplicit != 0 {
			out = wasm.AppendU32(out, r.U32())
		}
		out = m.constant(r, out)
	}
	switch typed := kind&(elemPassive|elemExplicit) != 0; {
	case typed && kind&elemExprs != 0:
		out = append(out, r.refType())
	case typed:
		if c := r.Byte(); c != 0 {
			r.Fail(ErrUnsupported, "elements of kind %#x", c)
		}
		out = append(out, 0)
	}
	n := r.Count("entries")
	out = wasm.AppendU32(out, n)
	for range n {
		if kind&elemExprs != 0 {
			out = m.constant(r, out)
		} else if f := r.index("function", m.numFuncs()); r.Err == nil {
			out = wasm.AppendU32(out, m.reference(f))
		}
		if r.Err != nil {
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
		switch kind := r.U32(); kind {
		case 0, 2:
			if kind == 2 && r.U32() != 0 {
				r.Fail(ErrUnsupported, "a memory other than the first")
			}
			scratch = m.constant(r, scratch[:0])
		case 1:
		default:
			r.Fail(ErrMalformed, "data segment of kind %d", kind)
		}
		r.Take(r.U32())
		if r.Err != nil {
			return
		}
	}
}
