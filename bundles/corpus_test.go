package bundles

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What each archive of the corpus must come to: "" is accepted, else the code
// of the refusal. The archives carry no manifest; the tests put one in.
var corpus = []struct {
	file, code string
	escapes    bool // the usual extraction would write outside its folder
	broken     bool // the usual extraction fails too
}{
	{file: "ok.tar"},
	{file: "ok-gz.tar.gz"},
	{file: "world-writable.tar"},
	{file: "owner.tar"},
	{file: "name-dotdot.tar", code: "entry_name", escapes: true},
	{file: "name-dotdot-mid.tar", code: "entry_name", escapes: true},
	{file: "name-absolute.tar", code: "entry_name", escapes: true},
	{file: "name-dotdot-only.tar", code: "entry_name", escapes: true},
	{file: "name-dotdot-slash.tar", code: "entry_name", escapes: true},
	{file: "name-empty.tar", code: "entry_name"},
	{file: "name-dot-mid.tar", code: "entry_name"},
	{file: "name-trailing-dot.tar", code: "entry_name"},
	{file: "name-newline.tar", code: "entry_name"},
	{file: "name-escape.tar", code: "entry_name"},
	{file: "name-bidi.tar", code: "entry_name"},
	{file: "name-long.tar", code: "entry_name"},
	{file: "name-deep.tar", code: "entry_name"},
	{file: "name-nfd.tar", code: "entry_name"},
	{file: "name-devname.tar", code: "entry_name"},
	{file: "name-colon.tar", code: "entry_name"},
	{file: "dup-case.tar", code: "entry_duplicate"},
	{file: "dup-dir-file.tar", code: "entry_duplicate"},
	{file: "symlink-inside.tar", code: "entry_type"},
	{file: "symlink-policy.tar", code: "entry_type"},
	{file: "hardlink.tar", code: "entry_type"},
	{file: "missing-policy.tar", code: "file_missing"},
	{file: "missing-wasm.tar", code: "module_missing"},
	{file: "second-archive.tar", code: "archive_trailing"},
	{file: "truncated.tar", code: "archive_truncated", broken: true},
	{file: "multistream.tar.gz", code: "archive_trailing"},
	{file: "many.tar.gz", code: "archive_limit"},
	{file: "bomb.tar.gz", code: "archive_limit"},
}

// corpusArchive returns an archive with a manifest before its entries and how
// to pack what was changed in it.
func corpusArchive(t *testing.T, file string) (entries []byte, repack func([]byte) []byte) {
	t.Helper()
	plain := func(b []byte) []byte { return b }
	zip := func(b []byte) []byte { return gzipped(t, b) }
	switch file {
	case "many.tar.gz":
		var more []rawEntry
		for i := range 20000 {
			more = append(more, rawEntry{name: fmt.Sprintf("n/%d", i), kind: '0'})
		}
		return raw(more...), zip
	case "bomb.tar.gz":
		return raw(rawEntry{name: "zeros", kind: '0', data: strings.Repeat("\x00", 32<<20)}), zip
	}
	data, err := os.ReadFile(filepath.Join("testdata", "archives", file))
	must(t, err)
	policy := testPolicy
	wasm := corpusModule(t)
	manifest := rawTar(rawEntry{name: ManifestName, kind: '0', data: manifestFor(wasm, policy)})
	if !strings.HasSuffix(file, ".gz") {
		return append(manifest, data...), plain
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	must(t, err)
	z.Multistream(false)
	first, err := io.ReadAll(z)
	must(t, err)
	return append(manifest, first...), func(b []byte) []byte {
		if file == "multistream.tar.gz" {
			return append(zip(b), zip(endOfTar())...)
		}
		return zip(b)
	}
}

// corpusModule is the agent.wasm of the corpus.
func corpusModule(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "archives", "ok.tar"))
	must(t, err)
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		must(t, err)
		if h.Name == "agent.wasm" {
			wasm, err := io.ReadAll(r)
			must(t, err)
			return string(wasm)
		}
	}
}

//rlp:holds R11 R88
func TestArchiveCorpus(t *testing.T) {
	for _, c := range corpus {
		t.Run(c.file, func(t *testing.T) {
			entries, repack := corpusArchive(t, c.file)
			file := archive(t, repack(entries))
			if c.code == "" {
				b := mustOpen(t, file)
				if string(b.Policy) != testPolicy || string(b.Wasm) != corpusModule(t) || len(b.Findings) != 0 {
					t.Errorf("policy %q, findings %v", b.Policy, b.Findings)
				}
				return
			}
			e := wantRefused(t, file, c.code)
			if strings.ContainsAny(e.Error(), "\n\x1b\u202e") {
				t.Errorf("the message carries characters of the archive: %q", e)
			}
			usual := usualExtraction(entries)
			if usual.escaped != c.escapes || (usual.err != nil) != c.broken {
				t.Errorf("control: the usual extraction: %+v, want escape %v, failure %v", usual, c.escapes, c.broken)
			}
			mustOpen(t, archive(t, withoutFlaw(t, c.file, entries)))
		})
	}
}

// A bomb must be refused by what it has unpacked to so far, not by what it
// says of itself or by running out of memory.
func TestBombIsRefusedEarly(t *testing.T) {
	entries, repack := corpusArchive(t, "bomb.tar.gz")
	file := archive(t, repack(entries))
	info, err := os.Stat(file)
	must(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	wantRefused(t, file, "archive_limit")
	runtime.ReadMemStats(&after)
	// A growing buffer copies itself: four times what may come out at all.
	most := uint64(4*MaxRatio*info.Size()) + firstAlloc
	if got := after.TotalAlloc - before.TotalAlloc; got > most || most > 32<<20 {
		t.Errorf("%d bytes allocated for an archive of %d, want at most %d", got, info.Size(), most)
	}
}

type extraction struct {
	escaped bool
	err     error
}

// usualExtraction is what much code does: read with the tar package, join each
// name to the folder, write.
func usualExtraction(data []byte) (x extraction) {
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return x
		}
		if err != nil {
			x.err = err
			return x
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			x.err = err
			return x
		}
		target := path.Join("/out/bundle", h.Name)
		if path.IsAbs(h.Name) || target != "/out/bundle" && !strings.HasPrefix(target, "/out/bundle/") {
			x.escaped = true
		}
	}
}

// withoutFlaw packs the entries of an archive again with what is wrong with it
// put right and everything else as it was.
func withoutFlaw(t *testing.T, file string, entries []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put := func(name, data string) {
		must(t, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644}))
		_, err := io.WriteString(w, data)
		must(t, err)
	}
	have := map[string]bool{}
	r := tar.NewReader(bytes.NewReader(entries))
	for n := 0; ; n++ {
		h, err := r.Next()
		if err != nil {
			break
		}
		data := make([]byte, min(h.Size, 1<<20)) // the bomb becomes a small file
		if _, err := io.ReadFull(r, data); err != nil || file == "many.tar.gz" && n >= 4000 {
			break
		}
		name := h.Name
		switch {
		case have[name], checkName(name) != "", file == "dup-case.tar" && name == "Policy.Caps":
			name = fmt.Sprintf("fine-%d", n)
		case h.Typeflag == tar.TypeSymlink && name == "policy.caps":
			data = []byte(testPolicy)
		}
		have[name] = true
		put(name, string(data))
	}
	if !have["policy.caps"] {
		put("policy.caps", testPolicy)
	}
	if !have["agent.wasm"] {
		put("agent.wasm", corpusModule(t))
	}
	must(t, w.Close())
	return out.Bytes()
}

// Zip is no form of a bundle. That a zip is one is said, whatever it is called
// and whatever stands before it.
func TestZipIsRefused(t *testing.T) {
	files, err := filepath.Glob("testdata/archives/zip-*.zip")
	must(t, err)
	if len(files) != 9 {
		t.Fatalf("%d zips", len(files))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		e := wantRefused(t, archive(t, data), "archive_format")
		if !strings.Contains(e.Message, "a zip file") || !strings.Contains(e.Hint, ".tar") {
			t.Errorf("%s: %v", file, e)
		}
	}
	mustOpen(t, archive(t, goodTree().tar(t)))
}

// An archive that is a good bundle and, read from its end, a zip with others.
func TestPolyglotIsRefused(t *testing.T) {
	zip, err := os.ReadFile("testdata/archives/zip-dup.zip")
	must(t, err)
	wantRefused(t, archive(t, append(goodTree().tar(t), zip...)), "archive_format")
	wantRefused(t, archive(t, append(gzipped(t, goodTree().tar(t)), zip...)), "archive_trailing")
}
