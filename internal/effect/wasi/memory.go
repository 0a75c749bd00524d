package wasi

import (
	"encoding/binary"
	"math"
)

// memory is the guest's linear memory as it is during one call. Every access
// is checked in 64 bits, so that no pointer and length can wrap around.
type memory []byte

// at is the n bytes at ptr, and false when any of them lies outside.
func (m memory) at(ptr, n uint32) ([]byte, bool) {
	return m.span(ptr, uint64(n))
}

// span is at for sizes that were computed rather than given; n is less than 1<<63.
func (m memory) span(ptr uint32, n uint64) ([]byte, bool) {
	end := uint64(ptr) + n
	if end > uint64(len(m)) {
		return nil, false
	}
	return m[ptr:end:end], true
}

func putU32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }

func putU64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// maxVectors bounds the vectors of one call, as IOV_MAX does.
const maxVectors = 1024

// vectors is a guest's array of (pointer, length) pairs, checked once.
type vectors struct {
	mem memory
	raw []byte
}

func (m memory) vectors(ptr, n uint32) (vectors, Errno) {
	if n > maxVectors {
		return vectors{}, EINVAL
	}
	raw, ok := m.span(ptr, 8*uint64(n))
	if !ok {
		return vectors{}, EFAULT
	}
	v := vectors{mem: m, raw: raw}
	var total uint64
	for i := range v.len() {
		b, ok := v.at(i)
		if !ok {
			return vectors{}, EFAULT
		}
		total += uint64(len(b))
	}
	if total > math.MaxInt32 {
		return vectors{}, EINVAL
	}
	return v, Success
}

func (v vectors) len() int { return len(v.raw) / 8 }

// at is the i-th buffer. It is looked up anew each time: a guest may have
// placed the array inside a buffer that a read has just filled.
func (v vectors) at(i int) ([]byte, bool) {
	e := v.raw[8*i:]
	return v.mem.at(binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:]))
}
