package guest

import (
	"errors"
	"fmt"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/meter"

	"runloop.dev/rlp/internal/engine/wasm"
)

// ErrModule is wrapped by every refusal of a module: nothing of it has run.
var ErrModule = errors.New("module refused")

// ErrComponent refuses a component-model binary.
var ErrComponent = fmt.Errorf("%w: this is a WebAssembly component; build a core module instead "+
	"(Rust: --target wasm32-wasip1, Go: GOOS=wasip1 GOARCH=wasm, C: clang --target=wasm32-wasi)", ErrModule)

const (
	pageSize = 1 << 16
	maxPages = 1 << 16 // 4 GiB, all that 32 bits can name

	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionStart    = 8
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11

	sectionDataCount = 12 // a number alone
)

// shape is what has to be known of a module before an engine sees it.
type shape struct {
	types    []funcType
	imports  []Import
	minPages uint64 // what its memory starts with

	beside uint64 // what an instance takes beside its memory

	// arity is the most parameters or results of a type, largest the most bytes and
	// locals of a function.
	arity, largest uint64

	params, items, names, locals uint64 // in all, so far

	// tables is a table section that bounds what the module left unbounded, to
	// stand in place of the bytes from tableStart to tableEnd; nil: leave it.
	tables               []byte
	tableStart, tableEnd int
}

type funcType struct{ params, results []abi.Type }

// scan reads the structure of a module: the sections and, of them, types,
// imports, tables and memory. All else is the engine's to validate, but for
// every count on the way: one that its section has no bytes for, or that is
// over its bound, is refused here, before anyone allocates for it.
func scan(wasm []byte) (*shape, error) {
	if err := over(uint64(len(wasm)), "bytes", maxModule); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	r := newReader(wasm)
	if string(r.Take(4)) != "\x00asm" {
		return nil, fmt.Errorf("%w: not a WebAssembly binary", ErrModule)
	}
	switch v := string(r.Take(4)); v {
	case "\x01\x00\x00\x00":
	case "\x0d\x00\x01\x00":
		return nil, ErrComponent
	default:
		return nil, fmt.Errorf("%w: unknown binary version %x", ErrModule, v)
	}
	s := &shape{}
	seen := [256]bool{}
	for r.Err == nil && r.Left() > 0 {
		start := len(wasm) - r.Left()
		id := r.Byte()
		body := newReader(r.Take(r.U32()))
		if r.Err != nil {
			break
		}
		if id != 0 && seen[id] {
			return nil, fmt.Errorf("%w: two sections %d", ErrModule, id)
		}
		seen[id] = true
		if err := s.section(id, body); err != nil {
			return nil, fmt.Errorf("%w: section %d at byte %d: %w", ErrModule, id, start, err)
		}
		if id == sectionTable {
			s.tableStart, s.tableEnd = start, len(wasm)-r.Left()
		}
	}
	if r.Err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, r.Err)
	}
	s.beside += itemSize * s.items
	return s, nil
}

// frame bounds how much of the stack one call takes: each byte of a function makes
// few values, of 16 bytes at most, unless it takes or leaves many.
func (s *shape) frame() uint64 { return 1<<10 + 4*16*s.largest*max(s.arity, 1) }

func (s *shape) section(id byte, r *reader) error {
	if id == 0 {
		s.readCustom(r)
		return r.Err
	}
	if id > sectionDataCount || id == sectionStart {
		return nil
	}
	size := r.Left()
	n := r.U32()
	if r.Err != nil {
		return r.Err
	}
	if int64(n) > int64(size) && id != sectionDataCount {
		return fmt.Errorf("claims %d entries in %d bytes", n, size)
	}
	what, bound := most(id)
	if err := over(uint64(n), what, uint64(bound)); err != nil {
		return err
	}
	switch id {
	case sectionType:
		s.readTypes(r, n)
	case sectionImport:
		s.readImports(r, n)
	case sectionTable:
		return s.readTables(r, n)
	case sectionMemory:
		if n > 0 {
			low, _, _ := r.Limits(nil)
			s.minPages = uint64(low)
			return errors.Join(r.Err, over(s.minPages, "pages of memory", maxPages))
		}
	case sectionGlobal:
		s.beside += globalSize * uint64(n)
		s.readInner(id, r, n)
	default:
		s.readInner(id, r, n)
	}
	return r.Err
}

func (s *shape) readTypes(r *reader, n uint32) {
	s.types = make([]funcType, 0, n)
	for range n {
		if r.Byte() != 0x60 {
			r.Malformed("not a function type")
		}
		t := funcType{params: r.valueTypes(), results: r.valueTypes()}
		if r.Err == nil && max(len(t.params), len(t.results)) > maxParams {
			r.Malformed("a type of more than %d parameters or results", maxParams)
		}
		s.arity = max(s.arity, uint64(len(t.params)), uint64(len(t.results)))
		r.add(&s.params, uint64(len(t.params)+len(t.results)), "parameters and results in all types", maxAllParams)
		if r.Err != nil {
			return
		}
		s.types = append(s.types, t)
	}
}

func (s *shape) readImports(r *reader, n uint32) {
	for range n {
		i := Import{Module: r.name(), Name: r.name()}
		switch k := r.Byte(); k {
		case 0:
			i.Kind = "function"
			t := r.U32()
			if int64(t) >= int64(len(s.types)) {
				r.Malformed("unknown type")
				return
			}
			i.Params, i.Results = s.types[t].params, s.types[t].results
		case 1:
			i.Kind = "table"
			r.Byte()
			r.Limits(nil)
		case 2:
			i.Kind = "memory"
			r.Limits(nil)
		case 3:
			i.Kind = "global"
			r.Take(2)
		default:
			r.Malformed("unknown kind of import")
		}
		if r.Err != nil {
			return
		}
		s.imports = append(s.imports, i)
	}
}

// readTables refuses tables that begin too large, and gives the others a
// maximum where they have none.
func (s *shape) readTables(r *reader, n uint32) error {
	body := wasm.AppendU32(nil, n)
	changed := false
	for range n {
		kind := r.Byte()
		low, high, bounded := r.Limits(nil)
		if r.Err != nil {
			return r.Err
		}
		if low > maxTableSize {
			return fmt.Errorf("a table of %d elements, at most %d are allowed", low, maxTableSize)
		}
		s.beside += elementSize / 2 * uint64(low)
		changed = changed || !bounded || high > maxTableSize
		body = append(body, kind, 1)
		body = wasm.AppendU32(body, low)
		body = wasm.AppendU32(body, min(high, maxTableSize))
	}
	if r.Left() > 0 {
		return errors.New("bytes after the last table")
	}
	if changed {
		s.tables = append(wasm.AppendU32([]byte{sectionTable}, uint32(len(body))), body...)
	}
	return nil
}

// metered is what is compiled of a module: its tables bounded, and metering
// itself.
func (s *shape) metered(wasm []byte) ([]byte, error) {
	out, err := meter.Rewrite(s.bounded(wasm), meter.Option{MaxNesting: maxNesting, MaxLocals: maxLocals})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return out, nil
}

func (s *shape) bounded(wasm []byte) []byte {
	if s.tables == nil {
		return wasm
	}
	out := make([]byte, 0, len(wasm)+len(s.tables))
	out = append(out, wasm[:s.tableStart]...)
	out = append(out, s.tables...)
	return append(out, wasm[s.tableEnd:]...)
}
