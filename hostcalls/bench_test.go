package hostcalls

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// idle is a host call that is decoded, checked and recorded, and does nothing else.
var idle = define("idle", 1, caps.KBRead, gated[string]{
	decode:  func(in []string) (string, error) { return in[0], nil },
	touches: func(r string) (caps.Request, string) { return caps.Request{Family: caps.KBRead, Name: r}, r },
	do:      func(context.Context, *Host, gate.Permit, string) ([]byte, error) { return nil, nil },
})

// benchCalls is how many calls one run of a guest makes: few enough that the
// journal's file stays small, many enough that starting costs nothing.
const benchCalls = 1 << 19

// BenchmarkHostCall compares, in one run and one runtime configuration, a host
// function that is given to the engine directly and does nothing with one that
// is checked and recorded in a journal.
func BenchmarkHostCall(b *testing.B) {
	b.Run("floor=empty", func(b *testing.B) {
		perCall(b, func() func() {
			instance := rawGuest(b)
			return func() {
				if _, err := instance.ExportedFunction("_start").Call(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	for _, c := range []struct {
		name, domains string
		fuel          *int64
	}{
		{name: "allowed", domains: "notes\x00\x00\x00notes"},
		{name: "denied", domains: "other\x00\x00\x00other"},
		{name: "changing", domains: "notes\x00\x00\x00tasks"},
		{name: "budget", domains: "notes\x00\x00\x00notes", fuel: new(int64(1 << 40))},
	} {
		b.Run("checked="+c.name, func(b *testing.B) {
			perCall(b, func() func() {
				module, end := checkedGuest(b, c.domains)
				return func() {
					if e := module.Run(b.Context(), guest.RunConfig{Wall: time.Minute, Fuel: c.fuel}); e.Kind != guest.OK {
						b.Fatalf("%+v", e)
					}
					b.StopTimer()
					end()
					b.StartTimer()
				}
			})
		})
	}
}

// perCall times what prepare returns and reports it by call.
func perCall(b *testing.B, prepare func() func()) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		run := prepare()
		b.StartTimer()
		run()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/benchCalls, "ns/call")
}

func checkedGuest(b *testing.B, domains string) (*guest.Module, func()) {
	j, err := journal.Create(journal.Options{Dir: b.TempDir() + "/journal", Head: audit.Head{RunID: "bench"}})
	if err != nil {
		b.Fatal(err)
	}
	set, err := caps.Base([]caps.Entry{
		{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "notes"}},
		{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "tasks"}},
	}, caps.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	g, err := gate.New(set, j, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
	if err != nil {
		b.Fatal(err)
	}
	h := New(Config{Gate: g})
	op, err := g.Op(idle.name)
	if err != nil {
		b.Fatal(err)
	}
	m, err := guest.Compile(b.Context(), guest.Config{
		Module: loopingModule(domains), Name: "bench", Funcs: []abi.Func{idle.link(h, op)}, MemoryBytes: 1 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	return m, func() {
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func rawGuest(b *testing.B) api.Module {
	rt := wazero.NewRuntimeWithConfig(b.Context(), wazero.NewRuntimeConfigCompiler())
	b.Cleanup(func() { _ = rt.Close(context.Background()) })
	raw := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = 0 })
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	_, err := rt.NewHostModuleBuilder(ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(raw, []api.ValueType{i32, i32, i32, i32},
			[]api.ValueType{i64}).Export("idle").Instantiate(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	instance, err := rt.InstantiateWithConfig(b.Context(), loopingModule("notes\x00\x00\x00notes"),
		wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		b.Fatal(err)
	}
	return instance
}

// loopingModule calls idle(name, 5, 64, 16) benchCalls times; names lies at 0,
// two names of 5 bytes, 8 bytes apart, which take turns.
func loopingModule(names string) []byte {
	section := func(id byte, body []byte) []byte { return append([]byte{id, byte(len(body))}, body...) }
	str := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	const n = benchCalls
	code := []byte{1, 1, 0x7f, 0x41} // one i32 local; i32.const n
	code = append(code, leb(n)...)
	code = append(code, 0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x71, 0x41, 3, 0x74) // loop: (local & 1) << 3
	code = append(code, 0x41, 5, 0x41, 0xc0, 0, 0x41, 16, 0x10, 0, 0x1a)
	code = append(code, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x0b)
	m := binary.LittleEndian.AppendUint32([]byte("\x00asm"), 1)
	m = append(m, section(1, []byte{2, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7e, 0x60, 0, 0})...)
	m = append(m, section(2, append(append(append([]byte{1}, str(ImportModule)...), str("idle")...), 0, 0))...)
	m = append(m, section(3, []byte{1, 1})...)
	m = append(m, section(5, []byte{1, 0, 1})...)
	m = append(m, section(7, append(append([]byte{2}, append(str("_start"), 0, 1)...), append(str("memory"), 2, 0)...))...)
	m = append(m, section(10, append([]byte{1, byte(len(code))}, code...))...)
	return append(m, section(11, append([]byte{1, 0, 0x41, 0, 0x0b}, str(names)...))...)
}

// leb is v in signed LEB128.
func leb(v int) []byte {
	var out []byte
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
