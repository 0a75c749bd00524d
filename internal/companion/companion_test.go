package companion

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed is a file of two programs.
func packed(t *testing.T, first, second string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "rlp"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := Pack(f, strings.NewReader(first), strings.NewReader(second)); err != nil {
		t.Fatal(err)
	}
	return f
}

func find(t *testing.T, f *os.File) *Companion {
	t.Helper()
	c, err := Find(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExtractedOnceAndWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	c := find(t, packed(t, "small", strings.Repeat("whole ", 1000)))
	path, err := c.Extract(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != strings.Repeat("whole ", 1000) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	before, err := os.Stat(path)
	if err != nil || before.Mode() != programMode {
		t.Fatalf("%v, %v", before, err)
	}
	again, err := c.Extract(dir)
	if err != nil || again != path {
		t.Fatalf("%s, %v", again, err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was written again: %v", err)
	}
	next, err := find(t, packed(t, "small", "another")).Extract(dir)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != filepath.Base(next) {
		t.Errorf("left there: %v, %v", left, err)
	}
}

// What stands in the companion's place and is not it is not run.
func TestNothingElseIsTakenForIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	c := find(t, packed(t, "small", "whole"))
	path, err := c.Extract(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func() error{
		"link":  func() error { return os.Symlink("/bin/true", path) },
		"mode":  func() error { return os.WriteFile(path, []byte("whole"), 0o777) },
		"short": func() error { return errors.Join(os.WriteFile(path, []byte("w"), 0o600), os.Chmod(path, programMode)) },
	} {
		if err := errors.Join(os.Remove(path), plant()); err != nil {
			t.Fatal(name, err)
		}
		if _, err := c.Extract(dir); err != nil {
			t.Fatal(name, err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != programMode || info.Size() != 5 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// Nothing is put where somebody else could change it, or through a link.
func TestOnlyIntoAFolderOfItsOwn(t *testing.T) {
	c := find(t, packed(t, "small", "whole"))
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Symlink(dir, link), os.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Extract(link); err == nil {
		t.Error("through a link")
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Extract(dir); err == nil {
		t.Error("where a group may write")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Extract(dir); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestDamageIsRefused(t *testing.T) {
	f := packed(t, "small", "whole")
	if _, err := f.WriteAt([]byte("W"), 5); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "bin")
	if _, err := find(t, f).Extract(dir); !errors.Is(err, errDamaged) {
		t.Errorf("a damaged program: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left there: %v, %v", left, err)
	}
}

func TestNone(t *testing.T) {
	for _, text := range []string{"", "a program", strings.Repeat("x", 1000), magic + strings.Repeat("\xff", 48)} {
		path := filepath.Join(t.TempDir(), "rlp")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Find(f); !errors.Is(err, ErrNone) {
			t.Errorf("%.20q: %v", text, err)
		}
		f.Close()
	}
}

// Whatever the two programs are, the second comes out as it went in.
func FuzzPack(f *testing.F) {
	f.Add([]byte("a"), []byte("b"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		file := packed(t, string(first), string(second))
		var out bytes.Buffer
		if err := find(t, file).copyTo(&out); err != nil || !bytes.Equal(out.Bytes(), second) {
			t.Errorf("%q, %v", out.Bytes(), err)
		}
	})
}
