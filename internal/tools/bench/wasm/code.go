package wasm

const end = 0x0b

// ConstI32 and ConstI64 push a number.
func ConstI32(v int) []byte { return append([]byte{0x41}, sint(int64(v))...) }
func ConstI64(v int) []byte { return append([]byte{0x42}, sint(int64(v))...) }

// Call calls the function of that index; Get and Set are of locals; Drop
// forgets what was pushed last.
func Call(i int) []byte { return append([]byte{0x10}, Uint(uint64(i))...) }
func Get(i int) []byte  { return append([]byte{0x20}, Uint(uint64(i))...) }
func Set(i int) []byte  { return append([]byte{0x21}, Uint(uint64(i))...) }
func Drop() []byte      { return []byte{0x1a} }

// AddI64 adds two numbers, OrI32 joins their bits.
func AddI64() []byte { return []byte{0x7c} }
func OrI32() []byte  { return []byte{0x72} }

// Join is one piece of code after another.
func Join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// Times runs body n times, counting in an i32 local.
func Times(local, n int, body []byte) []byte {
	return Join(ConstI32(n), Set(local), []byte{0x03, 0x40}, body,
		Get(local), ConstI32(1), []byte{0x6b, 0x22}, Uint(uint64(local)), []byte{0x0d, 0, end})
}

// Says is a WASI program that writes text to its standard output and ends.
func Says(text string) []byte {
	const vec, at, wrote = 16, 64, 32
	iovec := string([]byte{at, 0, 0, 0, byte(len(text)), 0, 0, 0})
	return Module{
		Imports: []Func{{"wasi_snapshot_preview1", "fd_write", []Type{I32, I32, I32, I32}, []Type{I32}}},
		Code:    Join(ConstI32(1), ConstI32(vec), ConstI32(1), ConstI32(wrote), Call(0), Drop()),
		Pages:   1, At: vec, Data: iovec + string(make([]byte, at-vec-len(iovec))) + text,
	}.Bytes()
}

// Nothing is a program that returns at once.
func Nothing(export string, results []Type) []byte {
	var code []byte
	for range results {
		code = append(code, ConstI32(0)...)
	}
	return Module{Export: export, Results: results, Code: code, Pages: 1}.Bytes()
}
