package blake3

import (
	"encoding/binary"
	"math/bits"
)

// The flags of a compression.
const (
	chunkStart = 1 << iota
	chunkEnd
	parent
	root
	keyed
)

const (
	blockLen    = 64
	chunkBlocks = 16
)

type words = [8]uint32

// portable is BLAKE3 as its paper describes it, one block at a time: what is
// hashed here is mostly a line or two.
type portable struct {
	key   words
	flags uint32 // keyed or none

	cv     words // of the chunk so far
	chunk  uint64
	blocks int // of the chunk, compressed
	buf    [blockLen]byte
	n      int     // bytes in buf
	stack  []words // of whole subtrees, the largest first
}

func start() words {
	return words{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
}

func newPortable(key *[32]byte) *portable {
	h := &portable{key: start()}
	if key != nil {
		h.flags = keyed
		for i := range h.key {
			h.key[i] = binary.LittleEndian.Uint32(key[4*i:])
		}
	}
	h.Reset()
	return h
}

// Reset makes the hasher as it was made.
func (h *portable) Reset() {
	h.cv, h.chunk, h.blocks, h.n, h.stack = h.key, 0, 0, 0, h.stack[:0]
}

// Write hashes p. It never fails.
func (h *portable) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		if h.n == blockLen { // of the last block nobody knows yet that it is the last
			h.block()
		}
		n := copy(h.buf[h.n:], p)
		h.n += n
		p = p[n:]
	}
	return all, nil
}

// WriteString is Write.
func (h *portable) WriteString(s string) (int, error) { return h.Write([]byte(s)) }

// block compresses a whole block that is not the last.
func (h *portable) block() {
	flags := h.blockFlags()
	h.n = 0
	if h.blocks < chunkBlocks-1 {
		h.cv = short(compress(&h.cv, load(&h.buf), h.chunk, blockLen, flags))
		h.blocks++
		return
	}
	cv := short(compress(&h.cv, load(&h.buf), h.chunk, blockLen, flags|chunkEnd))
	h.chunk++
	for total := h.chunk; total&1 == 0; total >>= 1 {
		last := len(h.stack) - 1
		cv = short(compress(&h.key, join(h.stack[last], cv), 0, blockLen, h.flags|parent))
		h.stack = h.stack[:last]
	}
	h.stack = append(h.stack, cv)
	h.cv, h.blocks = h.key, 0
}

func (h *portable) blockFlags() uint32 {
	if h.blocks == 0 {
		return h.flags | chunkStart
	}
	return h.flags
}

// Sum appends the digest of what was written, of 32 bytes.
func (h *portable) Sum(b []byte) []byte {
	clear(h.buf[h.n:])
	cv, block, chunk, n, flags := h.cv, load(&h.buf), h.chunk, uint32(h.n), h.blockFlags()|chunkEnd
	for i := len(h.stack) - 1; i >= 0; i-- {
		block = join(h.stack[i], short(compress(&cv, block, chunk, n, flags)))
		cv, chunk, n, flags = h.key, 0, blockLen, h.flags|parent
	}
	for _, w := range short(compress(&cv, block, 0, n, flags|root)) {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func load(b *[blockLen]byte) (m [16]uint32) {
	for i := range m {
		m[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return m
}

func join(left, right words) (m [16]uint32) {
	copy(m[:8], left[:])
	copy(m[8:], right[:])
	return m
}

func short(v [16]uint32) words { return words(v[:8]) }

// compress is the compression function, whose result is its whole state.
func compress(cv *words, m [16]uint32, counter uint64, n, flags uint32) [16]uint32 {
	iv := start()
	v := [16]uint32{
		cv[0], cv[1], cv[2], cv[3], cv[4], cv[5], cv[6], cv[7],
		iv[0], iv[1], iv[2], iv[3], uint32(counter), uint32(counter >> 32), n, flags,
	}
	for round := 0; ; round++ {
		mix(&v, [4]uint8{0, 4, 8, 12}, m[0], m[1])
		mix(&v, [4]uint8{1, 5, 9, 13}, m[2], m[3])
		mix(&v, [4]uint8{2, 6, 10, 14}, m[4], m[5])
		mix(&v, [4]uint8{3, 7, 11, 15}, m[6], m[7])
		mix(&v, [4]uint8{0, 5, 10, 15}, m[8], m[9])
		mix(&v, [4]uint8{1, 6, 11, 12}, m[10], m[11])
		mix(&v, [4]uint8{2, 7, 8, 13}, m[12], m[13])
		mix(&v, [4]uint8{3, 4, 9, 14}, m[14], m[15])
		if round == 6 {
			break
		}
		m = [16]uint32{m[2], m[6], m[3], m[10], m[7], m[0], m[4], m[13], m[1], m[11], m[12], m[5], m[9], m[14], m[15], m[8]}
	}
	for i := range 8 {
		v[i] ^= v[i+8]
		v[i+8] ^= cv[i]
	}
	return v
}

func mix(v *[16]uint32, at [4]uint8, x, y uint32) {
	a, b, c, d := v[at[0]&15], v[at[1]&15], v[at[2]&15], v[at[3]&15]
	a += b + x
	d = bits.RotateLeft32(d^a, -16)
	c += d
	b = bits.RotateLeft32(b^c, -12)
	a += b + y
	d = bits.RotateLeft32(d^a, -8)
	c += d
	b = bits.RotateLeft32(b^c, -7)
	v[at[0]&15], v[at[1]&15], v[at[2]&15], v[at[3]&15] = a, b, c, d
}
