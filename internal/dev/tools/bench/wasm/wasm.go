// Package wasm puts the small modules together that the comparisons run, so
// that they need no compiler and are the same bytes on every machine.
package wasm

import "encoding/binary"

// A Type is a value type of the engine.
type Type = byte

const (
	I32 Type = 0x7f
	I64 Type = 0x7e
)

// A Func is an imported function: two names and a signature.
type Func struct {
	Module, Name    string
	Params, Results []Type
}

// A Module has one function of its own, `_start`, which also goes by the name
// that is given it, and one memory.
type Module struct {
	Imports []Func
	Export  string // `_start` when empty
	Results []Type // of the function
	Locals  []Type
	Code    []byte // without the final end
	Pages   int
	At      int // where Data lies in memory
	Data    string
}

// Bytes is the module as a file.
func (m Module) Bytes() []byte {
	types, imports := []byte{}, []byte{}
	for i, f := range m.Imports {
		types = append(types, signature(f.Params, f.Results)...)
		imports = append(append(append(imports, str(f.Module)...), str(f.Name)...), 0)
		imports = append(imports, Uint(uint64(i))...)
	}
	own := Uint(uint64(len(m.Imports)))
	types = append(types, signature(nil, m.Results)...)
	locals := Uint(uint64(len(m.Locals)))
	for _, t := range m.Locals {
		locals = append(locals, 1, t)
	}
	body := append(append(locals, m.Code...), end)
	name := m.Export
	if name == "" {
		name = "_start"
	}
	exports := append(append(str(name), 0), own...)
	exports = append(append(exports, str("memory")...), 2, 0)
	out := binary.LittleEndian.AppendUint32([]byte("\x00asm"), 1)
	out = section(out, 1, count(len(m.Imports)+1, types))
	out = section(out, 2, count(len(m.Imports), imports))
	out = section(out, 3, count(1, own))
	out = section(out, 5, append([]byte{1, 0}, Uint(uint64(m.Pages))...))
	out = section(out, 7, count(2, exports))
	out = section(out, 10, count(1, append(Uint(uint64(len(body))), body...)))
	if m.Data == "" {
		return out
	}
	data := append(append([]byte{0}, ConstI32(m.At)...), end)
	return section(out, 11, count(1, append(data, str(m.Data)...)))
}

func signature(params, results []Type) []byte {
	out := append([]byte{0x60}, count(len(params), params)...)
	return append(out, count(len(results), results)...)
}

func section(out []byte, id byte, body []byte) []byte {
	return append(append(append(out, id), Uint(uint64(len(body)))...), body...)
}

func count(n int, body []byte) []byte { return append(Uint(uint64(n)), body...) }
func str(s string) []byte             { return count(len(s), []byte(s)) }

// Uint is v in unsigned LEB128.
func Uint(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// sint is v in signed LEB128.
func sint(v int64) []byte {
	var out []byte
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
