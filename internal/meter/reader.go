package meter

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// reader takes a binary apart. After the first error it gives zeros.
type reader struct {
	b   []byte
	p   int
	err error
}

func (r *reader) fail(kind error, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))
		r.p = len(r.b)
	}
}

func (r *reader) left() int { return len(r.b) - r.p }

func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.fail(ErrMalformed, "unexpected end")
		return nil
	}
	out := r.b[r.p : r.p+int(n) : r.p+int(n)]
	r.p += int(n)
	return out
}

func (r *reader) byte() byte {
	if r.p >= len(r.b) {
		r.fail(ErrMalformed, "unexpected end")
		return 0
	}
	c := r.b[r.p]
	r.p++
	return c
}

// u32 reads LEB128 as the specification bounds it: five bytes, 32 bits.
func (r *reader) u32() uint32 {
	if r.p < len(r.b) && r.b[r.p] < 0x80 {
		r.p++
		return uint32(r.b[r.p-1])
	}
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	r.fail(ErrMalformed, "a number over 32 bits")
	return 0
}

// s33 reads a block type: signed LEB128 of five bytes, 33 bits.
func (r *reader) s33() int64 {
	var v int64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			v = v << (64 - shift - 7) >> (64 - shift - 7)
			if v < -1<<32 || v >= 1<<32 {
				break
			}
			return v
		}
	}
	r.fail(ErrMalformed, "a number over 33 bits")
	return 0
}

// skipLEB passes over a number of at most n bytes, for the engine to judge.
func (r *reader) skipLEB(n int) {
	for range n {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail(ErrMalformed, "a number of more than %d bytes", n)
}

// count reads the length of a vector, of which each element has a byte at
// least.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(r.left()) {
		r.fail(ErrMalformed, "%d entries in %d bytes", n, r.left())
		return 0
	}
	return n
}

func (r *reader) name() []byte {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail(ErrMalformed, "a name that is not UTF-8")
	}
	return b
}

// index reads an index into a space of n.
func (r *reader) index(what string, n uint32) uint32 {
	i := r.u32()
	if i < n {
		return i
	}
	if r.err == nil {
		r.fail(ErrMalformed, "%s %d of %d", what, i, n)
	}
	return 0
}

// flag reads a byte that is 0 or 1.
func (r *reader) flag(what string) {
	if c := r.byte(); c > 1 {
		r.fail(ErrMalformed, "%s %#x", what, c)
	}
}

func (r *reader) valueType() byte {
	c := r.byte()
	if !isValueType(c) && r.err == nil {
		r.fail(ErrUnsupported, "value type %#x", c)
	}
	return c
}

func (r *reader) refType() byte {
	c := r.byte()
	if c != typeFuncref && c != typeExternref && r.err == nil {
		r.fail(ErrUnsupported, "reference type %#x", c)
	}
	return c
}

// limits passes over the limits of a table or memory.
func (r *reader) limits() {
	flag := r.byte()
	if flag > 1 {
		r.fail(ErrUnsupported, "limits of kind %#x: shared or 64-bit", flag)
	}
	r.u32()
	if flag == 1 {
		r.u32()
	}
}

// done fails unless everything was read.
func (r *reader) done() {
	if r.left() > 0 {
		r.fail(ErrMalformed, "%d bytes too many", r.left())
	}
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v) & 0x7f
		v >>= 7
		if v == 0 && c < 0x40 || v == -1 && c >= 0x40 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
