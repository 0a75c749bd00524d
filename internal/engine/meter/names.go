package meter

import "runloop.dev/rlp/internal/engine/wasm"

// The parts of a name section that are read, and those that are kept of it:
// traces have names of functions in them, nothing has the others.
const (
	namesModule = iota
	namesFunctions
	namesLocals
)

type names struct {
	seen      bool
	module    []byte // as a name
	functions []byte // entries, of functions that there are
}

// readCustom looks at a custom section and keeps it if it holds names.
func (n *names) read(r *reader) {
	if string(r.Name()) != "name" {
		return
	}
	if n.seen {
		r.Fail(ErrMalformed, "two name sections")
	}
	n.seen = true
	for r.Err == nil && r.Left() > 0 {
		id := r.Byte()
		part := newReader(r.Take(r.U32()))
		start := part.P
		switch id {
		case namesModule:
			part.Name()
			n.module = part.B[start:part.P]
			part.Done()
		case namesFunctions:
			for range part.Count("entries") {
				part.U32()
				part.Name()
			}
			n.functions = part.B[start:part.P]
			part.Done()
		case namesLocals:
			for range part.Count("entries") {
				part.U32()
				for range part.Count("entries") {
					part.U32()
					part.Name()
				}
			}
			part.Done()
		}
		if part.Err != nil {
			r.Stop(part.Err)
		}
	}
}

func (n *names) size() int { return len(n.module) + len(n.functions) + len(n.functions)/4 + 64 }

// write appends the name section. The names were read before the functions
// were counted, so they are only now moved, and those of no function dropped.
func (n *names) write(out []byte, numFuncs uint32, shift func(uint32) uint32) []byte {
	if !n.seen {
		return out
	}
	body := appendName(nil, "name")
	if len(n.module) > 0 {
		body = append(wasm.AppendU32(append(body, namesModule), uint32(len(n.module))), n.module...)
	}
	var entries []byte
	count := uint32(0)
	r := newReader(n.functions)
	for left := r.U32(); left > 0 && r.Err == nil; left-- {
		f := r.U32()
		name := r.Name()
		if f < numFuncs {
			entries = appendName(wasm.AppendU32(entries, shift(f)), string(name))
			count++
		}
	}
	if count > 0 {
		entries = append(wasm.AppendU32(nil, count), entries...)
		body = append(wasm.AppendU32(append(body, namesFunctions), uint32(len(entries))), entries...)
	}
	return append(wasm.AppendU32(append(out, secCustom), uint32(len(body))), body...)
}
