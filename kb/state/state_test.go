package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// placeOfTest is a place with a database of two files.
func placeOfTest(t *testing.T) Place {
	t.Helper()
	dir := t.TempDir()
	p := Of(dir, dir, "default")
	for _, d := range []string{p.Dir, p.Run} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(p.Dir, "MANIFEST"), "m")
	write(t, filepath.Join(p.Dir, "000001.sst"), "one")
	return p
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, p Place) Known {
	t.Helper()
	k, err := p.Look()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// What was noted holds until a file of the store is another one, whatever changed,
// and no longer.
func TestANoteHoldsUntilAFileChanges(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	table := func(p Place) string { return filepath.Join(p.Dir, "000001.sst") }
	for name, c := range map[string]struct {
		do      func(p Place) error
		changed bool
	}{
		"nothing":         {func(Place) error { return nil }, false},
		"another file":    {func(p Place) error { return os.WriteFile(filepath.Join(p.Dir, "LOCK"), nil, 0o600) }, false},
		"a byte":          {func(p Place) error { return os.WriteFile(table(p), []byte("two"), 0o600) }, true},
		"a byte, in time": {func(p Place) error { return flipInTime(table(p)) }, true},
		"it is shorter":   {func(p Place) error { return os.Truncate(table(p), 1) }, true},
		"it is gone":      {func(p Place) error { return os.Remove(table(p)) }, true},
		"one more":        {func(p Place) error { return os.WriteFile(filepath.Join(p.Dir, "00001.mem"), nil, 0o600) }, true},
		"all are gone":    {func(p Place) error { return os.RemoveAll(p.Dir) }, true},
		"files are gone":  {func(p Place) error { return errors.Join(os.RemoveAll(p.Dir), os.Mkdir(p.Dir, 0o700)) }, true},
		"no note":         {func(p Place) error { return os.Remove(p.note) }, true},
		"half a note":     {func(p Place) error { return os.Truncate(p.note, 10) }, true},
	} {
		for _, failed := range []string{"", "it is broken"} {
			p := placeOfTest(t)
			if k := look(t, p); !k.Changed {
				t.Fatalf("nobody noted anything: %+v", k)
			}
			if err := p.Note(failed, at); err != nil {
				t.Fatal(err)
			}
			if err := c.do(p); err != nil {
				t.Fatal(err)
			}
			k := look(t, p)
			if k.Gone != strings.HasSuffix(name, "are gone") {
				t.Errorf("%s: %+v", name, k)
			}
			if k.Changed != c.changed || !c.changed && (k.Failed != failed || !k.At.Equal(at)) {
				t.Errorf("%s: %+v", name, k)
			}
		}
	}
}

// flipInTime changes a byte and puts the time of the change back.
func flipInTime(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte("onf"), 0o600); err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}

// A database without its manifest cannot be opened, whoever has it open now.
func TestADatabaseWithoutItsManifest(t *testing.T) {
	p := placeOfTest(t)
	if k := look(t, p); k.Failed != "" {
		t.Errorf("control: %+v", k)
	}
	if err := os.Remove(filepath.Join(p.Dir, "MANIFEST")); err != nil {
		t.Fatal(err)
	}
	if k := look(t, p); !k.Changed || !strings.Contains(k.Failed, "MANIFEST is gone") {
		t.Errorf("%+v", k)
	}
}

// Where there is no store and no note nothing is wrong: it was not made yet.
func TestNoStoreIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	p := Of(dir, filepath.Join(dir, "tenants", "acme"), "acme")
	if k := look(t, p); k.Changed || k.Failed != "" {
		t.Errorf("%+v", k)
	}
	if !strings.HasPrefix(filepath.Base(p.Lock), "kb-") || Of(dir, dir, "default").Lock == p.Lock {
		t.Errorf("%+v", p)
	}
}

// A store is owned while somebody holds its lock.
func TestOwned(t *testing.T) {
	p := placeOfTest(t)
	owned := func(want bool) {
		t.Helper()
		if got, err := p.Owned(); err != nil || got != want {
			t.Errorf("%v, %v", got, err)
		}
	}
	owned(false)
	f, err := os.Create(p.Lock)
	if err != nil {
		t.Fatal(err)
	}
	owned(false)
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	owned(true)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	owned(false)
}
