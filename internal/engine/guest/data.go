package guest

import (
	"cmp"
	"slices"

	"runloop.dev/rlp/internal/engine/wasm"
)

// A segment is what lies in the memory at a fixed place when a guest begins.
type segment struct {
	at    uint64
	bytes []byte
}

func (s segment) end() uint64 { return s.at + uint64(len(s.bytes)) }

// packed is a data section of few segments that leaves the same in a memory of so
// many bytes, or nil where that is not certain. A guest written in Go has tens of
// thousands, and the engine evaluates each for each run, and keeps 24 bytes of it.
//
// It is certain where no code can name a segment, all lie at fixed places within
// the memory, and none over another. What is between two of them is zero, as in
// any new memory, and taken with them where they share a page, which will be
// touched anyway.
func packed(section []byte, memory uint64) []byte {
	list := fixedSegments(section, memory)
	if list == nil {
		return nil
	}
	slices.SortStableFunc(list, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	joined, zeros := []segment(nil), uint64(0)
	for i, s := range list {
		if i > 0 && s.at < list[i-1].end() {
			return nil
		}
		last := len(joined) - 1
		if last < 0 || s.at-joined[last].end() >= smallGap {
			joined = append(joined, segment{s.at, slices.Clip(s.bytes)}) // what is appended is of its own
			continue
		}
		gap := s.at - joined[last].end()
		if zeros += gap; zeros > uint64(len(section))+smallGap {
			return nil
		}
		joined[last].bytes = append(append(joined[last].bytes, make([]byte, gap)...), s.bytes...)
	}
	out := wasm.AppendU32(make([]byte, 0, len(section)), uint32(len(joined)))
	for _, s := range joined {
		out = appendI32(append(out, 0, opI32Const), int32(uint32(s.at)))
		out = wasm.AppendU32(append(out, opEnd), uint32(len(s.bytes)))
		out = append(out, s.bytes...)
	}
	return out
}

const (
	// smallGap is how many zeros are kept rather than another segment is made.
	smallGap = 1 << 10

	opI32Const, opEnd = 0x41, 0x0b
)

// fixedSegments reads a data section whose segments all lie at fixed places
// within the memory; nil: it is not so.
func fixedSegments(section []byte, memory uint64) []segment {
	r := newReader(section)
	n := r.Count("data segments")
	list := make([]segment, 0, min(n, maxSegments))
	for ; n > 0 && r.Err == nil; n-- {
		if r.U32() != 0 || r.Byte() != opI32Const {
			return nil
		}
		s := segment{at: uint64(uint32(r.I32()))}
		if r.Byte() != opEnd {
			return nil
		}
		s.bytes = r.Take(r.U32())
		if s.end() > memory {
			return nil
		}
		list = append(list, s)
	}
	if r.Err != nil || r.Left() > 0 {
		return nil
	}
	return list
}

func appendI32(b []byte, v int32) []byte {
	for ; v < -64 || v > 63; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v)&0x7f)
}
