package meter_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"runloop.dev/rlp/internal/engine/meter"
)

// reaching is code that names what only the rewritten module has, by the index
// that it has there. Module: 1 import, 1 function (i32) -> i32, 1 global,
// 1 local besides the parameter, 2 types; the counter's local is 1, which has
// moved the guest's own to 2, its global 1, the refill function 1, which has
// moved the guest's own to 2.
var reaching = map[string]string{
	"reads the counter":       "global.get 1; drop; get 0",
	"resets the counter":      "i64 99; global.set 1; get 0",
	"reads the local counter": "get 2; drop; get 0",
	"sets the local counter":  "i64 99; set 2; get 0",
	"tees the local counter":  "i64 99; tee 2; drop; get 0",
	"calls beyond":            "get 0; call 2",
	"refers beyond":           "ref.func 2; drop; get 0",
	"a block of a new type":   "i64 1; block 2; end; drop; get 0",
	"calls by a new type":     "i64 1; i32 0; call_indirect 2; drop; get 0",
	"leaves further than out": "get 0; br 1",
	"leaves by a table":       "get 0; get 0; br_table 0 1",
	"leaves a loop further":   "loop; get 0; br_if 2; end; get 0",
	"ends too early":          "get 0; end; get 0",
	"ends too late":           "get 0; block",
	"else without if":         "block; else; end; get 0",
	"two elses":               "get 0; if; else; else; end; get 0",
}

// An invalid guest does not become valid by being rewritten: what it names is
// looked up in what it has itself.
func TestInvalidStaysInvalid(t *testing.T) {
	rt := newRuntime(t, features(wazero.NewRuntimeConfigInterpreter()))
	for name, code := range reaching {
		wasm := testModule{fns: []fn{{sig: sig{i32, i32}, locals: i32, code: code}}}.bytes()
		if compiles(rt, wasm) == nil {
			t.Errorf("%s: the engine takes it as it is", name)
		}
		if _, err := meter.Rewrite(wasm, meter.Option{}); !errors.Is(err, meter.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The control: with the same indices put into it after it was rewritten, the
// module is valid, and would reset its counter or refill itself.
func TestInvalidWouldBeValid(t *testing.T) {
	rt := newRuntime(t, features(wazero.NewRuntimeConfigInterpreter()))
	for name, c := range map[string]struct{ code, from, to string }{
		"global":   {"global.get 0; drop; get 0", "\x23\x00\x1a", "\x23\x01\x1a"},
		"function": {"i64 5; nop; nop; drop; get 0", "\x01\x01\x1a", "\x10\x01\x1a"},
		"local":    {"i64 99; nop; nop; drop; get 0", "\x01\x01\x1a", "\x22\x01\x1a"},
	} {
		wasm := testModule{fns: []fn{{sig: sig{i32, i32}, locals: i32, code: c.code}}}.bytes()
		out := rewrite(t, wasm)
		forged := bytes.Replace(out, []byte(c.from), []byte(c.to), 1)
		if bytes.Equal(out, forged) || compiles(rt, forged) != nil {
			t.Errorf("%s: %v", name, compiles(rt, forged))
		}
	}
}

// Names of this package are its own.
func TestReservedNames(t *testing.T) {
	f := []fn{{sig: sig{i32, i32}, code: "get 0"}}
	ok := testModule{fns: f}.bytes()
	for _, c := range []struct {
		from, to string
		want     error
	}{
		{"\x03env\x03out", "\x09rlp:meter\x03out", meter.ErrReserved},
		{"\x06global\x03\x00", "\x11rlp:meter/counter\x03\x00", meter.ErrReserved},
		{"\x06global\x03\x00", "\x06global\x03\x01", meter.ErrMalformed},   // export of the counter
		{"\x06global\x03\x00", "\x06global\x00\x02", meter.ErrMalformed},   // of a function that is not there
		{"\x06global\x03\x00", "\x06global\x04\x00", meter.ErrUnsupported}, // of a tag
	} {
		if _, err := meter.Rewrite(swap(t, ok, c.from, c.to), meter.Option{}); !errors.Is(err, c.want) {
			t.Errorf("%q: %v", c.to, err)
		}
	}
}

// swap replaces text in a module, and mends the size of the section around it.
func swap(t *testing.T, wasm []byte, from, to string) []byte {
	t.Helper()
	at := bytes.Index(wasm, []byte(from))
	if at < 0 {
		t.Fatalf("no %q", from)
	}
	for p := 8; p < len(wasm); p += 2 + int(wasm[p+1]) {
		if size := int(wasm[p+1]); at < p+2+size {
			body := bytes.Replace(wasm[p+2:p+2+size], []byte(from), []byte(to), 1)
			return append(append(bytes.Clone(wasm[:p]), section(wasm[p], body)...), wasm[p+2+size:]...)
		}
	}
	t.Fatal("no section")
	return nil
}

// Hostile modules are rewritten or refused in no time and little memory.
func TestHostileModules(t *testing.T) {
	files, err := filepath.Glob("../guest/testdata/hostile/*.wasm")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		wasm, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		out, err := meter.Rewrite(wasm, meter.Option{})
		if d := time.Since(start); d > 10*time.Second || len(out) > 1000+20*len(wasm) {
			t.Errorf("%s: %v, %d bytes of %d", filepath.Base(file), d, len(out), len(wasm))
		}
		if strings.Contains(file, "vec_huge") && !errors.Is(err, meter.ErrMalformed) {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
}

// Limits hold at the number that they name, and not below.
func TestLimits(t *testing.T) {
	nested := func(n int) []byte {
		code := strings.Repeat("block; ", n) + strings.Repeat("end; ", n) + "get 0"
		return testModule{fns: []fn{{sig: sig{i32, i32}, code: code}}}.bytes()
	}
	local := func(n int) []byte {
		return testModule{fns: []fn{{sig: sig{i32, i32}, locals: strings.Repeat(i64, n-1), code: "get 0"}}}.bytes()
	}
	opt := meter.Option{MaxNesting: 50, MaxLocals: 40}
	for name, build := range map[string]func(int) []byte{"nesting": nested, "locals": local} {
		limit := map[string]int{"nesting": 50, "locals": 40}[name]
		if _, err := meter.Rewrite(build(limit), opt); err != nil {
			t.Errorf("%s at its limit: %v", name, err)
		}
		if _, err := meter.Rewrite(build(limit+1), opt); !errors.Is(err, meter.ErrLimit) {
			t.Errorf("%s over its limit: %v", name, err)
		}
	}
}

// A type is written once, and a function that is added for an export has code
// for each of its parameters: that is bounded too.
func TestManyParameters(t *testing.T) {
	exported := func(functions, params int) []byte {
		one := fn{sig: sig{strings.Repeat(i32, params), i32}, code: "i32 1"}
		wasm := testModule{fns: []fn{one}}.bytes()
		funcs, exports, codes := uleb(functions), uleb(functions), uleb(functions)
		for i := range functions {
			funcs = append(funcs, 1)
			exports = slices.Concat(exports, sized([]byte(strconv.Itoa(i))), []byte{0}, uleb(1+i))
			codes = append(codes, 4, 0, 0x41, 1, 0x0b)
		}
		head := wasm[:bytes.Index(wasm, []byte("env"))+9] // to the end of the imports
		return slices.Concat(head, section(3, funcs), section(7, exports), section(10, codes))
	}
	rt := newRuntime(t, features(wazero.NewRuntimeConfigInterpreter()))
	for functions, params := range map[int]int{10: 100, 200: 8} {
		if err := compiles(rt, rewrite(t, exported(functions, params))); err != nil {
			t.Error(err)
		}
	}
	wasm := exported(1000, 10_000)
	out, err := meter.Rewrite(wasm, meter.Option{})
	if !errors.Is(err, meter.ErrLimit) || len(out) > 0 || compiles(rt, wasm) != nil {
		t.Errorf("%d bytes of %d, %v, as it is %v", len(out), len(wasm), err, compiles(rt, wasm))
	}
}

// Names of functions move with them; what is not of functions is dropped.
func TestNames(t *testing.T) {
	entries := "\x02\x00\x03out\x01\x05named"
	names := section(0, sized([]byte("name")), section(0, sized([]byte("mod"))), section(1, []byte(entries)),
		section(2, []byte{0}))
	dwarf := section(0, sized([]byte(".debug_info")), make([]byte, 5000))
	wasm := testModule{fns: []fn{{sig: sig{i32, i32}, code: "unreachable"}}, extra: append(names, dwarf...)}.bytes()
	out := rewrite(t, wasm)
	if !bytes.Contains(out, []byte("\x02\x00\x03out\x02\x05named")) || !bytes.Contains(out, []byte("\x03mod")) ||
		bytes.Contains(out, []byte("debug_info")) {
		t.Errorf("%q", out)
	}
	rt := newRuntime(t, features(wazero.NewRuntimeConfigCompiler()))
	if err := compiles(rt, out); err != nil {
		t.Error(err)
	}
}

// Whatever the bytes, Rewrite comes back with a module that is valid as the
// original is, or with an error of its own.
func FuzzRewrite(f *testing.F) {
	for _, c := range constructs {
		f.Add(c.module())
	}
	for seed := range uint64(10) {
		f.Add(randomModule(seed))
	}
	for _, pattern := range []string{
		"v2/testdata/elem.*.wasm", "v2/testdata/br_table.0.wasm",
		"v2/testdata/simd_lane.*.wasm", "v2/testdata/custom.*.wasm", "v2/testdata/bulk.*.wasm",
	} {
		for _, file := range specFiles(f, pattern) {
			if wasm, err := os.ReadFile(file); err == nil && len(wasm) < 8<<10 {
				f.Add(wasm)
			}
		}
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if len(wasm) > 16<<10 {
			return
		}
		start := time.Now()
		out, err := meter.Rewrite(wasm, meter.Option{MaxNesting: 200, MaxLocals: 1000})
		if d := time.Since(start); d > 10*time.Second || len(out) > 1000+20*len(wasm) {
			t.Errorf("%v, %d bytes of %d", d, len(out), len(wasm))
		}
		if err != nil {
			return // the engine's decoder may not be given it
		}
		rt := newRuntime(t, features(wazero.NewRuntimeConfigInterpreter()))
		before, after := compiles(rt, wasm), compiles(rt, out)
		if (before == nil) != (after == nil) {
			t.Errorf("original: %v\nrewritten: %v", before, after)
		}
	})
}
