package wasm

import (
	"encoding/binary"
	"time"
)

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

// Steps is a WASI program that looks so often at x in its first folder, and sleeps
// between.
func Steps(n int, between time.Duration) []byte {
	const wish, name, event, count, stat = 64, 112, 128, 192, 200
	wishes := make([]byte, name-wish) // one: a clock, the monotonic one, from now on
	wishes[16] = 1
	binary.LittleEndian.PutUint64(wishes[24:], uint64(between))
	return Module{
		Imports: []Func{
			{"wasi_snapshot_preview1", "poll_oneoff", []Type{I32, I32, I32, I32}, []Type{I32}},
			{"wasi_snapshot_preview1", "path_filestat_get", []Type{I32, I32, I32, I32, I32}, []Type{I32}},
		},
		Locals: []Type{I32},
		Code: Times(0, n, Join(
			ConstI32(wish), ConstI32(event), ConstI32(1), ConstI32(count), Call(0), Drop(),
			ConstI32(3), ConstI32(0), ConstI32(name), ConstI32(1), ConstI32(stat), Call(1), Drop(),
		)),
		Pages: 1, At: wish, Data: string(wishes) + "x",
	}.Bytes()
}
