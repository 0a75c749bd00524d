package bundles

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const (
	testWasm   = "\x00asm\x01\x00\x00\x00"
	testPolicy = "[capabilities]\ntime = true\n"
	noTools    = `{"version":1,"tools":[]}`
)

func hexSum(data string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(data))) }

// manifestFor is a correct manifest, digests included, for a module and policy.
func manifestFor(wasm, policy string) string {
	return `[agent]
name = "writer"
version = "0.1.0"
kind = "wasm32-wasip1"
entry_wasm = { path = "agent.wasm", sha256 = "` + hexSum(wasm) + `" }

[caps]
file = "policy.caps"
sha256 = "` + hexSum(policy) + `"
`
}

type tree map[string]string

func goodTree() tree {
	return tree{
		"manifest.toml": manifestFor(testWasm, testPolicy),
		"agent.wasm":    testWasm,
		"policy.caps":   testPolicy,
	}
}

func (t tree) with(name, data string) tree {
	u := maps.Clone(t)
	u[name] = data
	return u
}

func (t tree) without(name string) tree {
	u := maps.Clone(t)
	delete(u, name)
	return u
}

// dir writes the tree as a directory.
func (t tree) dir(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "b")
	t.writeTo(tb, dir)
	return dir
}

func (t tree) writeTo(tb testing.TB, dir string) {
	tb.Helper()
	must(tb, os.MkdirAll(dir, 0o755))
	for name, data := range t {
		file := filepath.Join(dir, name)
		must(tb, os.MkdirAll(filepath.Dir(file), 0o755))
		must(tb, os.WriteFile(file, []byte(data), 0o644))
	}
}

// tar packs the tree the usual way.
func (t tree) tar(tb testing.TB) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		must(tb, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(t[name])), Mode: 0o644}))
		_, err := w.Write([]byte(t[name]))
		must(tb, err)
	}
	must(tb, w.Close())
	return buf.Bytes()
}

func gzipped(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write(data)
	must(tb, err)
	must(tb, w.Close())
	return buf.Bytes()
}

// archive writes an archive to a file whose name says nothing.
func archive(tb testing.TB, data []byte) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "bundle")
	must(tb, os.WriteFile(file, data, 0o644))
	return file
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func mustOpen(tb testing.TB, path string) *Bundle {
	tb.Helper()
	b, err := Open(path)
	if err != nil {
		tb.Fatalf("control: %v", err)
	}
	return b
}

// wantRefused opens a path that must be refused, for the reason named.
func wantRefused(tb testing.TB, path, code string) *Error {
	tb.Helper()
	b, err := Open(path)
	var e *Error
	switch {
	case err == nil:
		tb.Fatalf("%s was accepted, want %s", path, code)
	case b != nil:
		tb.Fatalf("%s was refused and a bundle was returned", path)
	case !errors.As(err, &e) || !errors.Is(err, ErrInvalid):
		tb.Fatalf("%s: %v is no refusal, want %s", path, err, code)
	case e.Code != code:
		tb.Fatalf("%s: %v (%s), want %s", path, err, e.Code, code)
	case e.File == "" || e.Message == "":
		tb.Fatalf("%s: the error does not say where or what: %+v", path, e)
	}
	return e
}

// An entry is written as a header of its own, so that tests can say what the
// tar package would not write.
type rawEntry struct {
	name     string
	kind     byte
	data     string
	linkname string
	size     string // octal; that of data if empty
	tweak    func(h []byte)
}

func rawTar(entries ...rawEntry) []byte {
	var out bytes.Buffer
	for _, e := range entries {
		h := make([]byte, 512)
		copy(h, e.name)
		copy(h[100:], "0000644\x00")
		copy(h[108:], "0000000\x00")
		copy(h[116:], "0000000\x00")
		size := e.size
		if size == "" {
			size = fmt.Sprintf("%011o", len(e.data))
		}
		copy(h[124:136], size)
		copy(h[136:], "00000000000\x00")
		h[156] = e.kind
		copy(h[157:], e.linkname)
		copy(h[257:], "ustar\x0000")
		if e.tweak != nil {
			e.tweak(h)
		}
		checksum(h)
		out.Write(h)
		out.WriteString(e.data)
		out.Write(make([]byte, (512-len(e.data)%512)%512))
	}
	return out.Bytes()
}

func checksum(h []byte) {
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
}

func endOfTar() []byte { return make([]byte, 1024) }

// raw is an archive of the good tree with more entries behind it.
func raw(more ...rawEntry) []byte {
	all := []rawEntry{}
	for _, name := range slices.Sorted(maps.Keys(goodTree())) {
		all = append(all, rawEntry{name: name, kind: '0', data: goodTree()[name]})
	}
	return append(rawTar(append(all, more...)...), endOfTar()...)
}

func pax(records ...string) rawEntry {
	data := ""
	for _, r := range records {
		n := len(r) + 3
		for len(fmt.Sprintf("%d %s\n", n, r)) != n {
			n++
		}
		data += fmt.Sprintf("%d %s\n", n, r)
	}
	return rawEntry{name: "PaxHeaders/x", kind: 'x', data: data}
}
