package guest

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/internal/engine/wasm"
)

// laid is what a data section of fixed segments leaves in a memory, by the word of
// the specification: each in its turn. It is false where one is outside.
func laid(section []byte, size int) (memory []byte, inside bool) {
	memory = make([]byte, size)
	r := newReader(section)
	for n := r.U32(); n > 0; n-- {
		r.U32()
		r.Byte()
		at := uint64(uint32(r.I32()))
		r.Byte()
		b := r.Take(r.U32())
		if at+uint64(len(b)) > uint64(size) {
			return memory, false
		}
		copy(memory[at:], b)
	}
	if r.Err != nil || r.Left() > 0 {
		panic(fmt.Sprint(r.Err, r.Left()))
	}
	return memory, true
}

func dataSection(list []segment) []byte {
	out := wasm.AppendU32(nil, uint32(len(list)))
	for _, s := range list {
		out = appendI32(append(out, 0, opI32Const), int32(uint32(s.at)))
		out = wasm.AppendU32(append(out, opEnd), uint32(len(s.bytes)))
		out = append(out, s.bytes...)
	}
	return out
}

// A packed section leaves in the memory what the section does; one that lies over
// itself or outside is left as it is.
func TestPackedDataIsTheSame(t *testing.T) {
	const size = 1 << 16
	some, none := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var list []segment
		at := uint64(0)
		for n := rapid.IntRange(0, 40).Draw(t, "n"); n > 0; n-- {
			if rapid.IntRange(0, 60).Draw(t, "anywhere") == 0 {
				at = rapid.Uint64Range(0, size+100).Draw(t, "at")
			}
			s := segment{
				at + rapid.Uint64Range(0, 40).Draw(t, "gap")*rapid.Uint64Range(0, 60).Draw(t, "times"),
				rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "bytes"),
			}
			list, at = append(list, s), s.end()
		}
		for i := range list { // the order is nobody's promise
			j := rapid.IntRange(0, i).Draw(t, "swap")
			if rapid.IntRange(0, 9).Draw(t, "swaps") == 0 {
				list[i], list[j] = list[j], list[i]
			}
		}
		section := dataSection(list)
		want, inside := laid(section, size)
		p := packed(section, size)
		if p == nil {
			none++
			return
		}
		some++
		got, still := laid(p, size)
		if !inside || !still || !bytes.Equal(want, got) || len(p) > 2*len(section)+2*smallGap {
			t.Fatalf("%d segments: inside %v, then %v, %d bytes, then %d", len(list), inside, still, len(section), len(p))
		}
	})
	if some == 0 || none == 0 {
		t.Errorf("control: %d were packed and %d were not", some, none)
	}
}

// What is packed and what cannot be.
func TestWhichDataIsPacked(t *testing.T) {
	const size = 4 * pageSize
	seg := func(at int, text string) segment { return segment{uint64(at), []byte(text)} }
	many := make([]segment, 30_000)
	for i := range many {
		many[i] = seg(i*8, "abcd")
	}
	for name, c := range map[string]struct {
		section []byte
		want    int // segments; -1: it is left as it is
	}{
		"none":             {dataSection(nil), 0},
		"neighbours":       {dataSection(many), 1},
		"far":              {dataSection([]segment{seg(0, "a"), seg(2*pageSize, "b")}), 2},
		"out of order":     {dataSection([]segment{seg(5, "b"), seg(0, "a")}), 1},
		"at the end":       {dataSection([]segment{seg(size-1, "a")}), 1},
		"past the end":     {dataSection([]segment{seg(0, "a"), seg(size, "b")}), -1},
		"empty, past it":   {dataSection([]segment{seg(0, "a"), seg(size+1, "")}), -1},
		"negative":         {dataSection([]segment{{math.MaxUint32, []byte("a")}}), -1},
		"over one another": {dataSection([]segment{seg(0, "abc"), seg(2, "d")}), -1},
		"passive":          {[]byte{1, 1, 1, 'a'}, -1},
		"by a global":      {[]byte{1, 0, 0x23, 0, opEnd, 1, 'a'}, -1},
		"short":            {[]byte{2, 0, opI32Const, 0, opEnd, 1, 'a'}, -1},
		"long":             {[]byte{0, 0}, -1},
		"sparse":           {dataSection(spread(200, 900)), -1},
	} {
		got := -1
		if p := packed(c.section, size); p != nil {
			got = int(newReader(p).U32())
		}
		if got != c.want {
			t.Errorf("%s: %d segments, want %d", name, got, c.want)
		}
	}
}

// spread are n segments of one byte, so far from one another.
func spread(n, far int) []segment {
	var list []segment
	for i := range n {
		list = append(list, segment{uint64(i * far), []byte("x")})
	}
	return list
}

// A section that code may name is left as it is.
func TestNamedDataIsNotPacked(t *testing.T) {
	section := func(id byte, body []byte) []byte {
		return append(wasm.AppendU32([]byte{id}, uint32(len(body))), body...)
	}
	two := dataSection([]segment{{0, []byte("a")}, {8, []byte("b")}})
	head := append([]byte("\x00asm\x01\x00\x00\x00"), section(sectionMemory, []byte{1, 0, 1})...)
	for _, named := range []bool{false, true} {
		wasm := head[:len(head):len(head)]
		if named {
			wasm = append(wasm, section(sectionDataCount, []byte{2})...)
		}
		wasm = append(wasm, section(sectionData, two)...)
		short, err := outline(wasm)
		if err != nil || bytes.Equal(short, wasm) != named {
			t.Errorf("named %v: %v, %x of %x", named, err, short, wasm)
		}
	}
}
