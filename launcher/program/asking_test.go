package program_test

import (
	"slices"

	"runloop.dev/rlp/hostcalls"
)

// page is that of a memory, in bytes.
const page = 64 << 10

// leb is n as a module writes it.
func leb(n uint32) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// number is an instruction that gives n.
func number(n int) (b []byte) {
	b = []byte{0x41}
	for v := int32(n); ; v >>= 7 {
		if v >= -64 && v < 64 {
			return append(b, byte(v)&0x7f)
		}
		b = append(b, byte(v)&0x7f|0x80)
	}
}

// asking is a module that makes calls of imports one after another, whatever the
// answers are.
func asking(calls [][]string) []byte {
	text := func(s string) []byte { return append(leb(uint32(len(s))), s...) }
	section := func(id byte, n int, parts ...[]byte) []byte {
		all := append(leb(uint32(n)), slices.Concat(parts...)...)
		return slices.Concat([]byte{id}, leb(uint32(len(all))), all)
	}
	var names []string
	var types, imports, data, code []byte
	for _, c := range calls {
		if slices.Contains(names, c[0]) {
			continue
		}
		params := slices.Repeat([]byte{0x7f}, 2*len(c))
		types = slices.Concat(types, []byte{0x60}, leb(uint32(len(params))), params, []byte{1, 0x7e})
		imports = slices.Concat(imports, text(hostcalls.ImportModule), text(c[0]), []byte{0, byte(len(names))})
		names = append(names, c[0])
	}
	const room = page // of answers, at 0
	code = []byte{0}  // no locals
	for _, c := range calls {
		for _, a := range c[1:] {
			code = slices.Concat(code, number(room+len(data)), number(len(a)))
			data = append(data, a...)
		}
		code = slices.Concat(code, number(0), number(room), []byte{0x10, byte(slices.Index(names, c[0])), 0x1a})
	}
	code = append(code, 0x0b)
	n := len(names)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, n+1, types, []byte{0x60, 0, 0}), section(2, n, imports), section(3, 1, []byte{byte(n)}),
		section(5, 1, []byte{0}, leb(uint32(2+len(data)/page))),
		section(7, 2, text("memory"), []byte{2, 0}, text("_start"), []byte{0, byte(n)}),
		section(10, 1, leb(uint32(len(code))), code),
		section(11, 1, []byte{0}, number(room), []byte{0x0b}, text(string(data))))
}
