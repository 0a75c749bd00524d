// Package hosttest makes agents, and homes to launch them in, for tests of a host.
package hosttest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/effect/wasi"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/launcher/compose"
)

// Importing is a module that imports the host calls of these names, and whose
// _start does nothing.
func Importing(t testing.TB, names ...string) []byte {
	t.Helper()
	sys, err := wasi.New(wasi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	known := append(sys.Funcs(), hostcalls.Signatures()...)
	var types, imports bytes.Buffer
	for i, name := range names {
		at := slices.IndexFunc(known, func(f abi.Func) bool { return f.Name == name })
		if at < 0 {
			t.Fatalf("there is no host call %s", name)
		}
		f := known[at]
		types.WriteByte(0x60)
		for _, list := range [][]abi.Type{f.Params, f.Results} {
			types.WriteByte(byte(len(list)))
			for _, v := range list {
				types.WriteByte(byte(v))
			}
		}
		for _, s := range []string{f.Module, f.Name} {
			imports.WriteByte(byte(len(s)))
			imports.WriteString(s)
		}
		imports.Write([]byte{0, byte(i)})
	}
	types.Write([]byte{0x60, 0, 0})
	n := byte(len(names))
	wasm := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, body []byte) {
		wasm = append(wasm, id)
		for size := len(body); ; size >>= 7 {
			if size < 0x80 {
				wasm = append(wasm, byte(size))
				break
			}
			wasm = append(wasm, byte(size)|0x80)
		}
		wasm = append(wasm, body...)
	}
	section(1, append([]byte{n + 1}, types.Bytes()...))
	if n > 0 {
		section(2, append([]byte{n}, imports.Bytes()...))
	}
	section(3, []byte{1, n})
	section(5, []byte{1, 0, 1})
	section(7, append([]byte("\x02\x06_start\x00"), append([]byte{n}, "\x06memory\x02\x00"...)...))
	section(10, []byte{1, 2, 0, 0x0b})
	return wasm
}

// Archived is a bundle as a request carries it.
func Archived(t testing.TB, name, capabilities string, wasm []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range [][2]string{
		{"manifest.toml", "[agent]\nname = \"" + name +
			"\"\nversion = \"1.0.0\"\ndescription = \"for tests\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = \"a.wasm\" " +
			"}\n[caps]\nfile = \"policy.caps\"\n"},
		{"policy.caps", "[capabilities]\n" + capabilities},
		{"a.wasm", string(wasm)},
	} {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o600, Size: int64(len(f[1]))}),
			second(w.Write([]byte(f[1])))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func second(_ int, err error) error { return err }

// Install puts a bundle where the agents of the default tenant of a home are.
func Install(t testing.TB, home, name, capabilities string, wasm []byte) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(Archived(t, name, capabilities, wasm)))
	dir := filepath.Join(home, "agents", name)
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		data, readErr := io.ReadAll(r)
		if err := errors.Join(err, readErr, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, f.Name), data,
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// Runner launches in a home of its own whose config.toml says config.
func Runner(t testing.TB, config string) *compose.Runner {
	t.Helper()
	home := filepath.Join(t.TempDir(), ".runloop")
	if err := errors.Join(os.MkdirAll(home, 0o700),
		os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	kept := compose.NewKept(t.Context(), 0, t.Output())
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	say := func(text string) { fmt.Fprintln(t.Output(), text) }
	return &compose.Runner{Kept: kept, Self: os.Executable, Reader: &compose.Reader{
		Env: []string{"HOME=" + filepath.Dir(home), "RUNLOOP_HOME=" + home}, HomeDir: home, Tenant: "default",
		WorkingDir: compose.WorkingDir, Files: compose.Canonical, Programs: func() []string { return nil }, Say: say,
	}}
}
