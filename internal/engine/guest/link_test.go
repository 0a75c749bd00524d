package guest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
)

func refused(t *testing.T, m module, funcs ...abi.Func) *guest.ImportError {
	t.Helper()
	_, err := guest.Compile(t.Context(), guest.Config{Module: m.bytes(), Name: "x", Funcs: funcs})
	var refusal *guest.ImportError
	if !errors.As(err, &refusal) || !errors.Is(err, guest.ErrModule) {
		t.Fatalf("got %v", err)
	}
	return refusal
}

func TestUnknownImportsAreNamedWithTheNearest(t *testing.T) {
	put := abi.Func{Module: "runloop_v1", Name: "kb_put", Params: []abi.Type{abi.I32}, Results: []abi.Type{abi.I64}}
	for _, c := range []struct{ module, name, nearest string }{
		{"runloop_v1", "kb_putt", "runloop_v1.kb_put"},
		{"runloop_v2", "kb_put", "runloop_v1.kb_put"},
		{"env", "system", ""},
		{"", "", ""},
	} {
		e := refused(t, module{imports: []imported{{c.module, c.name, nil, nil}}}, put, exit())
		if e.Module != c.module || e.Name != c.name || e.Nearest != c.nearest || !strings.Contains(e.Error(), c.module+"."+
			c.name) {
			t.Errorf("%s.%s: %v", c.module, c.name, e)
		}
	}
}

func TestSignaturesMustAgree(t *testing.T) {
	f := abi.Func{Module: "m", Name: "f", Params: []abi.Type{abi.I32, abi.I64}, Results: []abi.Type{abi.I32}}
	for _, i := range []imported{
		{"m", "f", []abi.Type{abi.I32}, f.Results},
		{"m", "f", []abi.Type{abi.I64, abi.I32}, f.Results},
		{"m", "f", f.Params, nil},
		{"m", "f", []abi.Type{abi.I32, 0x7d}, f.Results},
	} {
		e := refused(t, module{imports: []imported{i}}, f)
		if !strings.Contains(e.Reason, "want (i32 i64) -> (i32)") {
			t.Errorf("%v", e)
		}
	}
}

func TestOnlyFunctionsAreLinked(t *testing.T) {
	for kind, desc := range map[string][]byte{
		"table": {1, 0x70, 0, 1}, "memory": {2, 0, 1}, "global": {3, byte(abi.I32), 0},
	} {
		wasm := slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), section(2, u(1), text("m"), text("x"), desc))
		_, err := guest.Compile(t.Context(), guest.Config{Module: wasm, Funcs: []abi.Func{{Module: "m", Name: "x"}}})
		var refusal *guest.ImportError
		if !errors.As(err, &refusal) || refusal.Kind != kind {
			t.Errorf("%s: %v", kind, err)
		}
		list, err := guest.Imports(wasm)
		if err != nil || len(list) != 1 || list[0].Kind != kind {
			t.Errorf("%s: %v, %v", kind, list, err)
		}
	}
}

func TestImportsAreReadWithoutCompiling(t *testing.T) {
	m := module{imports: []imported{
		{"b", "f", []abi.Type{abi.I64}, []abi.Type{abi.I32}},
		{"a", "g", nil, nil},
		{"b", "f", []abi.Type{abi.I64}, []abi.Type{abi.I32}},
	}}
	list, err := guest.Imports(m.bytes())
	if err != nil || len(list) != 3 || list[0].Module != "b" || list[1].Name != "g" ||
		!slices.Equal(list[0].Params, []abi.Type{abi.I64}) || !slices.Equal(list[0].Results, []abi.Type{abi.I32}) {
		t.Errorf("%v, %v", list, err)
	}
	// A function that is imported twice is linked once, and both reach it.
	calls := 0
	f := host("f", func(context.Context, []byte) error { calls++; return nil })
	twice := module{imports: []imported{importOf(f), importOf(f)}, code: slices.Concat(call(0), call(1))}
	mod := compile(t, guest.Config{Module: twice.bytes(), Funcs: []abi.Func{f}})
	if end := mod.Run(t.Context(), guest.RunConfig{Wall: wide}); end.Kind != guest.OK || calls != 2 ||
		len(mod.Imports()) != 2 {
		t.Errorf("%+v, %d calls", end, calls)
	}
}

func TestTwoFunctionsOfOneNameAreAMistake(t *testing.T) {
	_, err := guest.Compile(t.Context(), guest.Config{Module: module{}.bytes(), Funcs: []abi.Func{exit(), exit()}})
	if err == nil || errors.Is(err, guest.ErrModule) {
		t.Errorf("got %v", err)
	}
}

func TestParametersAndResultsTravel(t *testing.T) {
	var got []uint64
	f := abi.Func{
		Module: "m", Name: "f", Params: []abi.Type{abi.I32, abi.I64}, Results: []abi.Type{abi.I64},
		Call: func(_ context.Context, _ []byte, stack []uint64) error {
			got = append(got, stack[0], stack[1])
			stack[0] = stack[1] + 1
			return nil
		},
	}
	m := module{imports: []imported{importOf(f)}, code: slices.Concat(i32(7), i32(8), []byte{opI64Const, 9}, call(0),
		call(0), []byte{opDrop})}
	if end := run(t, m, f); end.Kind != guest.OK || !slices.Equal(got, []uint64{8, 9, 7, 10}) {
		t.Errorf("%+v, %v", end, got)
	}
}

func TestEntry(t *testing.T) {
	if _, err := guest.Compile(t.Context(), guest.Config{Module: module{entry: "main"}.bytes()}); !errors.Is(err,
		guest.ErrNoStart) {
		t.Errorf("without: %v", err)
	}
}

// A guest whose table has no maximum gets one. Without the bound the engine
// grows it as far as it is asked.
func TestTablesAreBounded(t *testing.T) {
	const most, over = 1 << 20, 1<<20 + 1
	growTo := func(n uint32) module { // unreachable unless table.grow of a table of 1 to n succeeds
		return module{
			table: []byte{1, 0x70, 0, 1},
			code: slices.Concat([]byte{0xd0, 0x70}, i32(n-1), []byte{0xfc, 15, 0}, i32(0xffff_ffff),
				[]byte{0x46, opIf, opVoid, opUnreachable, opEnd}),
		}
	}
	grown := func(n uint32) guest.End {
		return compile(t, guest.Config{Module: growTo(n).bytes(), MemoryBytes: 64 << 20}).Run(t.Context(),
			guest.RunConfig{Wall: minute})
	}
	if end := grown(most); end.Kind != guest.OK {
		t.Errorf("at the bound: %+v", end)
	}
	if end := grown(over); end.Kind != guest.Trap {
		t.Errorf("over it: %+v", end)
	}
	rt := wazero.NewRuntime(t.Context())
	defer rt.Close(t.Context())
	if _, err := rt.Instantiate(t.Context(), growTo(over).bytes()); err != nil {
		t.Errorf("control: %v", err)
	}
	huge := module{table: slices.Concat([]byte{1, 0x70, 0}, u(over))}
	many := module{table: append([]byte{9}, slices.Repeat([]byte{0x70, 0, 1}, 9)...)}
	for _, m := range []module{huge, many} {
		if _, err := guest.Compile(t.Context(), guest.Config{Module: m.bytes()}); !errors.Is(err, guest.ErrModule) {
			t.Errorf("got %v", err)
		}
	}
}

func TestWhatIsNoModule(t *testing.T) {
	good := module{imports: []imported{importOf(exit())}, pages: 1}.bytes()
	for n := range len(good) {
		if _, err := guest.Compile(t.Context(), guest.Config{Module: good[:n], Funcs: []abi.Func{exit()}}); !errors.Is(err,
			guest.ErrModule) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	if _, err := guest.Compile(t.Context(), guest.Config{Module: []byte("\x00asm\x0d\x00\x01\x00")}); !errors.Is(err,
		guest.ErrComponent) ||
		!strings.Contains(err.Error(), "wasm32-wasip1") {
		t.Errorf("component: %v", err)
	}
}

// FuzzImports: reading a module's outside never panics, and bounding its
// tables leaves the rest as it was.
func FuzzImports(f *testing.F) {
	f.Add(module{imports: []imported{importOf(exit())}, pages: 1, table: []byte{1, 0x70, 0, 1}}.bytes())
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x04\x04\x01\x70\x00\x01"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		list, err := guest.Imports(wasm)
		if err != nil && !errors.Is(err, guest.ErrModule) {
			t.Errorf("%v", err)
		}
		if len(list) > len(wasm) {
			t.Errorf("%d imports in %d bytes", len(list), len(wasm))
		}
	})
}
