package guest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"runloop.dev/rlp/internal/abi"
)

var errTruncated = errors.New("unexpected end")

// reader takes a binary apart. After the first error it gives zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(why string) {
	if r.err == nil {
		r.err = errors.New(why)
	}
}

func (r *reader) take(n uint32) []byte {
	if r.err != nil || uint64(n) > uint64(len(r.b)) {
		if r.err == nil {
			r.err = errTruncated
		}
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// u32 reads LEB128 as the specification bounds it: five bytes, 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > math.MaxUint32 {
				r.fail("number over 32 bits")
				return 0
			}
			return uint32(v)
		}
	}
	r.fail("number over five bytes")
	return 0
}

func (r *reader) name() string {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail("name is not UTF-8")
	}
	return string(b)
}

// valueTypes reads a vector of value types.
func (r *reader) valueTypes() []abi.Type {
	raw := r.take(r.u32())
	out := make([]abi.Type, len(raw))
	for i, c := range raw {
		out[i] = abi.Type(c)
	}
	return out
}

// limits reads what a table or memory may hold.
func (r *reader) limits() (low, high uint32, bounded bool) {
	flag := r.byte()
	if flag > 1 {
		r.fail(fmt.Sprintf("limits flag %d (shared and 64-bit kinds are not supported)", flag))
	}
	low, high = r.u32(), math.MaxUint32
	if flag == 1 {
		high = r.u32()
	}
	return low, high, flag == 1
}

// appendU32 writes LEB128.
func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// Import is what a module asks for by name.
type Import struct {
	Module, Name    string
	Kind            string // "function", "table", "memory" or "global"
	Params, Results []abi.Type
}

// Imports reads what a module imports, in its order, without compiling it: the
// list of what it could ever do. Its errors wrap [ErrModule].
func Imports(wasm []byte) ([]Import, error) {
	s, err := scan(wasm)
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.imports), nil
}
