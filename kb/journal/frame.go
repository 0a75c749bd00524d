package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"runloop.dev/rlp/internal/record/audit"
)

// A journal is a chain of frames from byte 0, each a multiple of 8 bytes long,
// little endian, followed by zeros up to the end of what is allocated:
//
//	 0  u32 length of the frame, u32 index of the frame, from 1    the commit word, stored last
//	 8  u32 sum, u8 kind, u8 flags, u16 n                          n: target or name length, padding of a body
//	16  body
//
// A frame that says that a decision was made once more is one word:
//
//	0  3 bits which, 9 bits ms after it, 20 bits sum, u32 index
//
// It is one of the newest that were written whole: 1 is the newest.
// The commit word is zero until everything else is in place, so that a process
// that dies between two stores leaves a frame that is not there.
const (
	headerLen = 16
	// maxFrame bounds one frame; a larger event is refused.
	maxFrame = 4 << 20
)

// Frame kinds and the first fields of their bodies.
const (
	kindHead     = 1 // CBOR of fileHead, n bytes of padding
	kindName     = 2 // the next name, in order; n bytes
	kindDecision = 3 // i64 ms, u32 run_seq, u16 cap op reason layer tool label, target, [32]byte if flagArgs
	kindEvent    = 4 // i64 ms, u64 run_seq, CBOR of audit.Event, n bytes of padding
	kindRepeat   = 5 // one word, see above: never in a header; flags say which; the next run_seq if it is kept
)

// Flags of a decision; the severity is in the bits from flagSevShift.
const (
	flagDeny     = 1
	flagKeep     = 2
	flagArgs     = 4
	flagSevShift = 4
)

// decisionLen is the length of a decision frame before its target.
const decisionLen = headerLen + 24

// A DamagedError says where a journal stops being what its writer wrote.
type DamagedError struct {
	Run    string // run id
	Frame  uint32 // index of the frame that is not as it was written
	Offset int64  // where it begins, in bytes
	Why    string
}

// Error names the run, the frame and what is wrong with it.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal of run %s is damaged at frame %d (byte %d): %s", e.Run, e.Frame, e.Offset, e.Why)
}

// Is makes every DamagedError match [ErrDamaged].
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// ErrDamaged is what errors.Is finds in a [DamagedError].
var ErrDamaged = errors.New("journal is damaged")

// sum folds a frame into 32 bits: the commit word, the second word with the
// sum's own bytes zero, and the body. Two frames that differ in any way agree
// by a chance of 2^-32, and a seed that is a secret of the home keeps a guest
// from writing bytes that look like a frame. CRC-32C costs twice as much at
// this length.
func sum(seed, commit, head uint64, body []byte) uint32 {
	const k0, k1 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
	s0, s1 := seed^k0, bits.RotateLeft64(seed, 29)^k1
	a, b := fold(s0^commit, s1^head), bits.RotateLeft64(seed, 17)
	for ; len(body) >= 32; body = body[32:] {
		a = fold(a^binary.LittleEndian.Uint64(body), s0^binary.LittleEndian.Uint64(body[8:]))
		b = fold(b^binary.LittleEndian.Uint64(body[16:]), s1^binary.LittleEndian.Uint64(body[24:])) + 1
	}
	if len(body) >= 16 {
		a = fold(a^binary.LittleEndian.Uint64(body), s0^binary.LittleEndian.Uint64(body[8:]))
		body = body[16:]
	}
	if len(body) >= 8 {
		b = fold(b^binary.LittleEndian.Uint64(body), s1)
	}
	x := fold(a^s1, b^s0)
	return uint32(x) ^ uint32(x>>32)
}

// fold multiplies to 128 bits and adds the halves without carry.
func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

const (
	repeatable = 4 // how many whole decisions may be repeated, at most 7
	repeatLen  = 8
	repeatMax  = 1 << 9 // ms after which a decision is written whole again
	repeatBits = 1<<12 - 1
)

// repeatWord is the frame, one word long, that repeats a decision.
func repeatWord(seed uint64, index uint32, which, ms uint64) uint64 {
	w := which | ms<<3 | uint64(index)<<32
	x := fold(seed^w, bits.RotateLeft64(seed, 29)^0xD6E8FEB86659FD93)
	return w | (x^x>>20^x>>40)&0xfffff<<12
}

// pad8 rounds n up to a multiple of 8.
func pad8(n int) int { return (n + 7) &^ 7 }

// A frame is one decoded frame; body and target are views.
type frame struct {
	index uint32
	kind  uint8
	flags uint8
	n     int
	body  []byte // what follows the header
}

// errNoFrame says that there is no committed frame at this place.
var errNoFrame = errors.New("no frame")

// parseFrame reads the frame at the start of p. It returns errNoFrame when
// nothing is committed there, and needs more bytes when need > len(p).
func parseFrame(p []byte, seed uint64) (f frame, length, need int, err error) {
	if len(p) < 8 {
		return f, 0, 8, nil
	}
	commit := binary.LittleEndian.Uint64(p)
	if commit == 0 {
		return f, 0, 0, errNoFrame
	}
	if which := commit & 7; which != 0 && which <= repeatable {
		f = frame{index: uint32(commit >> 32), kind: kindRepeat, flags: uint8(which), n: int(commit & repeatBits >> 3)}
		if repeatWord(seed, f.index, which, uint64(f.n)) != commit {
			err = errors.New("its sum does not match its content")
		}
		return f, repeatLen, 0, err
	}
	length = int(uint32(commit))
	if length < headerLen || length > maxFrame || length%8 != 0 {
		return f, 0, 0, errors.New("its length is impossible")
	}
	if len(p) < length {
		return f, 0, length, nil
	}
	f = frame{
		index: uint32(commit >> 32), kind: p[12], flags: p[13],
		n: int(binary.LittleEndian.Uint16(p[14:])), body: p[headerLen:length],
	}
	head := binary.LittleEndian.Uint64(p[8:])
	if sum(seed, commit, head&^0xffffffff, f.body) != uint32(head) {
		return f, length, 0, errors.New("its sum does not match its content")
	}
	return f, length, 0, nil
}

// decisionBody is the fixed part of a decision.
type decisionBody struct {
	ms                                   int64
	runSeq                               uint32
	cap, op, reason, layer, tool, label_ audit.Name
	target                               []byte
	args                                 []byte // nil or 32 bytes
}

// parseDecision reads the body of a decision frame.
func parseDecision(f frame) (d decisionBody, err error) {
	b := f.body
	want := decisionLen - headerLen + pad8(f.n)
	if f.flags&flagArgs != 0 {
		want += 32
	}
	if len(b) != want {
		return d, errors.New("a decision of the wrong length")
	}
	u16 := func(at int) audit.Name { return audit.Name(binary.LittleEndian.Uint16(b[at:])) }
	d = decisionBody{
		ms: int64(binary.LittleEndian.Uint64(b)), runSeq: binary.LittleEndian.Uint32(b[8:]),
		cap: u16(12), op: u16(14), reason: u16(16), layer: u16(18), tool: u16(20), label_: u16(22),
		target: b[24 : 24+f.n],
	}
	if f.flags&flagArgs != 0 {
		d.args = b[24+pad8(f.n):]
	}
	return d, nil
}

// formatVersion is in the first frame; a reader refuses another.
const formatVersion = 1

// fileHead is the body of the first frame.
type fileHead struct {
	Version int        `cbor:"1,keyasint"`
	Head    audit.Head `cbor:"2,keyasint"`
}
