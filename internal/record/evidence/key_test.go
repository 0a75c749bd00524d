package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Whoever comes first makes the key, and all others have that one.
func TestOneKey(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	lines := make([]string, 8)
	for i := range lines {
		wg.Go(func() {
			k, err := MakeKey(dir, "default")
			if err != nil {
				t.Error(err)
				return
			}
			lines[i] = k.Public().String()
		})
	}
	wg.Wait()
	for _, l := range lines {
		if l != lines[0] || !strings.HasPrefix(l, "runloop.dev/rlp/") || !strings.Contains(l, "/default+") {
			t.Fatalf("keys: %q", lines)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, PublicFile))
	if err != nil || string(text) != lines[0]+"\n" {
		t.Errorf("audit.pub: %q, %v", text, err)
	}
	if p, err := ParsePublic(string(text)); err != nil || p.String() != lines[0] {
		t.Errorf("ParsePublic: %v", err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

// A key that others can read, that is a link, of another tenant or no key at all
// signs nothing.
func TestKeyRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, KeyFile)
	if _, err := MakeKey(dir, "default"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(dir, "default"); err != nil {
		t.Fatalf("control: %v", err)
	}
	if _, err := ReadKey(dir, "acme"); err == nil || !strings.Contains(err.Error(), "tenant acme") {
		t.Errorf("the key of another tenant: %v", err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(dir, "default"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
	for name, text := range map[string]string{
		"empty": "", "no key": "hello", "cut": string(good[:len(good)-9]), "two": string(good) + string(good),
		"large": strings.Repeat("x", maxKey+1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := MakeKey(dir, "default"); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeKey(dir, "default"); err == nil {
		t.Error("a link is taken")
	}
}

// A public half that somebody put in the place of the real one is named.
func TestPublicReplaced(t *testing.T) {
	dir := t.TempDir()
	k, err := MakeKey(dir, "default")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.CheckPublic(dir); err != nil {
		t.Errorf("control: %v", err)
	}
	other, err := MakeKey(t.TempDir(), "default")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, PublicFile), []byte(other.Public().String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.CheckPublic(dir); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("replaced: %v", err)
	}
	if _, err := MakeKey(dir, "default"); err != nil {
		t.Errorf("a public half stops the log: %v", err)
	}
}

// A key that is missing is not replaced by another, by which the log would be
// another one for ever.
func TestMissingKey(t *testing.T) {
	dir := t.TempDir()
	k, err := MakeKey(dir, "default")
	if err != nil {
		t.Fatal(err)
	}
	key, away := filepath.Join(dir, KeyFile), filepath.Join(dir, "away")
	if err := os.Rename(key, away); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeKey(dir, "default"); err == nil || !strings.Contains(err.Error(), "bring the key back") {
		t.Errorf("another one is made: %v", err)
	}
	if err := os.Rename(away, key); err != nil {
		t.Fatal(err)
	}
	if again, err := MakeKey(dir, "default"); err != nil || again.Public().String() != k.Public().String() {
		t.Errorf("brought back: %v", err)
	}
}
