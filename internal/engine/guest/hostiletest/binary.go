package hostiletest

import (
	"slices"
	"strconv"
)

// Instructions, types and sections that the attacks are made of.
const (
	opUnreachable, opBlock, opLoop, opIf, opElse, opEnd        = 0x00, 0x02, 0x03, 0x04, 0x05, 0x0b
	opBr, opBrIf, opBrTable, opReturn, opCall, opCallIndirect  = 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11
	opDrop, opSelect, opLocalGet, opLocalSet, opLocalTee       = 0x1a, 0x1b, 0x20, 0x21, 0x22
	opGlobalGet, opGlobalSet, opLoad, opStore, opGrow          = 0x23, 0x24, 0x28, 0x36, 0x40
	opI32Const, opI64Const, opI32Add, opI32Mul, opMisc, opSIMD = 0x41, 0x42, 0x6a, 0x6c, 0xfc, 0xfd
	void, i32, i64, v128, funcref                              = 0x40, 0x7f, 0x7e, 0x7b, 0x70

	secType, secImport, secFunction, secTable, secMemory, secGlobal = 1, 2, 3, 4, 5, 6
	secExport, secStart, secElement, secCode, secData, secDataCount = 7, 8, 9, 10, 11, 12
)

const header = "\x00asm\x01\x00\x00\x00"

func u(v int) []byte {
	b := []byte{}
	for n := uint32(v); ; n >>= 7 {
		if n < 0x80 {
			return append(b, byte(n))
		}
		b = append(b, byte(n)|0x80)
	}
}

func s(v int) []byte {
	b := []byte{}
	for {
		c := byte(v) & 0x7f
		v >>= 7
		if v == 0 && c < 0x40 || v == -1 && c >= 0x40 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func rep(n int, parts ...[]byte) []byte { return slices.Repeat(cat(parts...), n) }

func op(code ...byte) []byte { return code }

func constant(v int) []byte { return cat(op(opI32Const), s(v)) }

func text(t string) []byte { return cat(u(len(t)), []byte(t)) }

func section(id byte, parts ...[]byte) []byte {
	body := cat(parts...)
	return cat(op(id), u(len(body)), body)
}

func vector(id byte, n int, entry ...[]byte) []byte { return section(id, u(n), rep(n, entry...)) }

func binary(sections ...[]byte) []byte { return cat([]byte(header), cat(sections...)) }

// a program is a module that starts at its first function: the sections that
// most attacks need, and a place for the one that the attack is in.
type program struct {
	types   []byte // after () -> ()
	ntypes  int
	imports []byte
	tables  []byte
	memory  []byte // limits
	globals []byte
	exports int // more exports, of function 0
	start   bool
	elems   []byte
	locals  []byte // groups of _start, with their number
	code    []byte // of _start, without the last end
	more    [][]byte
	data    []byte
	last    []byte
}

func (p program) bytes() []byte {
	limits := p.memory
	if limits == nil {
		limits = cat(op(0), u(1))
	}
	locals := p.locals
	if locals == nil {
		locals = u(0)
	}
	exports := append(text("_start"), 0, 0)
	for i := range p.exports {
		exports = append(append(exports, text(strconv.Itoa(i))...), 0, 0)
	}
	code := append(body(locals, p.code), cat(p.more...)...)
	out := binary(section(secType, u(1+p.ntypes), op(0x60, 0, 0), p.types))
	if p.imports != nil {
		out = cat(out, p.imports)
	}
	out = cat(out, section(secFunction, u(1+len(p.more)), rep(1+len(p.more), u(0))), p.tables,
		section(secMemory, u(1), limits), p.globals, section(secExport, u(1+p.exports), exports))
	if p.start {
		out = cat(out, section(secStart, u(0)))
	}
	return cat(out, p.elems, section(secCode, u(1+len(p.more)), code), p.data, p.last)
}

func body(locals, code []byte) []byte {
	return cat(u(len(locals)+len(code)+1), locals, code, op(opEnd))
}

func of(kind byte, n, m int) []byte {
	return cat(op(0x60), u(n), rep(n, op(kind)), u(m), rep(m, op(kind)))
}

func localsOf(n int, kind byte) []byte { return cat(u(1), u(n), op(kind)) }
