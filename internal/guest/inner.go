package guest

import "fmt"

const (
	subFunctionNames = 1
	subLocalNames    = 2
)

// count reads how many entries follow and refuses a number that the bytes
// which are there cannot hold: the engine makes room for what is claimed.
func (r *reader) count(what string) uint32 {
	n := r.u32()
	if r.err == nil && int64(n) > int64(len(r.b)) {
		r.fail(fmt.Sprintf("claims %d %s in %d bytes", n, what, len(r.b)))
		return 0
	}
	return n
}

// readInner walks the sections whose entries hold counts of their own.
func (s *shape) readInner(id byte, r *reader, n uint32) {
	for i := uint32(0); i < n && r.err == nil; i++ {
		switch id {
		case sectionGlobal:
			r.take(2)
			r.constant()
		case sectionExport:
			r.name()
			r.byte()
			r.u32()
		case sectionElement:
			s.element(r)
		case sectionCode:
			s.body(r)
		case sectionData:
			r.data()
		}
	}
}

// element skips one element segment. Bit 0 of its flags says that it is not
// active, bit 1 that it names a table or a kind, bit 2 that it holds expressions.
func (s *shape) element(r *reader) {
	flags := r.u32()
	if flags > 7 {
		r.fail("unknown kind of element segment")
		return
	}
	if flags&1 == 0 {
		if flags&2 != 0 {
			r.u32()
		}
		r.constant()
	}
	if flags&3 != 0 {
		r.byte()
	}
	n := r.count("elements")
	r.add(&s.items, uint64(n), "elements in all segments", maxItems)
	for ; n > 0 && r.err == nil; n-- {
		if flags&4 != 0 {
			r.constant()
		} else {
			r.u32()
		}
	}
}

// data skips one data segment.
func (r *reader) data() {
	switch flags := r.u32(); flags {
	case 0:
		r.constant()
	case 1:
	case 2:
		r.u32()
		r.constant()
	default:
		r.fail("unknown kind of data segment")
	}
	r.take(r.u32())
}

// constant skips a constant expression.
func (r *reader) constant() {
	for r.err == nil {
		switch op := r.byte(); op {
		case 0x0b: // end
			return
		case 0x41, 0x42: // i32.const, i64.const
			for r.byte()&0x80 != 0 && r.err == nil {
			}
		case 0x43: // f32.const
			r.take(4)
		case 0x44: // f64.const
			r.take(8)
		case 0x23, 0xd2: // global.get, ref.func
			r.u32()
		case 0xd0: // ref.null
			r.byte()
		case 0xfd: // v128.const
			r.u32()
			r.take(16)
		default:
			r.fail(fmt.Sprintf("instruction %#x is not constant", op))
		}
	}
}

// body skips one function body, and bounds what it declares.
func (s *shape) body(r *reader) {
	b := &reader{b: r.take(r.u32())}
	if r.err != nil {
		return
	}
	if r.err = over(uint64(len(b.b)), "bytes in a function", maxBody); r.err != nil {
		return
	}
	size, total := uint64(len(b.b)), uint64(0)
	for n := b.count("groups of locals"); n > 0 && b.err == nil; n-- {
		total += uint64(b.u32())
		b.byte()
	}
	if b.err == nil {
		b.err = over(total, "locals in a function", maxLocals)
	}
	s.largest = max(s.largest, size+total)
	b.add(&s.locals, total, "locals in all functions", maxAllLocals)
	r.err = b.err
}

// readCustom walks a custom section: the names are the one that engines read.
func (s *shape) readCustom(r *reader) {
	if r.name() != "name" {
		return
	}
	for len(r.b) > 0 && r.err == nil {
		id := r.byte()
		sub := &reader{b: r.take(r.u32())}
		if r.err != nil {
			return
		}
		switch id {
		case 0:
			sub.name()
		case subFunctionNames:
			s.readNames(sub)
		case subLocalNames:
			n := sub.count("functions")
			sub.add(&s.names, uint64(n), "names", maxNames)
			for ; n > 0 && sub.err == nil; n-- {
				sub.u32()
				s.readNames(sub)
			}
		}
		r.err = sub.err
	}
}

// readNames skips a vector of indices and names.
func (s *shape) readNames(r *reader) {
	n := r.count("names")
	r.add(&s.names, uint64(n), "names", maxNames)
	for ; n > 0 && r.err == nil; n-- {
		r.u32()
		r.name()
	}
}
