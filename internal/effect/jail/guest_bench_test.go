package jail_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// benchTurns is how often one run of the guest does its operation.
const benchTurns = 4096

// BenchmarkGuest compares, from inside a guest and in one runtime
// configuration, file operations through WASI, gate, journal and jail with the
// engine's own WASI over its own directory mount.
func BenchmarkGuest(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, make([]byte, 64<<10), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, op := range []struct {
		name string
		body []byte
	}{
		{"stat", statBody(len(file) - 1)},
		{"open_close", openBody(len(file)-1, closeIt())},
		{"read64k", openBody(len(file)-1, readIt())},
	} {
		wasm := loopingGuest(file[1:], op.body, op.name == "read64k")
		b.Run("op="+op.name+"/floor=dirmount", func(b *testing.B) { mounted(b, wasm) })
		b.Run("op="+op.name+"/checked=jail", func(b *testing.B) { jailed(b, wasm, dir) })
	}
}

func mounted(b *testing.B, wasm []byte) {
	rt := wazero.NewRuntimeWithConfig(b.Context(), wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(true))
	defer rt.Close(context.Background())
	wasi_snapshot_preview1.MustInstantiate(b.Context(), rt)
	cfg := wazero.NewModuleConfig().WithStartFunctions().WithFSConfig(wazero.NewFSConfig().WithDirMount("/", "/"))
	m, err := rt.InstantiateWithConfig(b.Context(), wasm, cfg)
	if err != nil {
		b.Fatal(err)
	}
	start := m.ExportedFunction("_start")
	for b.Loop() {
		if _, err := start.Call(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	perTurn(b)
}

func perTurn(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/benchTurns, "ns/turn")
}

func jailed(b *testing.B, wasm []byte, dir string) {
	j, err := journal.Create(journal.Options{
		Dir: filepath.Join(b.TempDir(), "journal"), Head: audit.Head{RunID: "bench"},
		MaxBytes: 64 << 30, MaxDecisions: 1 << 31,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	set, err := caps.Base([]caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: caps.AllModes(caps.FS), Scope: dir}}},
		caps.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	g, err := gate.New(set, j, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
	if err != nil {
		b.Fatal(err)
	}
	files, err := jail.Open(jail.Config{Gate: newBenchGate(b, g), Roots: []string{dir}})
	if err != nil {
		b.Fatal(err)
	}
	defer files.Close()
	sys, err := wasi.New(wasi.Config{FS: files})
	if err != nil {
		b.Fatal(err)
	}
	m, err := guest.Compile(b.Context(), guest.Config{
		Module: wasm, Name: "bench", Funcs: sys.Funcs(),
		MemoryBytes: 1 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for b.Loop() {
		if end := m.Run(b.Context(), guest.RunConfig{Wall: time.Minute}); end.Kind != guest.OK {
			b.Fatalf("%+v", end)
		}
	}
	perTurn(b)
}

// benchGate is the real gate as a jail asks it.
type benchGate struct {
	gate *gate.Gate
	ops  []*gate.Op
}

func newBenchGate(b *testing.B, g *gate.Gate) *benchGate {
	ops := make([]*gate.Op, jail.NumOps)
	for i := range ops {
		var err error
		if ops[i], err = g.Op(jail.Op(i).String()); err != nil {
			b.Fatal(err)
		}
	}
	return &benchGate{g, ops}
}

func (g *benchGate) Admit(op jail.Op, mode caps.Mode, path string) gate.Permit {
	return g.gate.Admit(g.ops[op], caps.Request{Family: caps.FS, Mode: mode, Name: path}, path, nil).Permit
}

func (g *benchGate) AdmitMove(jail.Op, string, string) bool { return true }

func (g *benchGate) AdmitTree(op jail.Op, mode caps.Mode, path string) gate.Permit {
	return g.Admit(op, mode, path)
}

func (g *benchGate) Holds(p gate.Permit, mode caps.Mode) bool {
	return g.gate.Holds(p.Scope(), caps.FS, mode)
}
func (g *benchGate) Revoked(jail.Op, caps.Mode, string) {}

// The guest's memory: the path at 1024, results at 64, an iovec at 128 that
// names 64 KiB at 65536.
const pathAt, outAt, iovAt, bufAt = 1024, 64, 128, 65536

const (
	fnOpen, fnClose, fnStat, fnRead = 0, 1, 2, 3
	rightsRead                      = 1<<1 | 1<<2 | 1<<5 | 1<<21 // fd_read, fd_seek, fd_tell, fd_filestat_get
)

func i32c(v int) []byte { return append([]byte{0x41}, sleb(int64(v))...) }
func i64c(v int) []byte { return append([]byte{0x42}, sleb(int64(v))...) }

func sleb(v int64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

func joined(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// must traps unless the number on the stack is 0.
func must() []byte { return []byte{0x04, 0x40, 0x00, 0x0b} }

func statBody(n int) []byte {
	return joined(i32c(3), i32c(0), i32c(pathAt), i32c(n), i32c(outAt), []byte{0x10, fnStat}, must())
}

func openBody(n int, then []byte) []byte {
	return joined(i32c(3), i32c(0), i32c(pathAt), i32c(n), i32c(0), i64c(rightsRead), i64c(0), i32c(0), i32c(outAt),
		[]byte{0x10, fnOpen}, must(), then)
}

func theFD() []byte   { return joined(i32c(outAt), []byte{0x28, 2, 0}) }
func closeIt() []byte { return joined(theFD(), []byte{0x10, fnClose}, must()) }
func readIt() []byte {
	return joined(theFD(), i32c(iovAt), i32c(1), i64c(0), i32c(outAt+8), []byte{0x10, fnRead}, must())
}

// loopingGuest does body benchTurns times; when once is set, what opens the
// file is done once and only what follows is repeated.
func loopingGuest(path string, body []byte, once bool) []byte {
	store := func(at, v int) []byte { return joined(i32c(at), i32c(v), []byte{0x36, 2, 0}) }
	code := joined([]byte{1, 1, 0x7f}, store(iovAt, bufAt), store(iovAt+4, 64<<10))
	if once {
		head := body[:len(body)-len(readIt())]
		code, body = append(code, head...), readIt()
	}
	code = joined(code, i32c(benchTurns), []byte{0x21, 0, 0x03, 0x40}, body,
		[]byte{0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b})
	if once {
		code = append(code, closeIt()...)
	}
	code = append(code, 0x0b)
	sec := func(id byte, b []byte) []byte { return joined([]byte{id}, uleb(len(b)), b) }
	str := func(s string) []byte { return append(uleb(len(s)), s...) }
	i, l := byte(0x7f), byte(0x7e)
	fn := func(params ...byte) []byte {
		return joined([]byte{0x60, byte(len(params))}, params, []byte{1, i})
	}
	types := joined([]byte{5}, fn(i, i, i, i, i, l, l, i, i), fn(i), fn(i, i, i, i, i), fn(i, i, i, l, i),
		[]byte{0x60, 0, 0})
	var imports []byte
	for n, name := range []string{"path_open", "fd_close", "path_filestat_get", "fd_pread"} {
		imports = joined(imports, str("wasi_snapshot_preview1"), str(name), []byte{0, byte(n)})
	}
	m := binary.LittleEndian.AppendUint32([]byte("\x00asm"), 1)
	return joined(m, sec(1, types), sec(2, append([]byte{4}, imports...)), sec(3, []byte{1, 4}), sec(5, []byte{1, 0, 3}),
		sec(7, joined([]byte{2}, str("_start"), []byte{0, 4}, str("memory"), []byte{2, 0})),
		sec(10, joined([]byte{1}, uleb(len(code)), code)),
		sec(11, joined([]byte{1, 0}, i32c(pathAt), []byte{0x0b}, str(path))))
}

func uleb(v int) []byte {
	var out []byte
	for v >= 0x80 {
		out, v = append(out, byte(v)|0x80), v>>7
	}
	return append(out, byte(v))
}
