package guest_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

// module is a WebAssembly module by hand: one function "_start" of its code,
// and what it imports before it.
type module struct {
	imports  []imported
	code     []byte // of _start, without the last end
	locals   int    // i32 locals of _start
	pages    int    // of memory; with maxPages -1 there is no maximum, 0 means no memory at all
	maxPages int
	table    []byte // a table section's body
	start    bool   // _start is the start section's function too
	entry    string // instead of _start
	pad      int    // bytes of a custom section
}

type imported struct {
	module, name    string
	params, results []abi.Type
}

const (
	opUnreachable, opLoop, opEnd, opBr, opCall, opDrop = 0x00, 0x03, 0x0b, 0x0c, 0x10, 0x1a
	opI32Const, opI64Const, opGrow, opDiv, opLoad      = 0x41, 0x42, 0x40, 0x6d, 0x28
	opLocalGet, opLocalSet, opBrIf, opIf, opVoid       = 0x20, 0x21, 0x0d, 0x04, 0x40
)

func u(v uint32) []byte {
	var b []byte
	for v >= 0x80 {
		b, v = append(b, byte(v)|0x80), v>>7
	}
	return append(b, byte(v))
}

// i32 is i32.const v.
func i32(v uint32) []byte {
	b := []byte{opI32Const}
	for n := int32(v); ; n >>= 7 {
		c := byte(n) & 0x7f
		if n>>7 == 0 && c < 0x40 || n>>7 == -1 && c >= 0x40 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func call(n uint32) []byte { return append([]byte{opCall}, u(n)...) }

// spin is a loop without an end.
func spin() []byte { return []byte{opLoop, opVoid, opBr, 0, opEnd} }

// grow asks for pages and drops the answer.
func grow(pages uint32) []byte { return slices.Concat(i32(pages), []byte{opGrow, 0, opDrop}) }

func section(id byte, body ...[]byte) []byte {
	b := slices.Concat(body...)
	return slices.Concat([]byte{id}, u(uint32(len(b))), b)
}

func text(s string) []byte { return append(u(uint32(len(s))), s...) }

func types(list []abi.Type) []byte {
	b := u(uint32(len(list)))
	for _, t := range list {
		b = append(b, byte(t))
	}
	return b
}

func (m module) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	n := uint32(len(m.imports))
	typeBody, importBody := u(n+1), u(n)
	for i, f := range m.imports {
		typeBody = slices.Concat(typeBody, []byte{0x60}, types(f.params), types(f.results))
		importBody = slices.Concat(importBody, text(f.module), text(f.name), []byte{0}, u(uint32(i)))
	}
	typeBody = append(typeBody, 0x60, 0, 0)
	out = append(out, section(1, typeBody)...)
	if n > 0 {
		out = append(out, section(2, importBody)...)
	}
	out = append(out, section(3, u(1), u(n))...)
	if m.table != nil {
		out = append(out, section(4, m.table)...)
	}
	if m.pages > 0 || m.maxPages != 0 {
		limits := slices.Concat([]byte{1}, u(uint32(m.pages)), u(uint32(max(m.maxPages, 0))))
		if m.maxPages <= 0 {
			limits = append([]byte{0}, u(uint32(m.pages))...)
		}
		out = append(out, section(5, u(1), limits)...)
	}
	entry := m.entry
	if entry == "" {
		entry = "_start"
	}
	out = append(out, section(7, u(1), text(entry), []byte{0}, u(n))...)
	if m.start {
		out = append(out, section(8, u(n))...)
	}
	locals := u(0)
	if m.locals > 0 {
		locals = slices.Concat(u(1), u(uint32(m.locals)), []byte{byte(abi.I32)})
	}
	body := slices.Concat(locals, m.code, []byte{opEnd})
	out = append(out, section(10, u(1), u(uint32(len(body))), body)...)
	if m.pad > 0 {
		out = append(out, section(0, text("pad"), make([]byte, m.pad))...)
	}
	return out
}

// host is a function without parameters or results, under the name it is
// imported by.
func host(name string, f func(ctx context.Context, mem []byte) error) abi.Func {
	return abi.Func{Module: "test", Name: name, Call: func(ctx context.Context, mem []byte, _ []uint64) error {
		return f(ctx, mem)
	}}
}

func importOf(f abi.Func) imported {
	return imported{f.Module, f.Name, f.Params, f.Results}
}

// exit is proc_exit.
func exit() abi.Func {
	return abi.Func{
		Module: "wasi_snapshot_preview1", Name: "proc_exit", Params: []abi.Type{abi.I32},
		Call: func(_ context.Context, _ []byte, stack []uint64) error { return &abi.Exit{Code: uint32(stack[0])} },
	}
}

const (
	wide  = time.Minute      // for what ends by itself, however busy the machine is
	stops = 15 * time.Second // for what is stopped
	quick = 50 * time.Millisecond
)

// run compiles and runs m with everything it could want.
func run(t *testing.T, m module, funcs ...abi.Func) guest.End {
	t.Helper()
	return runWith(t, guest.Config{Module: m.bytes(), Funcs: funcs, MemoryBytes: 1 << 20}, wide)
}

func runWith(t *testing.T, cfg guest.Config, wall time.Duration) guest.End {
	t.Helper()
	return compile(t, cfg).Run(t.Context(), guest.RunConfig{Wall: wall})
}

func compile(t testing.TB, cfg guest.Config) *guest.Module {
	t.Helper()
	if cfg.Compiler == nil {
		cfg.Compiler = os.Executable
	}
	mod, err := guest.Compile(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mod.Close(); err != nil {
			t.Error(err)
		}
	})
	return mod
}
