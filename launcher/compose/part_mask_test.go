package compose

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Whoever asks first makes the key, and all who ask at once have the same.
func TestMaskKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kb", "mask.key")
	var group sync.WaitGroup
	keys := make([][]byte, 16)
	for i := range keys {
		group.Go(func() {
			key, err := maskKey(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	group.Wait()
	for _, k := range keys {
		if !bytes.Equal(k, keys[0]) || len(k) != 32 {
			t.Fatalf("%x and %x", k, keys[0])
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// A key that is not whole, not a file, or that others may write is never
// replaced and never used: nothing is masked by it, and so nothing is shown.
//
//rlp:holds D9
func TestDamagedMaskKeyIsRefused(t *testing.T) {
	good := strings.Repeat("0f", 32) + "\n"
	for name, spoil := range map[string]func(path string) error{
		"whole (control)": func(p string) error { return os.WriteFile(p, []byte(good), 0o600) },
		"empty":           func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"short":           func(p string) error { return os.WriteFile(p, []byte(good[2:]), 0o600) },
		"no hex":          func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("x", 64)), 0o600) },
		"a folder":        func(p string) error { return os.Mkdir(p, 0o700) },
		"a dangling link": func(p string) error { return os.Symlink(p+"nowhere", p) },
		"writable by all": func(p string) error {
			if err := os.WriteFile(p, []byte(good), 0o600); err != nil {
				return err
			}
			return os.Chmod(p, 0o666)
		},
		"writable by a group": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte(good), 0o600), os.Chmod(p, 0o660))
		},
	} {
		path := filepath.Join(t.TempDir(), "mask.key")
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(path)
		m := &Masks{path: path}
		masked, err := m.Mask("notes", []byte("ada@example.org"))
		if isGood := name == "whole (control)"; (err == nil) != isGood || !isGood &&
			(masked != nil || m.Index("notes", []byte("ada@example.org")) != nil) {
			t.Errorf("%s: %q %v", name, masked, err)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s: the file is another", name)
		}
	}
}
