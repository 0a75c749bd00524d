package guest

const (
	subFunctionNames = 1
	subLocalNames    = 2
)

// readInner walks the sections whose entries hold counts of their own.
func (s *shape) readInner(id byte, r *reader, n uint32) {
	for i := uint32(0); i < n && r.Err == nil; i++ {
		switch id {
		case sectionGlobal:
			r.Take(2)
			r.constant()
		case sectionExport:
			r.name()
			r.Byte()
			r.U32()
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
	flags := r.U32()
	if flags > 7 {
		r.Malformed("unknown kind of element segment")
		return
	}
	if flags&1 == 0 {
		if flags&2 != 0 {
			r.U32()
		}
		r.constant()
	}
	if flags&3 != 0 {
		r.Byte()
	}
	n := r.Count("elements")
	r.add(&s.items, uint64(n), "elements in all segments", maxItems)
	for ; n > 0 && r.Err == nil; n-- {
		if flags&4 != 0 {
			r.constant()
		} else {
			r.U32()
		}
	}
}

func (r *reader) data() {
	switch flags := r.U32(); flags {
	case 0:
		r.constant()
	case 1:
	case 2:
		r.U32()
		r.constant()
	default:
		r.Malformed("unknown kind of data segment")
	}
	r.Take(r.U32())
}

func (r *reader) constant() {
	for r.Err == nil {
		switch op := r.Byte(); op {
		case 0x0b: // end
			return
		case 0x41, 0x42: // i32.const, i64.const
			for r.Byte()&0x80 != 0 && r.Err == nil {
			}
		case 0x43: // f32.const
			r.Take(4)
		case 0x44: // f64.const
			r.Take(8)
		case 0x23, 0xd2: // global.get, ref.func
			r.U32()
		case 0xd0: // ref.null
			r.Byte()
		case 0xfd: // v128.const
			r.U32()
			r.Take(16)
		default:
			r.Malformed("instruction %#x is not constant", op)
		}
	}
}

func (s *shape) body(r *reader) {
	b := newReader(r.Take(r.U32()))
	if r.Err != nil {
		return
	}
	if r.Stop(over(uint64(b.Left()), "bytes in a function", maxBody)); r.Err != nil {
		return
	}
	size, total := uint64(b.Left()), uint64(0)
	for n := b.Count("groups of locals"); n > 0 && b.Err == nil; n-- {
		total += uint64(b.U32())
		b.Byte()
	}
	b.Stop(over(total, "locals in a function", maxLocals))
	s.largest = max(s.largest, size+total)
	b.add(&s.locals, total, "locals in all functions", maxAllLocals)
	r.Stop(b.Err)
}

// readCustom walks a custom section: the names are the one that engines read.
func (s *shape) readCustom(r *reader) {
	if r.name() != "name" {
		return
	}
	for r.Left() > 0 && r.Err == nil {
		id := r.Byte()
		sub := newReader(r.Take(r.U32()))
		if r.Err != nil {
			return
		}
		switch id {
		case 0:
			sub.name()
		case subFunctionNames:
			s.readNames(sub)
		case subLocalNames:
			n := sub.Count("functions")
			sub.add(&s.names, uint64(n), "names", maxNames)
			for ; n > 0 && sub.Err == nil; n-- {
				sub.U32()
				s.readNames(sub)
			}
		}
		r.Stop(sub.Err)
	}
}

func (s *shape) readNames(r *reader) {
	n := r.Count("names")
	r.add(&s.names, uint64(n), "names", maxNames)
	for ; n > 0 && r.Err == nil; n-- {
		r.U32()
		r.name()
	}
}
