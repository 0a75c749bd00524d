package secrets

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// An id is of one form, and an error says what is not available, why, and what
// is beneath it.
func TestIdsAndErrors(t *testing.T) {
	for _, s := range []string{"", "a/b", "runloop/a", "runloop/a/b/c", "runloop//b", "runloop/a/b@h:1"} {
		if id, err := ParseID(s); err == nil || id != (ID{}) {
			t.Errorf("%q is %v, %v", s, id, err)
		}
	}
	inner := errors.New("inner")
	with, without := &UnavailableError{"age", "there is none", inner}, &UnavailableError{
		Provider: "age",
		Why:      "there is none",
	}
	if with.Error() != "the age provider of secrets is not available: there is none: inner" || !errors.Is(with, inner) ||
		!errors.Is(with, errors.ErrUnsupported) {
		t.Error(with)
	}
	if without.Error() != "the age provider of secrets is not available: there is none" || errors.Is(without, inner) ||
		!errors.Is(without, errors.ErrUnsupported) {
		t.Error(without)
	}
	if p, err := Open(Config{Provider: "env"}); err == nil || p != nil {
		t.Errorf("without a tenant: %v", p)
	}
	env := open(t, Config{Provider: "env", Env: []string{"RLP_SECRET_default_0a_0b"}})
	if v, err := env.Get(t.Context(), idOf(t, "runloop/a/b")); !errors.Is(err, fs.ErrNotExist) || v != nil {
		t.Errorf("a variable without a value: %q, %v", v, err)
	}
}

// write makes a file of its owner's, or of mode perm.
func write(t *testing.T, path, text string, perm fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, perm)
}

func chmod(t *testing.T, path string, perm fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
}

// A folder is private or refused, and made only when that is asked for; a lock
// is a file of its owner's.
func TestFoldersAndLocks(t *testing.T) {
	top := t.TempDir()
	dir, file := filepath.Join(top, "dir"), filepath.Join(top, "file")
	write(t, file, "", 0o600)
	if err := privateDir(dir, false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	for _, create := range []bool{true, true, false} {
		if err := privateDir(dir, create); err != nil {
			t.Errorf("created: %v", err)
		}
	}
	for _, path := range []string{filepath.Join(file, "x"), filepath.Join(top, "none", "x")} {
		var failed *fs.PathError
		if err := privateDir(path, true); !errors.As(err, &failed) || failed.Op != "mkdir" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := privateDir(file, true); err == nil {
		t.Error("a file is a folder")
	}
	ran := 0
	do := func() error { ran++; return nil }
	if err := locked(dir, do); err != nil || ran != 1 {
		t.Errorf("control: %v, ran %d", err, ran)
	}
	lock := filepath.Join(dir, "lock")
	chmod(t, lock, 0o644)
	if err := locked(dir, do); err == nil {
		t.Error("others may open the lock")
	}
	if err := errors.Join(os.Remove(lock), os.Symlink(file, lock)); err != nil {
		t.Fatal(err)
	}
	if err := locked(dir, do); err == nil {
		t.Error("the lock is a link")
	}
	if err := locked(filepath.Join(top, "none"), do); !errors.Is(err, fs.ErrNotExist) || ran != 1 {
		t.Errorf("without a folder: %v, ran %d", err, ran)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	if err := locked(dir, func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("what was done went wrong: %v", err)
	}
}

// What cannot be made of a vault is told, and what stands in its place stays.
func TestVaultsThatCannotBeMade(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"below a file": func(t *testing.T, dir string) { write(t, filepath.Dir(dir), "", 0o600) },
		"open":         func(t *testing.T, dir string) { mkdir(t, dir); chmod(t, dir, 0o755) },
		"open inside": func(t *testing.T, dir string) {
			mkdir(t, filepath.Join(dir, "vault"))
			chmod(t, filepath.Join(dir, "vault"), 0o755)
		},
		"an identity of nonsense": func(t *testing.T, dir string) {
			mkdir(t, dir)
			write(t, filepath.Join(dir, "identity"), "nonsense\n", 0o600)
		},
		"an empty identity": func(t *testing.T, dir string) {
			mkdir(t, dir)
			write(t, filepath.Join(dir, "identity"), "\n# a remark\n\n", 0o600)
		},
		"an open identity": func(t *testing.T, dir string) {
			mkdir(t, dir)
			write(t, filepath.Join(dir, "identity"), "",
				0o644)
		},
	} {
		dir := filepath.Join(t.TempDir(), "home", "secrets")
		spoil(t, dir)
		before, _ := os.ReadFile(filepath.Join(dir, "identity"))
		created, err := Init(dir)
		if err == nil || created || !strings.HasPrefix(err.Error(), "making the vault: ") {
			t.Errorf("%s: %v, %v", name, created, err)
		}
		if after, _ := os.ReadFile(filepath.Join(dir, "identity")); string(after) != string(before) {
			t.Errorf("%s: the identity was %q and is %q", name, before, after)
		}
		if _, err := os.Stat(filepath.Join(dir, "vault")); name == "open" && err == nil {
			t.Errorf("%s: something was made in it", name)
		}
	}
	dir, p := newVault(t)
	if ids, err := p.List(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("a new vault lists %v, %v", ids, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "identity"))
	if err != nil {
		t.Fatal(err)
	}
	id := idOf(t, "runloop/a/b")
	if err := p.Put(t.Context(), id, []byte("correct-horse")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "identity"), "\n\n  # a remark\n"+string(text), 0o600)
	if v, err := p.Get(t.Context(), id); err != nil || string(v) != "correct-horse" {
		t.Errorf("with remarks and blank lines: %q, %v", v, err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// Each way in which a file of the vault cannot be used is told apart, and
// nothing is written or removed where anything is not as it should be.
func TestVaultFilesThatCannotBeUsed(t *testing.T) {
	type vaultDoor func(ctx context.Context, p Provider, id ID) error
	get := func(ctx context.Context, p Provider, id ID) error { _, err := p.Get(ctx, id); return err }
	put := func(ctx context.Context, p Provider, id ID) error { return p.Put(ctx, id, []byte("another-value")) }
	del := func(ctx context.Context, p Provider, id ID) error { return p.Delete(ctx, id) }
	list := func(ctx context.Context, p Provider, _ ID) error { _, err := p.List(ctx); return err }
	file := func(dir string) string { return filepath.Join(dir, "vault/a/b.age") }
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		do    vaultDoor
		say   string
		none  bool // the error says that there is none
	}{
		"not there": {
			func(t *testing.T, dir string) { remove(t, file(dir)) }, get,
			"the secret runloop/a/b: file does not exist", true,
		},
		"no scope": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "vault")) }, get,
			"the secret runloop/a/b: file does not exist", true,
		},
		"deleted": {
			func(t *testing.T, dir string) { remove(t, file(dir)) }, del,
			"the secret runloop/a/b: file does not exist", true,
		},
		"of another key": {
			func(t *testing.T, dir string) { seal(t, file(dir), "", nil) }, get,
			"reading runloop/a/b: the file of the vault was not made with this identity, or is damaged", false,
		},
		"no JSON": {
			func(t *testing.T, dir string) { seal(t, file(dir), "nonsense", keyOf(t, dir)) }, get,
			"reading runloop/a/b: the file of the vault is damaged", false,
		},
		"of another": {
			func(t *testing.T, dir string) { rename(t, filepath.Join(dir, "vault/a/c.age"), file(dir)) }, get,
			"belongs to another secret", false,
		},
		"over another's": {
			func(t *testing.T, dir string) { rename(t, filepath.Join(dir, "vault/a/c.age"), file(dir)) }, put,
			"storing runloop/a/b: reading runloop/a/b: the file of the vault belongs to another secret", false,
		},
		"cut off": {
			func(t *testing.T, dir string) { cut(t, file(dir)) }, get,
			"reading runloop/a/b: the file of the vault is damaged", false,
		},
		"readable": {func(t *testing.T, dir string) { chmod(t, file(dir), 0o644) }, get, "has mode 0644", false},
		"an open scope": {
			func(t *testing.T, dir string) { chmod(t, filepath.Join(dir, "vault/a"), 0o755) }, put,
			"storing runloop/a/b: the age provider", false,
		},
		"an open scope 2": {
			func(t *testing.T, dir string) { chmod(t, filepath.Join(dir, "vault/a"), 0o755) }, del,
			"the vault is not private", false,
		},
		"a folder": {
			func(t *testing.T, dir string) { remove(t, file(dir)); mkdir(t, filepath.Join(file(dir), "x")) },
			del, "deleting runloop/a/b: ", false,
		},
		"nowhere to look": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "vault")) }, list,
			"listing the vault: ", true,
		},
		"no identity": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "identity")) }, list,
			"rlp secrets init", false,
		},
	} {
		dir, p := newVault(t)
		for _, s := range []string{"runloop/a/b", "runloop/a/c"} {
			if err := p.Put(t.Context(), idOf(t, s), []byte("value of "+s)); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, "vault", "stray"), "", 0o600)
		write(t, filepath.Join(dir, "vault/a/stray"), "", 0o600)
		if ids, err := p.List(t.Context()); err != nil || len(ids) != 2 {
			t.Fatalf("control: %v, %v", ids, err)
		}
		c.spoil(t, dir)
		before, _ := os.ReadFile(file(dir))
		err := c.do(t.Context(), p, idOf(t, "runloop/a/b"))
		if err == nil || !strings.Contains(err.Error(), c.say) || errors.Is(err, fs.ErrNotExist) != c.none || c.none &&
			errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(file(dir)); string(after) != string(before) {
			t.Errorf("%s: the file was changed", name)
		}
		if err := p.Put(t.Context(), idOf(t, "runloop/a/new"), []byte("a-new-value")); strings.HasPrefix(name,
			"an open scope") {
			if _, left := os.Stat(filepath.Join(dir, "vault/a/new.age")); err == nil || left == nil {
				t.Errorf("%s: stored all the same: %v, %v", name, err, left)
			}
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(data[:len(data)-1]), 0o600)
}

func keyOf(t *testing.T, dir string) *age.X25519Identity {
	t.Helper()
	key, err := (&vault{dir: dir}).identity()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// seal writes a file of the vault that holds text, for a key of its own if none
// is given.
func seal(t *testing.T, path, text string, key *age.X25519Identity) {
	t.Helper()
	var b strings.Builder
	var err error
	if key == nil {
		if key, err = age.GenerateX25519Identity(); err != nil {
			t.Fatal(err)
		}
	}
	w, err := age.Encrypt(&b, key.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.String(), 0o600)
}
