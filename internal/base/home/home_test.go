package home

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/owner/ownertest"
)

func TestLocatePrefersTheNearestSaying(t *testing.T) {
	for _, c := range []struct{ flag, env, user, want string }{
		{"/f", "/e", "/u", "/f"},
		{"", "/e", "/u", "/e"},
		{"", "", "/u", "/u/.runloop"},
	} {
		got, err := Locate(c.flag, c.env, c.user)
		if err != nil || got != c.want {
			t.Errorf("Locate(%q, %q, %q) = %q, %v, want %q", c.flag, c.env, c.user, got, err, c.want)
		}
	}
	if _, err := Locate("", "", ""); err == nil {
		t.Error("a home was made up out of nothing")
	}
}

func TestOpenMakesAPrivateHome(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	h, err := Open(dir, DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(h.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %o, want 700", info.Mode().Perm())
	}
}

func TestOpenRefusesAHomeThatOthersCanWrite(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, DefaultTenant); err != nil {
		t.Fatalf("control: a private home is refused: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, DefaultTenant); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("Open = %v, want a refusal that says what to do", err)
	}
}

// A group with others in it may write to no folder of the home, and no group at
// all to what holds secrets and tokens.
//
//rlp:holds D9
func TestOpenRefusesWhatAGroupCanWrite(t *testing.T) {
	for name, spoil := range map[string]func(string, os.FileMode) error{
		"": ownertest.Share, "caps": ownertest.Share, "caps/overrides": ownertest.Share, "log": ownertest.Share,
		"secrets": os.Chmod, "tokens": os.Chmod,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, DefaultTenant); err != nil {
			t.Errorf("control: %q: %v", name, err)
		}
		if err := spoil(path, 0o770); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, DefaultTenant); err == nil || !strings.Contains(err.Error(), "run chmod g-w on it") {
			t.Errorf("a group may write to %q: %v", name, err)
		}
	}
}

func TestTenantsShareOnlyWhatTheOperatorWrites(t *testing.T) {
	dir := t.TempDir()
	a, err := Open(dir, DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if a.Config() != b.Config() || a.Override("x") != b.Override("x") {
		t.Error("the operator's files differ by tenant")
	}
	for name, pair := range map[string][2]string{
		"cache": {a.Cache(), b.Cache()}, "log": {a.Log(), b.Log()}, "root": {a.Root(), b.Root()},
	} {
		if pair[0] == pair[1] {
			t.Errorf("%s is shared between tenants: %s", name, pair[0])
		}
	}
}

// Deleting the folder of overrides is not a way to make them unreadable and be
// launched without them, and neither is letting others write to it.
//
//rlp:holds R7
func TestOpenHoldsTheFolderOfOverrides(t *testing.T) {
	dir := t.TempDir()
	h, err := Open(dir, DefaultTenant)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	overrides := filepath.Dir(h.Override("x"))
	if err := os.Chmod(overrides, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, DefaultTenant); err == nil {
		t.Error("others may write overrides")
	}
	if err := os.RemoveAll(filepath.Join(dir, "caps")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere/at/all", filepath.Join(dir, "caps")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, DefaultTenant); err == nil {
		t.Error("a dangling link stands for no overrides")
	}
}

// A folder of the home that is a link lies somewhere else, perhaps where an
// agent may write: it would lift its own override.
//
//rlp:holds Y35
func TestOpenRefusesLinkedFolders(t *testing.T) {
	for _, name := range []string{
		"caps", "caps/overrides", "caps/templates", "log", "run", "kb", "journal", "cache",
		"tenants",
	} {
		dir, elsewhere := t.TempDir(), t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(elsewhere, "overrides"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, path); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, DefaultTenant); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s may be a link: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, DefaultTenant); err != nil {
			t.Errorf("control: %s: %v", name, err)
		}
	}
}
