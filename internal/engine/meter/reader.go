package meter

import (
	"runloop.dev/rlp/internal/engine/wasm"
)

// reader takes a binary apart.
type reader struct{ wasm.Reader }

func newReader(b []byte) *reader { return &reader{wasm.New(b, ErrMalformed)} }

func (r *reader) index(what string, n uint32) uint32 {
	i := r.U32()
	if i < n {
		return i
	}
	r.Malformed("%s %d of %d", what, i, n)
	return 0
}

func (r *reader) flag(what string) {
	if c := r.Byte(); c > 1 {
		r.Malformed("%s %#x", what, c)
	}
}

func (r *reader) valueType() byte {
	c := r.Byte()
	if !isValueType(c) {
		r.Fail(ErrUnsupported, "value type %#x", c)
	}
	return c
}

func (r *reader) refType() byte {
	c := r.Byte()
	if c != typeFuncref && c != typeExternref {
		r.Fail(ErrUnsupported, "reference type %#x", c)
	}
	return c
}

func appendName(b []byte, name string) []byte {
	return append(wasm.AppendU32(b, uint32(len(name))), name...)
}

// Sections by their numbers, and the order they come in.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	numSections
)
