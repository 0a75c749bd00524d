package meter

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
func (m *rewriter) readCustom(r *reader) {
	if string(r.name()) != "name" {
		return
	}
	if m.names.seen {
		r.fail(ErrMalformed, "two name sections")
	}
	m.names.seen = true
	for r.err == nil && r.left() > 0 {
		id := r.byte()
		part := &reader{b: r.take(r.u32())}
		start := part.p
		switch id {
		case namesModule:
			part.name()
			m.names.module = part.b[start:part.p]
			part.done()
		case namesFunctions:
			for range part.count() {
				part.u32()
				part.name()
			}
			m.names.functions = part.b[start:part.p]
			part.done()
		case namesLocals:
			for range part.count() {
				part.u32()
				for range part.count() {
					part.u32()
					part.name()
				}
			}
			part.done()
		}
		if part.err != nil {
			r.err = part.err
		}
	}
}

func (n *names) size() int { return len(n.module) + len(n.functions) + len(n.functions)/4 + 64 }

// write appends the name section. The names were read before the functions
// were counted, so they are only now moved, and those of no function dropped.
func (n *names) write(out []byte, m *rewriter) []byte {
	if !n.seen {
		return out
	}
	body := appendName(nil, "name")
	if len(n.module) > 0 {
		body = append(appendU32(append(body, namesModule), uint32(len(n.module))), n.module...)
	}
	var entries []byte
	count := uint32(0)
	r := &reader{b: n.functions}
	for left := r.u32(); left > 0 && r.err == nil; left-- {
		f := r.u32()
		name := r.name()
		if f < m.numFuncs() {
			entries = appendName(appendU32(entries, m.shift(f)), string(name))
			count++
		}
	}
	if count > 0 {
		entries = append(appendU32(nil, count), entries...)
		body = append(appendU32(append(body, namesFunctions), uint32(len(entries))), entries...)
	}
	return append(appendU32(append(out, secCustom), uint32(len(body))), body...)
}
