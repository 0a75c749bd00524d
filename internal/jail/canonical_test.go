//go:build linux || darwin

package jail

import (
	"errors"
	"os"
	"path"
	"path/filepath"
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
		got, missing, err := Canonical(written)
		if err != nil || got != want.path || missing != want.missing {
			t.Errorf("Canonical(%q) = %q, %v, %v; want %q, %v", written, got, missing, err, want.path, want.missing)
		}
		if real, err := filepath.EvalSymlinks(written); err == nil && written == path.Clean(written) && real != got {
			t.Errorf("Canonical(%q) = %q, EvalSymlinks says %q", written, got, real)
		}
	}
	for _, bad := range []string{"", "a", "./a", "/a\x00", p.grant + "/loop", p.grant + "/loop/x", p.grant + "/file/x"} {
		if got, _, err := Canonical(bad); err == nil {
			t.Errorf("Canonical(%q) = %q", bad, got)
		}
	}
	if _, _, err := Canonical(p.grant + "/file/x"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}
