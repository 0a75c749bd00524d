package bundles

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

func file(name, data string) rawEntry { return rawEntry{name: name, kind: '0', data: data} }

func set(off int, s string) func([]byte) { return func(h []byte) { copy(h[off:], s) } }

// What can be written in the headers of a tar archive, beyond the corpus. Each
// refusal stands beside the same thing done in a way that no reader disputes.
func TestTarHeaders(t *testing.T) {
	long := strings.Repeat("l", 120)
	for _, c := range []struct {
		name    string
		entries []rawEntry
		code    string
		file    string // one that must be there if it is accepted
	}{
		{"plain", []rawEntry{file("x", "1")}, "", "x"},
		{"folder", []rawEntry{{name: "d/", kind: '5'}, file("d/x", "1")}, "", "d/x"},
		{"folder without slash", []rawEntry{{name: "d", kind: '5'}, file("d/x", "1")}, "", "d/x"},
		{"folder with two slashes", []rawEntry{{name: "d//", kind: '5'}}, "entry_name", ""},
		{"folder with data", []rawEntry{{name: "d/", kind: '5', data: "x"}}, "archive_format", ""},
		{"file with slash", []rawEntry{file("x/", "1")}, "entry_name", ""},
		{"root folder", []rawEntry{{name: "./", kind: '5'}}, "entry_name", ""},
		{"dot slash", []rawEntry{file("./x", "1")}, "entry_name", ""},
		{"oldest form", []rawEntry{{name: "x", data: "1", tweak: set(257, strings.Repeat("\x00", 255))}}, "", "x"},
		{"GNU form", []rawEntry{{name: "x", kind: '0', data: "1", tweak: set(257, "ustar  \x00")}}, "", "x"},
		{"GNU form with a prefix", []rawEntry{{name: "x", kind: '0', tweak: func(h []byte) {
			copy(h[257:], "ustar  \x00")
			copy(h[345:], "../..")
		}}}, "archive_format", ""},
		{"oldest form with a prefix", []rawEntry{{name: "x", tweak: func(h []byte) {
			copy(h[257:], "\x00\x00\x00\x00\x00\x00\x00\x00")
			copy(h[345:], "../..")
		}}}, "archive_format", ""},
		{"unknown form", []rawEntry{{name: "x", kind: '0', tweak: set(257, "ustar\x0001")}}, "archive_format", ""},
		{"star form", []rawEntry{{name: "x", kind: '0', tweak: set(508, "tar\x00")}}, "archive_format", ""},
		{"prefix", []rawEntry{{name: "x", kind: '0', data: "1", tweak: set(345, "a/b")}}, "", "a/b/x"},
		{"prefix climbs", []rawEntry{{name: "x", kind: '0', tweak: set(345, "..")}}, "entry_name", ""},
		{"prefix is absolute", []rawEntry{{name: "x", kind: '0', tweak: set(345, "/etc")}}, "entry_name", ""},
		{"name behind its NUL", []rawEntry{{name: "x\x00y", kind: '0'}}, "archive_format", ""},
		{"prefix behind its NUL", []rawEntry{{name: "x", kind: '0', tweak: set(345, "a\x00b")}}, "archive_format", ""},
		{"linkname of a file", []rawEntry{{name: "x", kind: '0', data: "1", linkname: "/etc/shadow"}}, "", "x"},
		{
			"binary size",
			[]rawEntry{{name: "x", kind: '0', size: "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"}},
			"archive_format", "",
		},
		{"negative size", []rawEntry{{name: "x", kind: '0', size: "-0000000001"}}, "archive_format", ""},
		{"size with a tail", []rawEntry{{name: "x", kind: '0', size: "0000001 1"}}, "archive_format", ""},
		{"size of nothing", []rawEntry{{name: "x", kind: '0', size: "           "}}, "archive_format", ""},
		{"size beyond the bound", []rawEntry{{name: "x", kind: '0', size: "77777777777"}}, "size", ""},
		{"size beyond the end", []rawEntry{{name: "x", kind: '0', size: "00000100000"}}, "archive_truncated", ""},
		{
			"data behind the data",
			[]rawEntry{{name: "x", kind: '0', data: "1evil", size: "00000000001"}},
			"archive_format",
			"",
		},
		{"character device", []rawEntry{{name: "x", kind: '3'}}, "entry_type", ""},
		{"block device", []rawEntry{{name: "x", kind: '4'}}, "entry_type", ""},
		{"pipe", []rawEntry{{name: "x", kind: '6'}}, "entry_type", ""},
		{"contiguous", []rawEntry{{name: "x", kind: '7', data: "1"}}, "entry_type", ""},
		{"sparse", []rawEntry{{name: "x", kind: 'S', tweak: set(257, "ustar  \x00")}}, "entry_type", ""},
		{"unknown type", []rawEntry{{name: "x", kind: 'Q'}}, "entry_type", ""},
		{"long link name", []rawEntry{{name: "././@LongLink", kind: 'K', data: "x\x00"}, file("x", "")}, "entry_type", ""},
		{"global header", []rawEntry{{name: "g", kind: 'g', data: "12 path=../x\n"}, file("x", "")}, "entry_type", ""},
		{"pax name", []rawEntry{pax("path=" + long), file("short", "1")}, "", long},
		{"pax name climbs", []rawEntry{pax("path=../x"), file("x", "1")}, "entry_name", ""},
		{"pax name is absolute", []rawEntry{pax("path=/etc/x"), file("x", "1")}, "entry_name", ""},
		{"pax name cut by NUL", []rawEntry{pax("path=a\x00b"), file("x", "1")}, "entry_name", ""},
		{"pax name is empty", []rawEntry{pax("path="), file("x", "1")}, "archive_format", ""},
		{"pax name of a folder", []rawEntry{pax("path=d/"), {name: "e/", kind: '5'}, file("d/x", "")}, "", "d/x"},
		{"pax name twice", []rawEntry{pax("path=a", "path=b"), file("x", "1")}, "archive_format", ""},
		{
			"pax times and owners",
			[]rawEntry{pax("mtime=1.5", "uid=0", "uname=root", "SCHILY.xattr.user.x=1"), file("x", "1")},
			"", "x",
		},
		{"pax size", []rawEntry{pax("size=0"), file("x", "1")}, "archive_format", ""},
		{"pax link", []rawEntry{pax("linkpath=/etc/shadow"), file("x", "1")}, "archive_format", ""},
		{"pax sparse", []rawEntry{pax("GNU.sparse.major=1", "GNU.sparse.name=../x"), file("x", "1")}, "archive_format", ""},
		{"pax star sparse", []rawEntry{pax("SCHILY.realsize=9"), file("x", "1")}, "archive_format", ""},
		{"pax character set", []rawEntry{pax("hdrcharset=BINARY"), file("x", "1")}, "archive_format", ""},
		{"pax unknown", []rawEntry{pax("whatever=1"), file("x", "1")}, "archive_format", ""},
		{"pax of length zero", []rawEntry{{name: "p", kind: 'x', data: "0 a=b\n"}, file("x", "1")}, "archive_format", ""},
		{
			"pax of a wrong length",
			[]rawEntry{{name: "p", kind: 'x', data: "99 path=a\n"}, file("x", "1")},
			"archive_format",
			"",
		},
		{"pax with a sign", []rawEntry{{name: "p", kind: 'x', data: "+9 path=a\n"}, file("x", "1")}, "archive_format", ""},
		{
			"pax without a line end",
			[]rawEntry{{name: "p", kind: 'x', data: "9 path=ab"}, file("x", "1")},
			"archive_format",
			"",
		},
		{"pax without a key", []rawEntry{pax("=x"), file("x", "1")}, "archive_format", ""},
		{"pax twice", []rawEntry{pax("path=a"), pax("path=b"), file("x", "1")}, "archive_format", ""},
		{
			"pax and GNU name",
			[]rawEntry{pax("path=a"), {name: "L", kind: 'L', data: "b\x00"}, file("x", "1")},
			"archive_format", "",
		},
		{
			"pax of attributes and GNU name",
			[]rawEntry{pax("uid=0"), {name: "L", kind: 'L', data: "b\x00"}, file("x", "1")},
			"archive_format", "",
		},
		{"pax of nothing", []rawEntry{pax("path=a")}, "archive_format", ""},
		{
			"pax too large",
			[]rawEntry{{name: "p", kind: 'x', data: strings.Repeat("9 a=bcde\n", 10000)}},
			"archive_format",
			"",
		},
		{"pax of a link", []rawEntry{pax("path=a"), {name: "x", kind: '2', linkname: "/"}}, "entry_type", ""},
		{"GNU name", []rawEntry{{name: "././@LongLink", kind: 'L', data: long + "\x00"}, file("x", "1")}, "", long},
		{"GNU name climbs", []rawEntry{{name: "L", kind: 'L', data: "../x\x00"}, file("x", "1")}, "entry_name", ""},
		{"GNU name without NUL", []rawEntry{{name: "L", kind: 'L', data: "a"}, file("x", "1")}, "archive_format", ""},
		{"GNU name with two", []rawEntry{{name: "L", kind: 'L', data: "a\x00b\x00"}, file("x", "1")}, "archive_format", ""},
		{"duplicate", []rawEntry{file("x", "1"), file("x", "2")}, "entry_duplicate", ""},
		{"duplicate of the policy", []rawEntry{file("policy.caps", "")}, "entry_duplicate", ""},
		{"pax duplicate of the policy", []rawEntry{pax("path=policy.caps"), file("x", "")}, "entry_duplicate", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := archive(t, raw(c.entries...))
			if c.code != "" {
				wantRefused(t, path, c.code)
				return
			}
			if b := mustOpen(t, path); b.Files[c.file] == nil {
				t.Errorf("no file %q among %v", c.file, slices.Sorted(maps.Keys(b.Files)))
			}
		})
	}
}

func TestTarEnds(t *testing.T) {
	good := raw()
	body := good[:len(good)-1024]
	for _, c := range []struct {
		name string
		data []byte
		code string
	}{
		{"two zero blocks", good, ""},
		{"padded", append(bytes.Clone(good), make([]byte, 10240)...), ""},
		{"padded oddly", append(bytes.Clone(good), 0, 0, 0), ""},
		{"no end", body, "archive_truncated"},
		{"one zero block", append(bytes.Clone(body), make([]byte, 512)...), "archive_truncated"},
		{"cut in a header", body[:len(body)-700], "archive_truncated"},
		{"a byte behind the end", append(bytes.Clone(good), 1), "archive_trailing"},
		{"entries behind the end", append(bytes.Clone(good), raw()...), "archive_trailing"},
		{
			"entries behind one zero block", append(append(bytes.Clone(body), make([]byte, 512)...), raw()...),
			"archive_trailing",
		},
		{"empty", nil, "archive_truncated"},
		{"zeros", make([]byte, 2048), "manifest_missing"},
		{"text", []byte(strings.Repeat("hello\n", 200)), "archive_format"},
		{"wrong checksum", append([]byte("X"), good[1:]...), "archive_format"},
		{"module", []byte(testWasm), "archive_format"},
		{"gzip of gzip", gzipped(t, gzipped(t, good)), "archive_truncated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for what, data := range map[string][]byte{"tar": c.data, "gzip": gzipped(t, c.data)} {
				path := archive(t, data)
				switch {
				case c.code == "":
					mustOpen(t, path)
				case what == "gzip" && c.name == "module": // it is no tar either
					wantRefused(t, path, "archive_truncated")
				default:
					wantRefused(t, path, c.code)
				}
			}
		})
	}
}

func TestGzipEnds(t *testing.T) {
	good := gzipped(t, raw())
	broken := bytes.Clone(good)
	broken[len(broken)-6] ^= 1 // of the checksum
	corrupt := bytes.Clone(good)
	corrupt[15] ^= 0xff
	mustOpen(t, archive(t, good))
	wantRefused(t, archive(t, broken), "archive_format")
	if _, err := Open(archive(t, corrupt)); !errors.Is(err, ErrInvalid) {
		t.Errorf("corrupt data: %v", err)
	}
	for n := range len(good) {
		if _, err := Open(archive(t, good[:n])); !errors.Is(err, ErrInvalid) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	wantRefused(t, archive(t, append(bytes.Clone(good), 0)), "archive_trailing")
	wantRefused(t, archive(t, append(bytes.Clone(good), good...)), "archive_trailing")
}

// The bounds of the contract, each at its edge.
func TestArchiveBounds(t *testing.T) {
	entries := func(n int) []byte {
		var more []rawEntry
		for i := range n - 3 { // beside the three of the bundle
			more = append(more, file(fmt.Sprintf("n/%d", i), ""))
		}
		return raw(more...)
	}
	mustOpen(t, archive(t, entries(MaxEntries)))
	wantRefused(t, archive(t, entries(MaxEntries+1)), "archive_limit")

	huge := strings.Repeat("#", MaxManifest+1)
	wantRefused(t, archive(t, goodTree().with(ManifestName, huge).tar(t)), "size")
	padded := manifestFor(testWasm, testPolicy)
	padded += strings.Repeat("#", MaxManifest-len(padded))
	mustOpen(t, archive(t, goodTree().with(ManifestName, padded).tar(t)))

	// Ratio: the same file, and beside it as many random bytes as it takes.
	zeros := goodTree().with("zeros", strings.Repeat("\x00", 8<<20))
	wantRefused(t, archive(t, gzipped(t, zeros.tar(t))), "archive_limit")
	mustOpen(t, archive(t, gzipped(t, zeros.with("noise", noise(48<<10)).tar(t))))
	mustOpen(t, archive(t, zeros.tar(t)))
}

// noise is text that does not compress.
func noise(n int) string {
	var b strings.Builder
	for x := uint64(1); b.Len() < n; {
		x = x*6364136223846793005 + 1442695040888963407
		b.WriteByte(byte(x >> 56))
	}
	return b.String()
}

// The total is bounded although no file is too large and nothing compresses.
func TestTotalIsBounded(t *testing.T) {
	header := rawTar(rawEntry{name: "x", kind: '0', size: fmt.Sprintf("%011o", MaxTotal)})
	r := io.MultiReader(bytes.NewReader(header), zeros(MaxTotal))
	_, err := readTar(&bounded{r: r, left: MaxTotal >> 6, over: tooLarge()})
	var e *Error
	if !errors.As(err, &e) || e.Code != "archive_limit" {
		t.Errorf("%v, want archive_limit", err)
	}
}

func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Whatever this reader accepts, archive/tar reads as the same names and bytes,
// unless it refuses an owner or a time that is not looked at here: there is no archive that is one bundle here and
// another where it is unpacked.
func FuzzOpenArchive(f *testing.F) {
	f.Add(raw())
	f.Add(raw(pax("path=a/b"), file("x", "1"), rawEntry{name: "d/", kind: '5'}))
	f.Add(raw(rawEntry{name: "L", kind: 'L', data: "long\x00"}, file("x", "1")))
	f.Add(raw(rawEntry{name: "x", kind: '0', data: "1", tweak: set(345, "a/b")}))
	f.Add(raw(rawEntry{name: "x", data: "1", tweak: set(257, strings.Repeat("\x00", 255))}))
	f.Add(raw(rawEntry{name: "x", kind: '2', linkname: "/etc/passwd"}))
	f.Add(gzipSeed())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= 512 && !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
			data = rechecked(data)
		}
		files, err := readArchive(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if files != nil {
				t.Fatal("files beside an error")
			}
			return
		}
		if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
			return
		}
		same(t, data, files)
	})
}

func same(t *testing.T, data []byte, files map[string][]byte) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(data))
	seen := 0
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return // it reads modes, owners and times, and refuses some
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		got, err := io.ReadAll(r)
		if want, ok := files[h.Name]; err != nil || !ok || !bytes.Equal(got, want) || h.Typeflag != tar.TypeReg {
			t.Fatalf("%q: archive/tar reads %d bytes (%v), here there are %d (%v)", h.Name, len(got), err, len(want), ok)
		}
		seen++
	}
	if seen != len(files) {
		t.Fatalf("archive/tar reads %d files, here there are %d", seen, len(files))
	}
}

// rechecked corrects checksums, or fuzzing would hardly get past them.
func rechecked(data []byte) []byte {
	data = bytes.Clone(data)
	for off := 0; off+512 <= len(data); off += 512 {
		if h := data[off : off+512]; h[148] >= '0' && h[148] <= '7' && h[155] == ' ' {
			for _, field := range [][2]int{{100, 124}, {136, 148}, {329, 345}} {
				clear(h[field[0]:field[1]]) // not read here, and archive/tar refuses some
			}
			checksum(h)
		}
	}
	return data
}

func gzipSeed() []byte {
	return gzipped(new(testing.B), raw())
}
