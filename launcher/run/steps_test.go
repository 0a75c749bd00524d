package run

import (
	"encoding/binary"
	"slices"
	"testing"

	"runloop.dev/rlp/internal/engine/abi"
)

// A step is one call that a guest makes, with numbers; what it is answered is kept
// from results on, eight bytes for each step.
type step struct {
	name string
	args []int64
}

const results = 0xf000

// do is the call of that name.
func do(name string, args ...int64) step { return step{name, args} }

// say prints n bytes of the guest's memory.
func say(at, n int64) []step { return write(1, at, n) }

func write(fd, at, n int64) []step {
	return []step{{"", []int64{0xff00, at}}, {"", []int64{0xff04, n}}, do("fd_write", fd, 0xff00, 1, 0xff08)}
}

// forever is a step that does not end.
var forever = step{name: "for ever"}

// stepping is a module of one page that begins with data, makes each step and ends.
// A step without a name puts its second number into memory at its first.
func stepping(t *testing.T, data string, steps ...step) []byte {
	t.Helper()
	funcs, err := signatures()
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) []byte { return append(leb(uint32(len(s))), s...) }
	section := func(id byte, parts ...[]byte) []byte {
		all := slices.Concat(parts...)
		return slices.Concat([]byte{id}, leb(uint32(len(all))), all)
	}
	kinds := func(list []abi.Type) []byte {
		b := leb(uint32(len(list)))
		for _, k := range list {
			b = append(b, byte(k))
		}
		return b
	}
	types, imports, used := []byte{0x60, 0, 0}, []byte{}, []string{}
	code := []byte{0}
	for i, s := range steps {
		switch s.name {
		case "":
			code = slices.Concat(code, number(uint32(s.args[0])), number(uint32(s.args[1])), []byte{0x36, 0, 0})
			continue
		case forever.name:
			code = append(code, 0x03, 0x40, 0x0c, 0, 0x0b)
			continue
		}
		f := funcs[slices.IndexFunc(funcs, func(f abi.Func) bool { return f.Name == s.name })]
		at := slices.Index(used, s.name)
		if at < 0 {
			at, used = len(used), append(used, s.name)
			types = slices.Concat(types, []byte{0x60}, kinds(f.Params), kinds(f.Results))
			imports = slices.Concat(imports, text(f.Module), text(f.Name), []byte{0}, leb(uint32(len(used))))
		}
		if len(f.Results) > 0 {
			code = append(code, number(results+8*uint32(i))...)
		}
		for k, p := range f.Params {
			n := number(uint32(s.args[k]))
			n[0] += byte(abi.I32 - p) // i32.const or i64.const
			code = append(code, n...)
		}
		code = append(append(code, 0x10), leb(uint32(at))...)
		if len(f.Results) > 0 {
			code = append(code, 0x36+byte(abi.I32-f.Results[0]), 0, 0)
		}
	}
	code = append(code, 0x0b)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, leb(uint32(1+len(used))), types), section(2, leb(uint32(len(used))), imports),
		section(3, []byte{1, 0}), section(5, []byte{1, 0, 1}),
		section(7, []byte{2}, text("memory"), []byte{2, 0}, text("_start"), []byte{0}, leb(uint32(len(used)))),
		section(10, []byte{1}, leb(uint32(len(code))), code),
		section(11, []byte{1, 0, 0x41, 0, 0x0b}, text(data)))
}

// answered is what the step i of a guest was answered that printed all of them.
func answered(printed string, i int) int64 {
	return int64(binary.LittleEndian.Uint64([]byte(printed[8*i:])))
}
