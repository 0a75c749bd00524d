//go:build !wasip1

package sdktest

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An Import is one function that a module imports. Type reads as in the text
// format, shortened: "i32 i32 -> i64".
type Import struct{ Module, Name, Type string }

// Build compiles the main package in dir as a guest, the way a release is
// built, and returns the module.
func Build(t testing.TB, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", dir, err, text)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// Imports lists the function imports of a module in its order.
func Imports(module []byte) ([]Import, error) {
	if len(module) < 8 || string(module[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, errModule
	}
	var types []string
	for r := (reader{b: module[8:]}); len(r.b) > 0; {
		id := r.byte()
		section := reader{b: r.bytes(r.u32())}
		switch id {
		case 1:
			for n := section.u32(); n > 0 && section.err == nil; n-- {
				types = append(types, section.funcType())
			}
		case 2:
			list := section.imports(types)
			return list, errors.Join(r.err, section.err)
		}
		if err := errors.Join(r.err, section.err); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

var errModule = errors.New("malformed module")

// A reader takes a module's bytes apart; after an error it yields zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() { r.b, r.err = nil, errModule }

func (r *reader) byte() byte {
	b := r.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u32() uint32 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > 1<<32-1 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return uint32(n)
}

func (r *reader) funcType() string {
	if r.byte() != 0x60 {
		r.fail()
		return ""
	}
	return r.valTypes() + "-> " + r.valTypes()
}

func (r *reader) valTypes() string {
	names := map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64"}
	var s strings.Builder
	for _, t := range r.bytes(r.u32()) {
		s.WriteString(names[t] + " ")
	}
	return s.String()
}

func (r *reader) imports(types []string) []Import {
	var list []Import
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		module, name := string(r.bytes(r.u32())), string(r.bytes(r.u32()))
		if kind := r.byte(); kind != 0 { // a table, memory or global: no Go guest has one
			r.fail()
			return nil
		}
		i := r.u32()
		if uint64(i) >= uint64(len(types)) {
			r.fail()
			return nil
		}
		list = append(list, Import{module, name, strings.TrimSpace(types[i])})
	}
	return list
}

// Names returns "module.name" of each import that is not WASI's own.
func Names(imports []Import) []string {
	var names []string
	for _, i := range imports {
		if i.Module != "wasi_snapshot_preview1" {
			names = append(names, i.Module+"."+i.Name)
		}
	}
	return names
}
