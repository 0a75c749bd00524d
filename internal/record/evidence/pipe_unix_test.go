//go:build unix

package evidence

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe in the place of a key is refused at once, and nobody waits for whoever
// might write to it.
func TestPipeIsNoKey(t *testing.T) {
	for _, name := range []string{KeyFile, PublicFile} {
		dir := t.TempDir()
		if _, err := MakeKey(dir, "default"); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := MakeKey(dir, "default")
		if err == nil {
			err = k.CheckPublic(dir)
		}
		if err == nil {
			t.Errorf("a pipe is taken for %s", name)
		}
	}
}
