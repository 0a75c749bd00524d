package guest

import "fmt"

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
func outline(wasm []byte) ([]byte, error) {
	const header = 8
	if len(wasm) < header {
		return nil, errTruncated
	}
	out := append(make([]byte, 0, len(wasm)/2), wasm[:header]...)
	r := &reader{b: wasm[header:]}
	memory, named := uint64(0), false // its bytes; that code may name data segments
	for len(r.b) > 0 {
		whole := r.b
		id := r.byte()
		body := &reader{b: r.take(r.u32())}
		if r.err != nil {
			return nil, r.err
		}
		switch id {
		case sectionMemory:
			memory = leastMemory(body.b)
		case sectionDataCount:
			named = true
		case sectionData:
			if data := packed(body.b, memory); data != nil && !named {
				out = append(appendU32(append(out, sectionData), uint32(len(data))), data...)
				continue
			}
		}
		if id != sectionCode {
			out = append(out, whole[:len(whole)-len(r.b)]...)
			continue
		}
		n := body.u32()
		if body.err != nil || int64(n) > int64(len(body.b)) {
			return nil, fmt.Errorf("a code section of %d bytes claims %d functions", len(body.b), n)
		}
		count := appendU32(nil, n)
		out = appendU32(append(out, sectionCode), uint32(len(count)+len(emptyBody)*int(n)))
		out = append(out, count...)
		for range n {
			out = append(out, emptyBody[:]...)
		}
	}
	return out, nil
}

// leastMemory is how many bytes a module's memory has at first, by its section.
func leastMemory(section []byte) uint64 {
	r := &reader{b: section}
	if r.count("memories") == 0 {
		return 0
	}
	low, _, _ := r.limits()
	if r.err != nil {
		return 0
	}
	return uint64(low) * pageSize
}
