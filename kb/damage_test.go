package kb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/kb/wire"
)

// A table that is cut or whose end is another is found before it is used: the
// database would end the process. The file is named.
func TestDamagedTable(t *testing.T) {
	home, _, tables := withTable(t)
	path := tables[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(back int) []byte {
		p := append([]byte(nil), whole...)
		p[len(p)-back] ^= 1
		return p
	}
	try := func(p []byte) error {
		if err := os.WriteFile(path, p, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Options{Home: home})
		if err != nil {
			return err
		}
		return s.Close()
	}
	changed := map[string][]byte{"empty": {}, "cut": whole[:len(whole)-1], "half": whole[:len(whole)/2], "in a block": nil}
	for _, back := range []int{1, 2, 3, 4, 5, 8, 12, 14, 16, 20} {
		changed["end "+string(rune('a'+back))] = flip(back)
	}
	changed["in a block"] = flip(len(whole) - strings.Index(string(whole), "text") - 1)
	for at := range 12 { // badger reads the last block before any sum, and its only one here begins so
		p := append([]byte(nil), whole...)
		for i := range 4 {
			p[at+i] ^= 0xff
		}
		changed["four bytes from "+strconv.Itoa(at)] = p
	}
	for name, p := range changed {
		if err := try(p); !errors.Is(err, wire.ErrDamaged) || !errors.Is(err, wire.ErrUnavailable) ||
			!strings.Contains(err.Error(),
				path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := try(whole); err != nil { // the control
		t.Error(err)
	}
}

// A process that dies while it writes a table leaves a part of one, of which the
// manifest knows nothing: it is cleared away and nothing is missing.
func TestTableHalfWritten(t *testing.T) {
	home, dir, tables := withTable(t)
	half := filepath.Join(dir, "000099.sst")
	if err := os.WriteFile(half, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if value, err := s.View(Origin{}).Get(t.Context(), "notes", "a"); err != nil || string(value.Bytes) != "text" {
		t.Errorf("%q, %v", value.Bytes, err)
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Error(half, "is still there:", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(tables[0]); err != nil { // the control: one that is named
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Home: home}); !errors.Is(err, wire.ErrDamaged) || !strings.Contains(err.Error(),
		tables[0]) {
		t.Error(err)
	}
}

// Without its manifest no table is the database's, and badger would clear all of
// them away: that is damage, and nothing is touched.
func TestManifestIsGone(t *testing.T) {
	home, dir, tables := withTable(t)
	manifest := filepath.Join(dir, "MANIFEST")
	if err := os.Rename(manifest, manifest+".aside"); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), Options{Home: home}); !errors.Is(err, wire.ErrDamaged) || !strings.Contains(err.Error(),
		manifest) {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := os.Stat(tables[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(manifest+".aside", manifest); err != nil { // the control
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if value, err := s.View(Origin{}).Get(t.Context(), "notes", "a"); err != nil || string(value.Bytes) != "text" {
		t.Errorf("%q, %v", value.Bytes, err)
	}
}

// withTable is a home whose store holds one value, in a table, and is closed.
func withTable(t *testing.T) (home, dir string, tables []string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "home")
	s, err := Open(t.Context(), Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.View(Origin{}).Put(t.Context(), "notes", "a", []byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if tables, err = filepath.Glob(filepath.Join(s.layout.kb, "*.sst")); err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	return home, s.layout.kb, tables
}

// What would be waited for without an end is refused by its name.
func TestADatabaseOfOtherThanFilesIsRefused(t *testing.T) {
	for _, name := range []string{"MANIFEST", "KEYREGISTRY", "000099.sst", "00099.mem", "000099.vlog"} {
		home := filepath.Join(t.TempDir(), "home")
		s, err := Open(t.Context(), Options{Home: home})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, "kb", name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), Options{Home: home})
		if !errors.Is(err, wire.ErrUnavailable) || !errors.Is(err, wire.ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
