package guest

import (
	"errors"
	"fmt"

	"runloop.dev/rlp/internal/engine/wasm"
)

// emptyBody stands for every function in an outline: its size, no locals,
// unreachable, end.
var emptyBody = [...]byte{3, 0, 0x00, 0x0b}

// outline is a module without its code: what this process decodes in its place.
//
// Native code depends on a module's types, imports, functions, tables, memory
// and globals, and is made from the bodies. Once it is made the bodies are of
// no use, but an engine that is given them decodes and validates every
// instruction, which is most of a launch, and more of what a hostile module
// can make slow. So the compiler names the native code as that of the outline.
// Its data is that of the module in as few segments as can be, see [packed].
func outline(module []byte) ([]byte, error) {
	const header = 8
	if len(module) < header {
		return nil, errors.New("unexpected end")
	}
	out := append(make([]byte, 0, len(module)/2), module[:header]...)
	r := newReader(module[header:])
	memory, named := uint64(0), false // its bytes; that code may name data segments
	for r.Left() > 0 {
		whole := r.rest()
		id := r.Byte()
		body := newReader(r.Take(r.U32()))
		if r.Err != nil {
			return nil, r.Err
		}
		switch id {
		case sectionMemory:
			memory = leastMemory(body.rest())
		case sectionDataCount:
			named = true
		case sectionData:
			if data := packed(body.rest(), memory); data != nil && !named {
				out = append(wasm.AppendU32(append(out, sectionData), uint32(len(data))), data...)
				continue
			}
		}
		if id != sectionCode {
			out = append(out, whole[:len(whole)-r.Left()]...)
			continue
		}
		n := body.U32()
		if body.Err != nil || int64(n) > int64(body.Left()) {
			return nil, fmt.Errorf("a code section of %d bytes claims %d functions", body.Left(), n)
		}
		count := wasm.AppendU32(nil, n)
		out = wasm.AppendU32(append(out, sectionCode), uint32(len(count)+len(emptyBody)*int(n)))
		out = append(out, count...)
		for range n {
			out = append(out, emptyBody[:]...)
		}
	}
	return out, nil
}

// leastMemory is how many bytes a module's memory has at first, by its section.
func leastMemory(section []byte) uint64 {
	r := newReader(section)
	if r.Count("memories") == 0 {
		return 0
	}
	low, _, _ := r.Limits(nil)
	if r.Err != nil {
		return 0
	}
	return uint64(low) * pageSize
}
