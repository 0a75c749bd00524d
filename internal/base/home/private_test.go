//go:build unix

package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What somebody else could read or put there is not read, and nobody is waited
// for; no group may write it, the owner's private one included.
//
//rlp:holds D9
func TestReadPrivate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	fresh := func(mode os.FileMode) {
		t.Helper()
		_ = os.RemoveAll(path)
		if err := os.WriteFile(path, []byte("value"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []os.FileMode{0o600, 0o400} {
		fresh(mode)
		if data, err := ReadPrivate(path, 5); err != nil || string(data) != "value" {
			t.Errorf("control: mode %o: %q, %v", mode, data, err)
		}
	}
	refuse := func(what, why string) {
		t.Helper()
		var mode *ModeError
		if data, err := ReadPrivate(path, 5); data != nil || !errors.As(err, &mode) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %q, %v", what, data, err)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o700, 0o644} {
		fresh(mode)
		refuse(mode.String(), "chmod 600")
	}
	fresh(0o600)
	if err := os.WriteFile(path, []byte("valued"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuse("a longer one", "longer than 5 bytes")
	fresh(0o600)
	if err := os.Rename(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+"2", path); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "value" {
		t.Fatalf("control: the link leads nowhere: %v", err)
	}
	refuse("a link", "symbolic link")
	_ = os.Remove(path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); refuse("a pipe", "regular") }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("waits for whoever writes into a pipe")
	}
}

// A file takes the place of the earlier one, private.
func TestWritePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"one", "two"} {
		if err := WritePrivate(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if data, err := ReadPrivate(path, 10); err != nil || string(data) != text {
			t.Errorf("%q, %v", data, err)
		}
	}
}

// What took the place of a file stands beside it, under a name that is hidden and
// not read; the same text is written once.
func TestReplaceSavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "writer.toml")
	for i, step := range []struct {
		was, text string
		previous  bool
	}{{"", "a", false}, {"a", "a", false}, {"a", "b", true}} {
		var was []byte
		if step.was != "" {
			was = []byte(step.was)
		}
		previous, err := Replace(path, was, []byte(step.text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ReadPrivate(path, 10); string(got) != step.text || err != nil {
			t.Errorf("%d: %q (%v), want %q", i, got, err, step.text)
		}
		if !step.previous {
			if previous != "" {
				t.Errorf("%d: saved %s, and nothing went", i, previous)
			}
			continue
		}
		got, err := ReadPrivate(previous, 10)
		if string(got) != step.was || err != nil || filepath.Base(previous)[0] != '.' ||
			filepath.Ext(previous) != ".previous" {
			t.Errorf("%d: %s holds %q (%v), want %q", i, previous, got, err, step.was)
		}
	}
}

// Who holds a folder keeps others out until it is free.
func TestHoldDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "overrides")
	free, err := HoldDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	try := func() error { return syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	if err := try(); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("another holds it as well: %v", err)
	}
	free()
	if err := try(); err != nil {
		t.Errorf("nobody holds it: %v", err)
	}
}
