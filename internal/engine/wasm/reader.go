// Package wasm takes binaries of the WebAssembly core specification apart, for
// whoever judges or rewrites them. Every number is bounded as the specification
// has it, and nothing is made room for that the bytes do not hold.
package wasm

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// A Reader reads B from P on. After the first error it gives zeros.
type Reader struct {
	B   []byte
	P   int
	Err error

	malformed error
}

// New reads b. What makes no sense is an error that wraps malformed, if that is
// an error.
func New(b []byte, malformed error) Reader { return Reader{B: b, malformed: malformed} }

// Fail is an error that wraps kind, if that is one, unless there is one already.
func (r *Reader) Fail(kind error, format string, args ...any) {
	if r.Err != nil {
		return
	}
	err := fmt.Errorf(format, args...)
	if kind != nil {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	r.Stop(err)
}

// Stop makes err the error, unless it is nil or there is one already.
func (r *Reader) Stop(err error) {
	if r.Err == nil && err != nil {
		r.Err, r.P = err, len(r.B)
	}
}

// Malformed fails because the bytes make no sense.
func (r *Reader) Malformed(format string, args ...any) { r.Fail(r.malformed, format, args...) }

// Left is how many bytes there still are.
func (r *Reader) Left() int { return len(r.B) - r.P }

// Take reads n bytes.
func (r *Reader) Take(n uint32) []byte {
	if r.Err != nil || uint64(n) > uint64(r.Left()) {
		r.Malformed("unexpected end")
		return nil
	}
	out := r.B[r.P : r.P+int(n) : r.P+int(n)]
	r.P += int(n)
	return out
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if r.P >= len(r.B) {
		r.Malformed("unexpected end")
		return 0
	}
	c := r.B[r.P]
	r.P++
	return c
}

// U32 reads unsigned LEB128 of at most five bytes and 32 bits.
func (r *Reader) U32() uint32 {
	if r.P < len(r.B) && r.B[r.P] < 0x80 {
		r.P++
		return uint32(r.B[r.P-1])
	}
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.Byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	r.Malformed("a number over 32 bits")
	return 0
}

// I32 reads signed LEB128 of at most five bytes and 32 bits.
func (r *Reader) I32() int32 { return int32(r.signed(32)) }

// S33 reads a block type: signed LEB128 of at most five bytes and 33 bits.
func (r *Reader) S33() int64 { return r.signed(33) }

func (r *Reader) signed(bits int) int64 {
	var v int64
	for shift := 0; shift < 35; shift += 7 {
		c := r.Byte()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			v = v << (64 - shift - 7) >> (64 - shift - 7)
			if most := int64(1) << (bits - 1); v < -most || v >= most {
				break
			}
			return v
		}
	}
	r.Malformed("a number over %d bits", bits)
	return 0
}

// Skip passes over a number of at most n bytes.
func (r *Reader) Skip(n int) {
	for range n {
		if r.Byte() < 0x80 {
			return
		}
	}
	r.Malformed("a number of more than %d bytes", n)
}

// Count reads how many entries follow, each of which has a byte at least.
func (r *Reader) Count(what string) uint32 {
	n := r.U32()
	if uint64(n) > uint64(r.Left()) {
		r.Malformed("claims %d %s in %d bytes", n, what, r.Left())
		return 0
	}
	return n
}

// Name reads a name.
func (r *Reader) Name() []byte {
	b := r.Take(r.U32())
	if !utf8.Valid(b) {
		r.Malformed("a name that is not UTF-8")
	}
	return b
}

// Limits reads what a table or memory may hold; an error wraps unsupported.
func (r *Reader) Limits(unsupported error) (low, high uint32, bounded bool) {
	flag := r.Byte()
	if flag > 1 {
		r.Fail(unsupported, "limits flag %d (shared and 64-bit kinds are not supported)", flag)
	}
	low, high = r.U32(), math.MaxUint32
	if flag == 1 {
		high = r.U32()
	}
	return low, high, flag == 1
}

// Done fails unless everything was read.
func (r *Reader) Done() {
	if r.Left() > 0 {
		r.Malformed("%d bytes too many", r.Left())
	}
}

// AppendU32 writes LEB128.
func AppendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendS64 writes signed LEB128.
func AppendS64(b []byte, v int64) []byte {
	for {
		c := byte(v) & 0x7f
		v >>= 7
		if v == 0 && c < 0x40 || v == -1 && c >= 0x40 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
