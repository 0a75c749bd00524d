//go:build linux || darwin

package jail

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestCanonical: links resolved, names cleaned, what is missing kept.
//
//rlp:holds K20
func TestCanonical(t *testing.T) {
	p := newPlace(t)
	must(t, os.MkdirAll(p.grant+"/a/b", 0o755))
	for name, to := range map[string]string{
		"/rel": "a/b", "/abs": p.grant + "/a", "/two": "abs/b", "/up": "a/b/../../../out", "/loop": "loop",
		"/gone": "a/none/x", "/back": "rel/..", "/goneback": "none/../a",
	} {
		must(t, os.Symlink(to, p.grant+name))
	}
	put(t, p.grant+"/file", "")
	for written, want := range map[string]struct {
		path    string
		missing bool
	}{
		"/":                    {"/", false},
		"//":                   {"/", false},
		"/a\x01/none":          {"/a\x01/none", true},
		p.grant + "/a//b/./":   {p.grant + "/a/b", false},
		p.grant + "/rel":       {p.grant + "/a/b", false},
		p.grant + "/two/":      {p.grant + "/a/b", false},
		p.grant + "/abs/b/new": {p.grant + "/a/b/new", true},
		p.grant + "/up":        {p.out, false},
		p.grant + "/gone/y":    {p.grant + "/a/none/x/y", true},
		p.grant + "/rel/..":    {p.grant, false},        // as it is written
		p.grant + "/back":      {p.grant + "/a", false}, // as the link means it
		p.grant + "/file":      {p.grant + "/file", false},
		p.grant + "/x/y/z":     {p.grant + "/x/y/z", true},
	} {
		got, err := Canonical(written)
		if err != nil || got.Path != want.path || got.Missing != want.missing {
			t.Errorf("Canonical(%q) = %+v, %v; want %q, %v", written, got, err, want.path, want.missing)
		}
		if real, err := filepath.EvalSymlinks(written); err == nil && written == path.Clean(written) && real != got.Path {
			t.Errorf("Canonical(%q) = %q, EvalSymlinks says %q", written, got.Path, real)
		}
	}
	for _, bad := range []string{"", "a", "./a", "/a\x00", p.grant + "/loop", p.grant + "/loop/x", p.grant + "/file/x"} {
		if got, err := Canonical(bad); err == nil {
			t.Errorf("Canonical(%q) = %+v", bad, got)
		}
	}
	if _, err := Canonical("/a\x00"); !errors.Is(err, ErrPath) {
		t.Errorf("with a NUL: %v", err)
	}
	for i := range maxLinks + 1 {
		must(t, os.Symlink("./"+strconv.Itoa(i), p.grant+"/"+strconv.Itoa(i+1)))
	}
	if r, err := Canonical(p.grant + "/" + strconv.Itoa(maxLinks)); err != nil || r.Path != p.grant+"/0" {
		t.Errorf("as many links as may be: %+v, %v", r, err)
	}
	if r, err := Canonical(p.grant + "/" + strconv.Itoa(maxLinks+1)); err == nil {
		t.Errorf("one link more: %+v", r)
	}
	if _, err := Canonical(p.grant + "/file/x"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}

// Of the links on the way those of the root folder are nobody's but root's.
func TestTheLinksOnTheWay(t *testing.T) {
	p := newPlace(t)
	must(t, os.MkdirAll(p.grant+"/a/b", 0o755))
	must(t, os.Symlink("a", p.grant+"/one"))
	must(t, os.Symlink("../one/b", p.grant+"/a/two"))
	for written, want := range map[string][]string{
		p.grant + "/a/b":     nil,
		p.grant + "/one":     {p.grant + "/one"},
		p.grant + "/one/b/c": {p.grant + "/one"},
		p.grant + "/one/two": {p.grant + "/one", p.grant + "/a/two", p.grant + "/one"},
		p.grant + "/none/x":  nil,
	} {
		r, err := Canonical(written)
		if err != nil || !slices.Equal(r.Links, want) {
			t.Errorf("Canonical(%q): links %q, %v; want %q", written, r.Links, err, want)
		}
		if got := r.Redirect(); (got != "") != (want != nil) || want != nil && got != want[0] {
			t.Errorf("Canonical(%q): redirected by %q", written, got)
		}
	}
	for links, want := range map[string]string{"": "", "/bin": "", "/bin /var/run /x": "/var/run", "/a/b": "/a/b"} {
		if got := (&Resolved{Links: strings.Fields(links)}).Redirect(); got != want {
			t.Errorf("%q: redirected by %q, want %q", links, got, want)
		}
	}
}
