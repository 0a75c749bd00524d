package meter_test

import (
	"slices"
	"strconv"
	"strings"
)

// opcodes are the instructions that tests are written in: what they are, and
// what follows them.
var opcodes = map[string]struct{ code, follows string }{
	"unreachable": {"\x00", ""}, "nop": {"\x01", ""}, "block": {"\x02", "t"}, "loop": {"\x03", "t"}, "if": {"\x04", "t"},
	"else": {"\x05", ""}, "end": {"\x0b", ""}, "br": {"\x0c", "u"}, "br_if": {"\x0d", "u"}, "br_table": {"\x0e", "v"},
	"return": {"\x0f", ""},
	"call":   {"\x10", "u"}, "call_indirect": {"\x11", "u0"}, "drop": {"\x1a", ""}, "select": {"\x1b", ""},
	"get": {"\x20", "u"}, "set": {"\x21", "u"},
	"tee": {"\x22", "u"}, "global.get": {"\x23", "u"}, "global.set": {"\x24", "u"}, "load": {"\x28", "00"},
	"store": {"\x36", "00"},
	"load8": {"\x2d", "00"}, "memory.size": {"\x3f", "0"}, "memory.grow": {"\x40", "0"}, "i32": {"\x41", "s"},
	"i64": {"\x42", "s"},
	"f64": {"\x44", "8"}, "eqz": {"\x45", ""}, "lt_u": {"\x49", ""}, "add": {"\x6a", ""}, "sub": {"\x6b", ""},
	"mul": {"\x6c", ""}, "div_u": {"\x6e", ""},
	"and": {"\x71", ""}, "xor": {"\x73", ""}, "rotl": {"\x77", ""}, "wrap": {"\xa7", ""}, "ref.null": {"\xd0\x70", ""},
	"ref.func": {"\xd2", "u"},
	"is_null":  {"\xd1", ""}, "memory.init": {"\xfc\x08", "u0"}, "memory.copy": {"\xfc\x0a", "00"},
	"memory.fill": {"\xfc\x0b", "0"},
	"table.copy":  {"\xfc\x0e", "00"}, "table.grow": {"\xfc\x0f", "0"}, "table.fill": {"\xfc\x11", "0"},
	"table.init": {"\xfc\x0c", "u0"},
	"i64.add":    {"\x7c", ""}, "i32.bits": {"\xbc", ""}, "i64.bits": {"\xbd", ""}, "f32.bits": {"\xbe", ""},
	"f64.bits": {"\xbf", ""},
	"v128":     {"\xfd\x0c", "16"}, "i32x4.add": {"\xfd\xae\x01", ""}, "i32x4.lane0": {"\xfd\x1b", "0"},
	"f64.floor": {"\x9c", ""}, "i32.sat": {"\xfc\x02", ""},
}

const (
	i32, i64, f32, f64, funcref = "\x7f", "\x7e", "\x7d", "\x7c", "\x70"
)

func leb(v int64) []byte {
	var b []byte
	for {
		c := byte(v) & 0x7f
		if v >>= 7; v == 0 && c < 0x40 || v == -1 && c >= 0x40 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func uleb(v int) []byte {
	var b []byte
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// asm is text as code: instructions with their arguments, between semicolons.
func asm(text string) []byte {
	var out []byte
	for line := range strings.SplitSeq(text, ";") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		op, ok := opcodes[words[0]]
		if !ok {
			panic("no instruction " + line)
		}
		out = append(out, op.code...)
		args := words[1:]
		number := func() int {
			n, err := strconv.Atoi(args[0])
			if err != nil {
				panic(line)
			}
			args = args[1:]
			return n
		}
		for _, k := range op.follows {
			switch k {
			case 't':
				switch {
				case len(args) == 0:
					out = append(out, 0x40)
				case args[0] == "i32":
					out = append(out, 0x7f)
				default:
					out = append(out, leb(int64(number()))...)
				}
			case 'u':
				out = append(out, uleb(number())...)
			case 's':
				out = append(out, leb(int64(number()))...)
			case 'v':
				out = append(out, uleb(len(args)-1)...)
				for len(args) > 0 {
					out = append(out, uleb(number())...)
				}
			case '0':
				out = append(out, 0)
			case '8':
				out = append(out, 0, 0, 0, 0, 0, 0, 4, 0x40) // 2.5
			case '1':
				out = append(out, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0)
			}
		}
	}
	return out
}

// sig is a function's type.
type sig struct{ params, results string }

// fn is a function of a module under test.
type fn struct {
	sig
	locals string
	code   string // in the words of asm, without the last end
	raw    []byte // instead of code
}

// testModule is a module in pieces. Function 0 is the import env.out(i32),
// type 0 its type; the functions follow, each with the next type, and then the
// types of blocks. Each function is exported by its index, and in the table.
type testModule struct {
	fns    []fn
	blocks []sig
	start  int    // function that it starts with; 0 is none
	extra  []byte // sections behind all others
}

func section(id byte, parts ...[]byte) []byte {
	body := slices.Concat(parts...)
	return slices.Concat([]byte{id}, uleb(len(body)), body)
}

func sized(b []byte) []byte { return append(uleb(len(b)), b...) }

func (m testModule) bytes() []byte {
	n := len(m.fns)
	types := uleb(1 + n + len(m.blocks))
	typed := func(s sig) {
		types = slices.Concat(types, []byte{0x60}, sized([]byte(s.params)), sized([]byte(s.results)))
	}
	typed(sig{i32, ""})
	funcs, exports, elems, codes := uleb(n), uleb(n+2), uleb(n), uleb(n)
	for i, f := range m.fns {
		typed(f.sig)
		funcs = append(funcs, uleb(1+i)...)
		exports = slices.Concat(exports, sized([]byte(strconv.Itoa(1+i))), []byte{0}, uleb(1+i))
		elems = append(elems, uleb(1+i)...)
		body := uleb(len(f.locals))
		for _, l := range []byte(f.locals) {
			body = append(body, 1, l)
		}
		code := f.raw
		if code == nil {
			code = asm(f.code)
		}
		codes = append(codes, sized(slices.Concat(body, code, []byte{0x0b}))...)
	}
	for _, s := range m.blocks {
		typed(s)
	}
	exports = slices.Concat(exports, sized([]byte("memory")), []byte{2, 0}, sized([]byte("global")), []byte{3, 0})
	out := slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types),
		section(2, uleb(1), sized([]byte("env")), sized([]byte("out")), []byte{0, 0}),
		section(3, funcs),
		section(4, []byte{1, 0x70, 0}, uleb(n+8)),
		section(5, []byte{1, 1, 1, 4}),
		section(6, []byte{1, 0x7f, 1, 0x41, 7, 0x0b}),
		section(7, exports))
	if m.start > 0 {
		out = append(out, section(8, uleb(m.start))...)
	}
	return slices.Concat(out,
		section(9, []byte{1, 0, 0x41, 0, 0x0b}, elems),
		section(12, []byte{1}),
		section(10, codes),
		section(11, []byte{1, 1, 4}, []byte("data")),
		m.extra)
}
