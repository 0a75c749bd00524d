package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/base/strictjson/jsontest"
	"runloop.dev/rlp/kb/source"
)

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t testing.TB, path string, o source.Options) (docs []source.Document, skipped []source.Skipped) {
	t.Helper()
	skipped, err := source.Read(t.Context(), path, o, func(d source.Document) error {
		docs = append(docs, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs, skipped
}

// The same files give the same documents in the same order, in whatever order
// they were made and wherever they lie.
//
//rlp:holds K58 K68
func TestFolderIsStable(t *testing.T) {
	files := map[string]string{
		"b.md": "two", "a/z.md": "one", "a.md": "three", "a/b/c": "", "é.txt": "four",
		"run.sh": "#!/bin/sh\nexit 1",
	}
	var all [2][]source.Document
	for i := range all {
		dir := t.TempDir()
		write(t, dir, files)
		if i == 1 { // made again, the other way round
			write(t, dir, map[string]string{"b.md": "two"})
		}
		all[i], _ = read(t, dir, source.Options{Prefix: "p/"})
	}
	var keys []string
	for i, d := range all[0] {
		keys = append(keys, d.Key)
		if e := all[1][i]; d.Key != e.Key || d.ETag != e.ETag || d.Source != e.Source || !bytes.Equal(d.Value, e.Value) {
			t.Errorf("%+v in one place, %+v in another", d, e)
		}
	}
	if want := []string{"p/a/b/c", "p/a/z.md", "p/a.md", "p/b.md", "p/run.sh", "p/é.txt"}; !slices.Equal(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
	if d := all[0][3]; string(d.Value) != "two" || d.Source != "import:b.md" || !strings.HasPrefix(d.ETag, "blake3:") {
		t.Errorf("%+v", d)
	}
}

// Links, special files and what is too large are left out, and said; nothing
// outside the folder is read.
func TestFolderLeavesOut(t *testing.T) {
	out := t.TempDir()
	write(t, out, map[string]string{"secret": "outside"})
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"ok": "text", ".hidden": "x", ".git/config": "x", "large": strings.Repeat("x", source.MaxDocument+1),
		"just": strings.Repeat("x", source.MaxDocument), "bad\nname": "x", "bad\xffname": "x",
	})
	for name, to := range map[string]string{
		"link": filepath.Join(out, "secret"), "dirlink": out, "dangling": "nowhere",
		"inside": "ok",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "link")); err != nil || string(text) != "outside" { // the control
		t.Fatal(text, err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shut"), nil, 0); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("d/", source.MaxDepth)
	write(t, dir, map[string]string{deep + "x": "deep"})
	docs, skipped := read(t, dir, source.Options{})
	reasons := map[string]string{}
	for _, s := range skipped {
		reasons[s.Path] = s.Reason
	}
	for path, want := range map[string]string{
		"link": "a link", "dirlink": "a link", "dangling": "a link", "inside": "a link", "pipe": "not a regular file",
		".hidden": "hidden", ".git": "hidden", "large": "larger than 1 MiB", "bad\nname": "the key holds control characters",
		"bad\xffname": "the key is not UTF-8", strings.TrimSuffix(deep, "/"): "too deep",
	} {
		if reasons[path] != want {
			t.Errorf("%q: %q, want %q", path, reasons[path], want)
		}
	}
	for _, d := range docs {
		if !slices.Contains([]string{"ok", "just", "shut"}, d.Key) {
			t.Errorf("%q was read", d.Key)
		}
	}
	if more, _ := read(t, dir, source.Options{Hidden: true}); len(more) != len(docs)+2 {
		t.Errorf("with what is hidden %d, without %d", len(more), len(docs))
	}
	if _, err := source.Read(t.Context(), filepath.Join(dir, "pipe"), source.Options{}, nil); !errors.Is(err,
		source.ErrInput) {
		t.Errorf("a pipe: %v", err)
	}
}

// A line's key is its id, or its own digest; its version what it says, or that.
//
//rlp:holds K58 K70
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, filepath.Dir(path), map[string]string{"in.jsonl": `{"id":"b","text":"two","meta":{"etag":"v1","tenant":"other"}}

  {"text":"no id"}
{"ID":"not this","Meta":{"etag":"nor this"},"id":"a","meta":7}` + "\n"})
	docs, skipped := read(t, path, source.Options{Prefix: "x/"})
	if len(docs) != 3 || len(skipped) != 0 {
		t.Fatalf("%+v %+v", docs, skipped)
	}
	if d := docs[0]; d.Key != "x/b" || d.ETag != "etag:v1" || d.Source != "import:in.jsonl" ||
		!strings.HasPrefix(string(d.Value), `{"id":"b"`) {
		t.Errorf("%+v", d)
	}
	if d := docs[1]; d.Key != "x/"+d.ETag || !strings.HasPrefix(d.ETag, "blake3:") ||
		string(d.Value) != `{"text":"no id"}` {
		t.Errorf("%+v", d)
	}
	if d := docs[2]; d.Key != "x/a" || !strings.HasPrefix(d.ETag, "blake3:") {
		t.Errorf("%+v", d)
	}
}

// One bad line refuses the file before anything is given out, and is named.
func TestBadLines(t *testing.T) {
	for line, says := range map[string]string{
		`[1]`: "an object is wanted", `{"a":`: "a: not JSON: it ends too early (line 2, column 6)",
		"{\"a\":\"\xff\"}": "UTF-8", `x`: "an object is wanted",
		`{"id":7}`: "id: a text", `{"id":""}`: "id: the key is empty", `{"id":"a\u0000b"}`: "control",
		`{"id":null}`:         "id: a text",
		`{"id":"a","id":"b"}`: "id: given twice", `{"meta":{"etag":1}}`: "meta.etag: a text",
		`{"meta":{"etag":"a","etag":"b"}}`: "meta.etag: given twice",
		`{"id":"good"}`:                    "line 1 has it already", `{"id":"` + strings.Repeat("k", 1025) + `"}`: "1 KiB",
		`{"x":"` + strings.Repeat("y", source.MaxDocument) + `"}`: "1 MiB", `{"meta":{"etag":"` + strings.Repeat("e", 251) +
			`"}}`: "1 to 250",
	} {
		path := filepath.Join(t.TempDir(), "in.jsonl")
		write(t, filepath.Dir(path), map[string]string{"in.jsonl": `{"id":"good"}` + "\n" + line + "\n"})
		given := 0
		_, err := source.Read(t.Context(), path, source.Options{}, func(source.Document) error { given++; return nil })
		if !errors.Is(err, source.ErrInput) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(),
			"in.jsonl:2") || given != 0 {
			t.Errorf("%.60s: %v, %d given out", line, err, given)
		}
	}
}

// FuzzLines: whatever a file holds is refused with its line, or gives documents
// with usable, different keys that are as long as their lines.
func FuzzLines(f *testing.F) {
	for _, s := range []string{
		`{"id":"a"}`, "{}\n{}", `{"meta":{"etag":"x"},"id":"\u0041"}`, "\r\n{\"id\":\"é\"}\r\n",
		"{\"id\":\"a\"}\x00",
	} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "in.jsonl")
	f.Fuzz(func(t *testing.T, p []byte) {
		if err := os.WriteFile(path, p, 0o600); err != nil {
			t.Fatal(err)
		}
		seen, total := map[string]bool{}, 0
		_, err := source.Read(t.Context(), path, source.Options{}, func(d source.Document) error {
			if seen[d.Key] || d.Key == "" || !utf8.ValidString(d.Key) || d.ETag == "" {
				return fmt.Errorf("document %+v", d)
			}
			seen[d.Key] = true
			total += len(d.Value)
			return nil
		})
		if err != nil && (!errors.Is(err, source.ErrInput) || len(seen) > 0) {
			t.Fatal(err)
		}
		if total > len(p) {
			t.Fatalf("%d bytes out of %d", total, len(p))
		}
	})
}

// A link is not followed at the root either, however it is spelled, and what the
// kernel makes up is not read.
func TestRootIsWhatItIs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"real/a": "text", "in.jsonl": "{}"})
	for name, to := range map[string]string{"folder": "real", "file": "in.jsonl"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if docs, _ := read(t, filepath.Join(dir, to), source.Options{}); len(docs) != 1 { // the control
			t.Errorf("%s: %+v", to, docs)
		}
	}
	refuse := func(path, says string) {
		t.Helper()
		_, err := source.Read(t.Context(), path, source.Options{}, func(d source.Document) error {
			return fmt.Errorf("%q was read", d.Key)
		})
		if !errors.Is(err, source.ErrInput) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, end := range []string{"folder", "folder/", "folder/.", "folder/.//", "file"} {
		refuse(dir+"/"+end, "is a link")
	}
	if _, err := source.Open(filepath.Join(dir, "file")); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Error(err)
	}
	if _, err := source.Open(filepath.Join(dir, "real")); err == nil {
		t.Error("a folder was opened as a file")
	}
	if _, err := os.Stat("/proc/self/status"); err == nil {
		refuse("/proc/sys", "procfs")
		refuse("/proc/self/status", "procfs")
	}
}

// Reading ends with its context: between files, and within one.
func TestReadingEnds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"f/a": "1", "f/b": "2", "in.jsonl": "{\"x\":\"" + strings.Repeat("y", 64<<10) +
		"\"}\n{}\n"})
	for _, name := range []string{"f", "in.jsonl"} {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		_, err := source.Read(ctx, filepath.Join(dir, name), source.Options{},
			func(source.Document) error { n++; cancel(); return nil })
		if !errors.Is(err, context.Canceled) || errors.Is(err, source.ErrInput) || n > 1 {
			t.Errorf("%s: %d given out, %v", name, n, err)
		}
	}
}

// What no reader takes is no line that is imported. Control: the good one is.
func TestNoLineIsReadTwoWays(t *testing.T) {
	bad, good := jsontest.Documents(`{"id":"a","x":%s}`)
	delete(bad, "nothing") // a blank line is none
	given := func(line string) (n int, err error) {
		path := filepath.Join(t.TempDir(), "in.jsonl")
		write(t, filepath.Dir(path), map[string]string{"in.jsonl": line + "\n"})
		_, err = source.Read(t.Context(), path, source.Options{}, func(source.Document) error { n++; return nil })
		return n, err
	}
	if n, err := given(good); n != 1 || err != nil {
		t.Errorf("control: %d, %v", n, err)
	}
	for name, line := range bad {
		if n, err := given(line); n != 0 || !errors.Is(err, source.ErrInput) {
			t.Errorf("%s: %d given out, %v", name, n, err)
		}
	}
}
