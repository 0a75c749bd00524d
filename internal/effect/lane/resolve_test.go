package lane

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

//rlp:holds C18
func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"/real/bin", "/other"} {
		if err := os.MkdirAll(dir+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/real/bin/box", nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"/bin": "real/bin", "/real/bin/ls": "box", "/real/bin/sh": dir + "/bin/ls", "/up": "real/../bin",
		"/loop": "loop", "/gone": "nowhere", "/other/x": "../bin/sh", "/dots": ".//real/./bin",
	} {
		if err := os.Symlink(target, dir+link); err != nil {
			t.Fatal(err)
		}
	}
	box := dir + "/real/bin/box"
	for _, c := range []struct {
		path, named, file string
		via               []string
	}{
		{"/real/bin/box", "/real/bin/box", box, nil},
		{"/bin/box", "/real/bin/box", box, []string{"/bin"}},
		{"/bin/ls", "/real/bin/ls", box, []string{"/bin", "/real/bin/ls"}},
		{"/bin/sh", "/real/bin/sh", box, []string{"/bin", "/real/bin/sh", "/bin", "/real/bin/ls"}},
		{"/up/box", "/real/bin/box", box, []string{"/up", "/bin"}},
		{"/dots/box", "/real/bin/box", box, []string{"/dots"}},
		{"/other/x", "/other/x", box, []string{"/other/x", "/bin", "/real/bin/sh", "/bin", "/real/bin/ls"}},
	} {
		f, err := Resolve(dir + c.path)
		for i := range c.via {
			c.via[i] = dir + c.via[i]
		}
		if err != nil || f.Named != dir+c.named || f.File != c.file || !slices.Equal(f.Via, c.via) {
			t.Errorf("%s: %+v, %v", c.path, f, err)
		}
		if real, err := filepath.EvalSymlinks(dir + c.path); err != nil || real != f.File {
			t.Errorf("%s: the system says %s, %v", c.path, real, err)
		}
	}
	for _, path := range []string{"/missing", "/gone", "/loop", "/missing/x", "/real/bin/box/x"} {
		if f, err := Resolve(dir + path); err == nil && path != "/real/bin/box/x" {
			t.Errorf("%s: %+v", path, f)
		} else if path == "/gone" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"", "x", "/a/../b", "/a//b", "/a/", "/a\x00"} {
		if f, err := Resolve(path); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %+v, %v", path, f, err)
		}
	}
}

// What rlp has open, devices and its home are no programs, and no path into
// them is looked at, whoever's link leads there.
//
//rlp:holds C18
func TestFoldersWithoutPrograms(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"/home/bin", "/homely"} {
		if err := os.MkdirAll(dir+d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"/home/bin/x": "", "/homely/x": "", "/script": "#!" + dir +
		"/home/bin/x\n"} {
		if err := os.WriteFile(dir+name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"/self": "/proc/self", "/h": "home", "/out": "homely/../home/bin/x",
		"/home/away": "../homely/x",
	} {
		if err := os.Symlink(target, dir+link); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"/proc/self/cwd", "/proc/self/exe", "/proc", "/proc/none", "/sys/kernel", "/dev/fd/0", "/dev/null", dir + "/self/exe",
		dir + "/self",
		dir + "/home/bin/x", dir + "/home/none", dir + "/h/bin/x", dir + "/out", dir + "/home/away", dir + "/home",
		dir + "/script",
	} {
		f, err := Find(path, dir+"/home")
		if !errors.Is(err, ErrClosed) && (path != dir+"/script" || err == nil) {
			t.Errorf("%s: %+v, %v", path, f, err)
		}
		for _, at := range []string{f.Named, f.File} {
			if sandbox.IsIn(at, []string{"/proc/self", dir + "/home/bin"}) {
				t.Errorf("%s: it was looked at: %+v", path, f)
			}
		}
	}
	for _, path := range []string{dir + "/homely/x", dir + "/home/bin/x"} { // controls: a like name, and not closed
		if f, err := Find(path, dir+"/hom"); err != nil || f.File != path {
			t.Errorf("%s: %+v, %v", path, f, err)
		}
	}
}

//rlp:holds K52
func TestLanesThatAreNotHere(t *testing.T) {
	for _, name := range []string{"ns", "bwrap", "", "Native", "docker"} {
		var e *UnsupportedError
		if l, err := Open(t.Context(), name, Config{}); !errors.As(err, &e) || l != nil || e.Lane != name || e.Error() == "" {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	for level, word := range map[Level]string{
		Unsupported: "unsupported", BestEffort: "best_effort",
		Enforced: "enforced",
	} {
		if level.String() != word {
			t.Errorf("%d: %s", level, level)
		}
	}
}

// Who may write one of these may choose what a program finds. Nothing among it is
// a program, or what answers.
func TestLeads(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"data/sub", "home", "tools/sub", "linked", "pipes", "many", "circle"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"data/sub/text": 0o600, "tools/sub/run": 0o601, "tools/text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxLeads {
		if err := os.WriteFile(filepath.Join(dir, "many", strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipes/one"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"one": "two", "two": dir + "/data/sub", "inside": "home", "none": "nowhere", "linked/a": "../tools/sub/run",
		"circle/a": "../circle", "self": "self",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for written, want := range map[string][]string{
		"/one/text": {"/one/text", "/data/sub/text", "/one", "/two"},
		"/one":      {"/one", "/data/sub", "/one", "/two", "/data/sub/text", "/data/sub/text"},
		"/data":     {"/data", "/data", "/data/sub", "/data/sub", "/data/sub/text", "/data/sub/text"},
	} {
		got, err := Leads(dir+written, dir+"/home")
		for i := range want {
			want[i] = dir + want[i]
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", written, got, err)
		}
	}
	for written, want := range map[string]error{
		"/tools": ErrNotData, "/tools/sub/run": ErrNotData, "/linked": ErrNotData, "/linked/a": ErrNotData,
		"/pipes": ErrNotData, "/pipes/one": ErrNotData, "/many": ErrNotData,
		"/no/where": fs.ErrNotExist, "/none": fs.ErrNotExist,
	} {
		if got, err := Leads(dir+written, dir+"/home"); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", written, got, err)
		}
	}
	for _, written := range []string{"/circle", "/self", "/tools/text/x"} {
		if got, err := Leads(dir+written, dir+"/home"); err == nil {
			t.Errorf("%s: %v", written, got)
		}
	}
	if got, err := Leads(dir + "/tools/text"); err != nil || len(got) != 2 {
		t.Errorf("control: %v, %v", got, err)
	}
	if !IsSystem("/usr/share/x") || !IsSystem("/bin") || IsSystem("/") || IsSystem("/etc") || IsSystem("/usr2") ||
		IsSystem("/tmp/x") {
		t.Error("what every lane shows")
	}
	for _, closed := range []string{dir + "/inside", dir + "/inside/x", dir + "/home/x", "/proc/self/fd/0", "/dev/stdin"} {
		if got, err := Leads(closed, dir+"/home"); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, %v", closed, got, err)
		}
	}
	if got, err := Leads("/dev/null"); err != nil || len(got) != 0 {
		t.Errorf("control: %v, %v", got, err)
	}
}
