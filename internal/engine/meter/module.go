package meter

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/internal/engine/wasm"
)

// Kinds of what is imported and exported.
const (
	kindFunc = iota
	kindTable
	kindMemory
	kindGlobal
)

// place is where a section belongs among the others.
func place(id byte) int {
	switch id {
	case secDataCount:
		return 2*secElement + 1
	default:
		return 2 * int(id)
	}
}

type funcType struct{ params, results []byte }

// rewriter holds what has been read of a module and what is to be written of
// it. A section is written as its vector's count and content, apart.
type rewriter struct {
	opt Option

	types   []funcType
	funcs   []uint32 // types of functions, imported ones first
	imports uint32   // how many functions are imported
	globals uint32
	counts  [numSections]uint32 // of vectors
	content [numSections][]byte
	present [numSections]bool
	code    []byte // what is in the code section, not yet rewritten
	names   names

	added        []byte // types behind the module's own
	newType      map[string]uint32
	countedTypes []uint32 // by the module's own, as far as they are added
	addedFuncs   []byte   // types of functions behind the module's own
	addedCode    []byte   // and their bodies
	numAdded     uint32   // and how many they are
	pieces       pieces
	outside      map[uint32]uint32 // added functions by what they call
	inside       map[uint32]uint32
	handed       int      // parameters of those functions
	most         int      // and how many there may be
	declared     []uint32 // functions that are exported
	refers       bool     // code refers to functions
	start        uint32   // the function of the start section
	starts       bool     // if there is one

	leaves  []bool // which functions of its own go unchecked
	body    function
	scratch []byte // of one body at a time
}

// refill is the index of the added import; the guest's own functions move up
// by one behind it.
func (m *rewriter) refill() uint32 { return m.imports }

func (m *rewriter) shift(f uint32) uint32 {
	if f >= m.imports {
		return f + 1
	}
	return f
}

func (m *rewriter) read(module []byte) error {
	m.most = len(module) + 1000
	r := newReader(module)
	if string(r.Take(4)) != "\x00asm" || string(r.Take(4)) != "\x01\x00\x00\x00" {
		r.Fail(ErrMalformed, "not a core module of version 1")
	}
	last := 0
	for r.Err == nil && r.Left() > 0 {
		id := r.Byte()
		body := newReader(r.Take(r.U32()))
		switch {
		case r.Err != nil:
		case id == secCustom:
			m.names.read(body)
		case id >= numSections:
			r.Fail(ErrUnsupported, "section %d", id)
		case place(id) <= last:
			r.Fail(ErrMalformed, "section %d out of order", id)
		default:
			last = place(id)
			m.present[id] = true
			m.readSection(id, body)
			body.Done()
		}
		if body.Err != nil {
			return body.Err
		}
	}
	if r.Err != nil {
		return r.Err
	}
	if err := m.readCode(); err != nil {
		return err
	}
	if m.handed > m.most {
		return fmt.Errorf("%w: %d parameters of functions that are exported or referred to", ErrLimit, m.handed)
	}
	return nil
}

func (m *rewriter) readSection(id byte, r *reader) {
	switch id {
	case secStart:
		if f := r.index("function", m.numFuncs()); r.Err == nil {
			if t := m.types[m.funcs[f]]; len(t.params)+len(t.results) > 0 {
				r.Fail(ErrMalformed, "a start function that takes or gives something")
			}
			m.start, m.starts = f, true
		}
		return
	case secDataCount:
		m.counts[id] = r.U32()
		return
	}
	n := r.Count("entries")
	m.counts[id] = n
	start := r.P
	switch id {
	case secType:
		m.readTypes(r, n)
	case secImport:
		m.readImports(r, n)
	case secFunction:
		m.readFunctions(r, n)
		return
	case secTable:
		for range n {
			r.refType()
			r.Limits(ErrUnsupported)
		}
	case secMemory:
		if n > 1 {
			r.Fail(ErrUnsupported, "%d memories", n)
		}
		for range n {
			r.Limits(ErrUnsupported)
		}
	case secGlobal:
		m.readGlobals(r, n)
		return
	case secExport:
		m.readExports(r, n)
		return
	case secElement:
		m.readElements(r, n)
		return
	case secCode:
		m.code = r.Take(uint32(r.Left()))
		return
	case secData:
		m.readData(r, n)
	}
	m.content[id] = r.B[start:r.P]
}

func (m *rewriter) numTypes() uint32 { return uint32(len(m.types)) }
func (m *rewriter) numFuncs() uint32 { return uint32(len(m.funcs)) }

func (m *rewriter) readTypes(r *reader, n uint32) {
	m.types, m.countedTypes = make([]funcType, 0, n), make([]uint32, n)
	for range n {
		if c := r.Byte(); c != typeFunc {
			r.Fail(ErrUnsupported, "type of kind %#x", c)
			return
		}
		m.types = append(m.types, funcType{valueTypes(r), valueTypes(r)})
	}
}

func valueTypes(r *reader) []byte {
	list := r.Take(r.U32())
	for _, c := range list {
		if !isValueType(c) {
			r.Fail(ErrUnsupported, "value type %#x", c)
		}
	}
	return list
}

func (m *rewriter) readImports(r *reader, n uint32) {
	for range n {
		if string(r.Name()) == ImportModule {
			r.Fail(ErrReserved, "import from %q", ImportModule)
		}
		r.Name()
		switch kind := r.Byte(); kind {
		case kindFunc:
			m.funcs = append(m.funcs, r.index("type", m.numTypes()))
			m.imports++
		case kindTable:
			r.refType()
			r.Limits(ErrUnsupported)
		case kindMemory:
			r.Limits(ErrUnsupported)
		case kindGlobal:
			r.valueType()
			r.flag("mutability")
			m.globals++
		default:
			r.Fail(ErrUnsupported, "import of kind %d", kind)
		}
		if r.Err != nil {
			return
		}
	}
}

func (m *rewriter) readFunctions(r *reader, n uint32) {
	out := make([]byte, 0, n+n/4)
	for range n {
		t := r.index("type", m.numTypes())
		if r.Err != nil {
			return
		}
		m.funcs = append(m.funcs, t)
		out = wasm.AppendU32(out, m.counted(t))
	}
	m.content[secFunction] = out
}

func (m *rewriter) readGlobals(r *reader, n uint32) {
	m.globals += n
	out := make([]byte, 0, r.Left()+r.Left()/8)
	for range n {
		out = append(out, r.valueType(), r.Byte())
		if out = m.constant(r, out); r.Err != nil {
			return
		}
	}
	m.content[secGlobal] = out
}

func (m *rewriter) readExports(r *reader, n uint32) {
	out := make([]byte, 0, r.Left()+r.Left()/8)
	for range n {
		start := r.P
		if name := string(r.Name()); name == CounterName || name == StartName {
			r.Fail(ErrReserved, "export of %q", name)
		}
		kind := r.Byte()
		out = append(out, r.B[start:r.P]...)
		switch kind {
		case kindFunc:
			f := r.index("function", m.numFuncs())
			if r.Err != nil {
				return
			}
			m.declared = append(m.declared, f)
			out = wasm.AppendU32(out, m.outer(f))
		case kindGlobal:
			out = wasm.AppendU32(out, r.index("global", m.globals))
		case kindTable, kindMemory:
			out = wasm.AppendU32(out, r.U32())
		default:
			r.Fail(ErrUnsupported, "export of kind %d", kind)
		}
		if r.Err != nil {
			return
		}
	}
	m.content[secExport] = out
}

// readCode rewrites the bodies, now that all is known that they may name.
func (m *rewriter) readCode() error {
	own := m.funcs[m.imports:]
	if int(m.counts[secCode]) != len(own) {
		return fmt.Errorf("%w: %d functions, %d bodies", ErrMalformed, len(own), m.counts[secCode])
	}
	r := newReader(m.code)
	out := make([]byte, 0, len(m.code)+len(m.code)/3+64)
	bodies := make([][]byte, len(own))
	m.leaves = make([]bool, len(own))
	for i := range own {
		bodies[i] = r.Take(r.U32())
		m.leaves[i] = isLeaf(bodies[i])
	}
	for i, t := range own {
		if out = m.body.rewrite(m, m.types[t], bodies[i], out, !m.leaves[i]); m.body.Err != nil {
			return m.body.Err
		}
	}
	r.Done()
	m.content[secCode] = out
	return r.Err
}

func (m *rewriter) resultType(results []byte) []byte {
	switch len(results) {
	case 0:
		return []byte{typeNone}
	case 1:
		return results
	}
	i, ok := m.newType[string(results)]
	if !ok {
		i = m.addType(nil, results)
		m.newType[string(results)] = i
	}
	return wasm.AppendS64(nil, int64(i))
}

func (m *rewriter) addType(params, results []byte) uint32 {
	m.added = append(append(wasm.AppendU32(append(m.added, typeFunc), uint32(len(params))), params...),
		wasm.AppendU32(nil, uint32(len(results)))...)
	m.added = append(m.added, results...)
	m.counts[secType]++
	return m.counts[secType] - 1
}

func (m *rewriter) bytes() []byte {
	m.declare()
	if m.starts {
		m.append(secExport, wasm.AppendU32(append(appendName(nil, StartName), kindFunc), m.outer(m.start)))
	}
	m.appendAll(secFunction, m.addedFuncs, m.numAdded)
	m.appendAll(secCode, m.addedCode, m.numAdded)
	t := m.addType([]byte{typeI64}, []byte{typeI64})
	m.content[secType] = slices.Concat(m.content[secType], m.added)
	m.append(secImport, wasm.AppendU32(append(appendName(appendName(nil, ImportModule), ImportName), kindFunc), t))
	m.append(secGlobal, []byte{typeI64, 1, opI64Const, 0, opEnd})
	m.append(secExport, wasm.AppendU32(append(appendName(nil, CounterName), kindGlobal), m.globals))
	m.present[secType] = true

	size := 64
	for _, c := range m.content {
		size += len(c) + 10
	}
	out := append(make([]byte, 0, size+m.names.size()), "\x00asm\x01\x00\x00\x00"...)
	for _, id := range [...]byte{
		secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport, secElement, secDataCount, secCode,
		secData,
	} {
		if m.present[id] {
			out = m.section(out, id)
		}
	}
	return m.names.write(out, m.numFuncs(), m.shift)
}

func (m *rewriter) append(id byte, entry []byte) { m.appendAll(id, entry, 1) }

func (m *rewriter) appendAll(id byte, entries []byte, n uint32) {
	if n > 0 {
		m.content[id] = append(slices.Clip(m.content[id]), entries...)
		m.counts[id] += n
		m.present[id] = true
	}
}

func (m *rewriter) section(out []byte, id byte) []byte {
	count := wasm.AppendU32(nil, m.counts[id])
	out = wasm.AppendU32(append(out, id), uint32(len(count)+len(m.content[id])))
	return append(append(out, count...), m.content[id]...)
}

// checked reports whether a function of the guest's is checked where it is
// entered.
func (m *rewriter) checked(f uint32) bool { return !m.leaves[f-m.imports] }
