package wasi

import (
	"math/rand/v2"
	"path"
	"strings"
	"testing"
)

func TestPathsAreJoinedAndCleaned(t *testing.T) {
	for _, c := range []struct {
		base, text, want string
		mustDir          bool
		errno            Errno
	}{
		{base: "/", text: "a", want: "/a"},
		{base: "/", text: ".", want: "/", mustDir: true},
		{base: "/", text: "a/b", want: "/a/b"},
		{base: "/", text: "a//b", want: "/a/b"},
		{base: "/", text: "./a/./b", want: "/a/b"},
		{base: "/", text: "a/", want: "/a", mustDir: true},
		{base: "/", text: "a/.", want: "/a", mustDir: true},
		{base: "/", text: "a/b/..", want: "/a", mustDir: true},
		{base: "/", text: "a/../b", want: "/b"},
		{base: "/", text: "a/..", want: "/", mustDir: true},
		{base: "/", text: "..", errno: EPERM},
		{base: "/", text: "a/../..", errno: EPERM},
		{base: "/", text: "../a", errno: EPERM},
		{base: "/d/e", text: "a", want: "/d/e/a"},
		{base: "/d/e", text: "..", want: "/d", mustDir: true},
		{base: "/d/e", text: "../../a", want: "/a"},
		{base: "/d/e", text: "../../../a", errno: EPERM},
		{base: "/d/e", text: "/a", want: "/a"},
		{base: "/d/e", text: "/", want: "/", mustDir: true},
		{base: "/d/e", text: "/..", errno: EPERM},
		{base: "/", text: "...", want: "/..."},
		{base: "/d/e", text: "a.", want: "/d/e/a."},
		{base: "/d/e", text: ".a/b", want: "/d/e/.a/b"},
		{base: "/", text: "..a/b..", want: "/..a/b.."},
		{base: "/", text: "größe/日本", want: "/größe/日本"},
		{base: "/", text: "", errno: ENOENT},
		{base: "/", text: "a\x00", errno: EINVAL},
		{base: "/", text: "\x00", errno: EINVAL},
		{base: "/", text: "a\xff", errno: EILSEQ},
		{base: "/", text: "\xc0\xaf", errno: EILSEQ},                      // an overlong slash
		{base: "/", text: "\xed\xa0\x80", errno: EILSEQ},                  // a surrogate
		{base: "/", text: strings.Repeat("a", 4096), errno: ENAMETOOLONG}, // as written
		{base: "/d/e", text: strings.Repeat("a/", 2047), errno: ENAMETOOLONG, want: ""},
		{base: "/", text: strings.Repeat("a", 4094), want: "/" + strings.Repeat("a", 4094)},
		{base: "/", text: strings.Repeat("a", 4095), errno: ENAMETOOLONG},
	} {
		var buf []byte
		errno := checkText([]byte(c.text))
		var p place
		if errno == Success {
			p, errno = joinClean(&buf, []byte(c.base), []byte(c.text))
		}
		if errno != c.errno || p.path != c.want || p.mustDir != c.mustDir {
			t.Errorf("%.40q under %q: %.40q mustDir=%t %v", c.text, c.base, p.path, p.mustDir, errno)
		}
	}
}

// The law: what comes out is what path.Join says, unless that would have
// climbed above "/"; and it is clean.
func TestJoinAgainstPathJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "..", ".", "", "...", "x y", "é"}
	var buf []byte
	for range 20000 {
		base := path.Join("/", parts[r.IntN(2)], parts[r.IntN(2)])
		if r.IntN(3) == 0 {
			base = "/"
		}
		var list []string
		for range 1 + r.IntN(7) {
			list = append(list, parts[r.IntN(len(parts))])
		}
		text := strings.Join(list, "/")
		if text == "" {
			continue
		}
		full := base + "/" + text
		if strings.HasPrefix(text, "/") {
			full = text
		}
		p, errno := joinClean(&buf, []byte(base), []byte(text))
		if climbs(full) {
			if errno != EPERM {
				t.Fatalf("%q under %q: %q, %v; want EPERM", text, base, p.path, errno)
			}
			continue
		}
		if want := path.Clean(full); errno != Success || p.path != want {
			t.Fatalf("%q under %q: %q, %v; want %q", text, base, p.path, errno, want)
		}
	}
}

// climbs reports whether p goes above "/" on its way.
func climbs(p string) bool {
	depth := 0
	for c := range strings.SplitSeq(p, "/") {
		switch c {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return true
		}
	}
	return false
}

func FuzzJoin(f *testing.F) {
	f.Add("/", "a/../b")
	f.Add("/d/e", "/../x//")
	f.Fuzz(func(t *testing.T, base, text string) {
		base = path.Clean("/" + base)
		if len(base) > pathMax || checkText([]byte(text)) != Success {
			return
		}
		var buf []byte
		p, errno := joinClean(&buf, []byte(base), []byte(text))
		if errno != Success {
			return
		}
		if !strings.HasPrefix(p.path, "/") || path.Clean(p.path) != p.path || len(p.path) > pathMax {
			t.Errorf("%q under %q is %q", text, base, p.path)
		}
	})
}
