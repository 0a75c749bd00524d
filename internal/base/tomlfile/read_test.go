//go:build unix

package tomlfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runloop.dev/rlp/internal/base/owner/ownertest"
)

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

//rlp:holds R7
func TestReadFileRefuses(t *testing.T) {
	dir := folder(t)
	join := func(s string) string { return filepath.Join(dir, s) }
	good := write(t, join("good"), "a = 1\n", 0o644)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink(good, join("link")))
	must(os.Symlink(join("gone"), join("dangling")))
	must(os.Symlink(join("loop"), join("loop")))
	must(os.Symlink(join("gone"), join("danglingdir")))
	must(os.Mkdir(join("dir"), 0o755))
	must(syscall.Mkfifo(join("fifo"), 0o600))
	must(os.Mkdir(join("open"), 0o755))
	write(t, join("open/x"), "a = 1\n", 0o644)
	must(os.Chmod(join("open"), 0o777))
	for name, mode := range map[string]os.FileMode{"shared": 0o775, "lent": 0o757} {
		must(os.Mkdir(join(name), 0o755))
		write(t, join(name+"/x"), "a = 1\n", 0o644)
		must(ownertest.Share(join(name), mode))
	}
	write(t, join("group"), "a = 1\n", 0o644)
	must(ownertest.Share(join("group"), 0o664))
	write(t, join("world"), "a = 1\n", 0o646)
	write(t, join("large"), strings.Repeat("#", DefaultMax+1), 0o600)

	for _, c := range []struct{ name, msg string }{
		{"link", "symbolic link"},
		{"dangling", "symbolic link"},
		{"loop", "symbolic link"},
		{"danglingdir/x", ""},
		{"good/x", "not a directory"},
		{"gone/x", ""},
		{"dir", "a folder"},
		{"dir/..", "folder"},
		{"fifo", "a pipe"},
		{"open/x", "others may write"},
		{"open/absent", "others may write"},
		{"shared/x", "the group "}, // the group alone
		{"shared/absent", "may write to (mode 0775) (chmod g-w "},
		{"lent/x", "others may write to (mode 0757)"},
		{"group", "written by the group "},
		{"group", "(mode 0664) (chmod g-w "},
		{"world", "written by others"},
		{"large", "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := ReadFile(join(c.name), 0)
			if err == nil || data != nil {
				t.Fatalf("read %d bytes, error %v", len(data), err)
			}
			if errors.Is(err, fs.ErrNotExist) {
				t.Errorf("taken for a file that is not there: %v", err)
			}
			if !strings.Contains(err.Error(), c.msg) {
				t.Errorf("%v does not say %q", err, c.msg)
			}
		})
	}
	// Controls: the names that ordinary reading takes for absent or follows.
	for _, name := range []string{"dangling", "danglingdir/x", "gone/x"} {
		if _, err := os.ReadFile(join(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("control: %s reads as %v", name, err)
		}
	}
	for _, name := range []string{"link", "open/x", "shared/x", "lent/x", "group", "world", "large"} {
		if _, err := os.ReadFile(join(name)); err != nil {
			t.Errorf("control: %v", err)
		}
	}
}

// What is a key, or says who is trusted, no group may write, whoever is in it.
//
//rlp:holds D9
func TestReadOfNoGroup(t *testing.T) {
	path := write(t, filepath.Join(folder(t), "key"), "a = 1\n", 0o644)
	if _, err := ReadOfNoGroup(path, 0); err != nil {
		t.Errorf("control: %v", err)
	}
	write(t, path, "a = 1\n", 0o664)
	if _, err := ReadOfNoGroup(path, 0); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "chmod g-w "+path) {
		t.Errorf("a group may write it: %v", err)
	}
}

//rlp:holds R7
func TestReadFileReads(t *testing.T) {
	dir := folder(t)
	good := write(t, filepath.Join(dir, "good"), "a = 1\n", 0o600)
	if data, err := ReadFile(good, 0); err != nil || string(data) != "a = 1\n" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := ReadFile(write(t, filepath.Join(dir, "empty"), "", 0o444), 0); err != nil || len(data) != 0 {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadFile(good, 5); !errors.Is(err, ErrFile) {
		t.Errorf("over the bound of the caller: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "absent"), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that is not there is told so: %v", err)
	}
	// A folder that is reached through a link is the operator's own doing.
	if err := os.Symlink(dir, filepath.Join(dir, "self")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(filepath.Join(dir, "self", "good"), 0); err != nil {
		t.Error(err)
	}
	sticky := filepath.Join(dir, "sticky")
	if err := os.Mkdir(sticky, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(sticky, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(write(t, filepath.Join(sticky, "x"), "", 0o600), 0); err != nil {
		t.Errorf("a shared folder with a sticky bit: %v", err)
	}
}

// A file of another user is refused, and one without leave to read is trouble,
// never absence. Both need a second user: as root a file is given away, else
// one's own is made unreadable.
//
//rlp:holds R7
func TestReadFileOwner(t *testing.T) {
	dir := folder(t)
	path := write(t, filepath.Join(dir, "x"), "a = 1\n", 0o644)
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	} else if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := ReadFile(path, 0)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	if os.Geteuid() == 0 && !strings.Contains(err.Error(), "user 12345") {
		t.Error(err)
	}
}
