package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/ident"
)

func idOf(t testing.TB, s string) ID {
	t.Helper()
	id, err := ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func tenantOf(t testing.TB, s string) ident.Tenant {
	t.Helper()
	tenant, err := ident.ParseTenant(s)
	if err != nil {
		t.Fatal(err)
	}
	return tenant
}

func open(t testing.TB, c Config) Provider {
	t.Helper()
	if c.Tenant.IsZero() {
		c.Tenant = tenantOf(t, "default")
	}
	p, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// testProvider is what every provider that stores has to do.
func testProvider(t *testing.T, p Provider) {
	ctx := t.Context()
	a, b := idOf(t, "runloop/mail/smtp_api_key"), idOf(t, "runloop/mail.x/B-1")
	if _, err := p.Get(ctx, a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of what is not there: %v", err)
	}
	if err := p.Delete(ctx, a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Delete of what is not there: %v", err)
	}
	values := map[ID]string{a: "sk-live-4eC39Hq", b: "binary \x00\xff\n and more"}
	for id, v := range values {
		if err := p.Put(ctx, id, []byte("an earlier value")); err != nil {
			t.Fatal(err)
		}
		if err := p.Put(ctx, id, []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	for id, v := range values {
		if got, err := p.Get(ctx, id); err != nil || string(got) != v {
			t.Errorf("Get(%s) = %q, %v", id, got, err)
		}
	}
	if ids, err := p.List(ctx); err != nil || !slices.Equal(ids, []ID{b, a}) {
		t.Errorf("List() = %v, %v", ids, err)
	}
	if err := p.Put(ctx, a, []byte("short")); !errors.Is(err, ErrShort) {
		t.Errorf("Put of a short value: %v", err)
	}
	if err := p.Put(ctx, a, make([]byte, MaxValue+1)); !errors.Is(err, ErrLong) {
		t.Errorf("Put of a long value: %v", err)
	}
	if err := p.Delete(ctx, a); err != nil {
		t.Error(err)
	}
	if _, err := p.Get(ctx, a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of what was deleted: %v", err)
	}
	if ids, err := p.List(ctx); err != nil || !slices.Equal(ids, []ID{b}) {
		t.Errorf("List() = %v, %v", ids, err)
	}
}

func newVault(t *testing.T) (dir string, p Provider) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "secrets")
	if created, err := Init(dir); err != nil || !created {
		t.Fatalf("Init = %v, %v", created, err)
	}
	return dir, open(t, Config{Provider: "age", Dir: dir})
}

func TestVault(t *testing.T) {
	_, p := newVault(t)
	testProvider(t, p)
}

func TestKeyring(t *testing.T) {
	keyring.MockInit()
	testProvider(t, open(t, Config{Provider: "keyring", Dir: filepath.Join(t.TempDir(), "secrets")}))
}

func TestKeyringThatIsNotThere(t *testing.T) {
	keyring.MockInitWithError(errors.New("no bus"))
	p := open(t, Config{Provider: "keyring", Dir: t.TempDir()})
	if _, err := p.Get(t.Context(), idOf(t, "runloop/a/b")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Get = %v", err)
	}
}

// An unknown provider opens nothing, whatever it is close to.
//
//rlp:holds R83
func TestUnknownProviderIsAnError(t *testing.T) {
	for _, name := range Providers() {
		if _, err := Open(Config{Provider: name, Tenant: tenantOf(t, "default"), Command: []string{"/bin/x"}}); err != nil {
			t.Errorf("control: %s: %v", name, err)
		}
	}
	for _, name := range []string{"", "stub", "Age", "auto", "env "} {
		if p, err := Open(Config{Provider: name, Tenant: tenantOf(t, "default")}); err == nil || p != nil {
			t.Errorf("%q opened %v", name, p)
		}
	}
}

// Nothing of a value lies in the vault in clear, and what is there is its
// owner's alone.
func TestVaultIsEncryptedAndPrivate(t *testing.T) {
	dir, p := newVault(t)
	const value = "sk-live-4eC39HqLyjWDarjtT1zdp7dc"
	if err := p.Put(t.Context(), idOf(t, "runloop/a/b"), []byte(value)); err != nil {
		t.Fatal(err)
	}
	control := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		control = control || bytes.Contains(data, []byte("AGE-SECRET-KEY-"))
		if bytes.Contains(data, []byte(value)) || bytes.Contains(data, []byte(value[:12])) {
			t.Errorf("%s holds the value", path)
		}
		return err
	})
	if err != nil || !control {
		t.Errorf("walked: %v; found the identity: %v", err, control)
	}
}

func TestInitKeepsTheIdentity(t *testing.T) {
	dir, p := newVault(t)
	id := idOf(t, "runloop/a/b")
	if err := p.Put(t.Context(), id, []byte("correct-horse")); err != nil {
		t.Fatal(err)
	}
	if created, err := Init(dir); err != nil || created {
		t.Errorf("a second Init = %v, %v", created, err)
	}
	if v, err := p.Get(t.Context(), id); err != nil || string(v) != "correct-horse" {
		t.Errorf("after a second Init: %q, %v", v, err)
	}
}

// A vault that others can read or change is not used.
func TestVaultRefusesWhatIsNotPrivate(t *testing.T) {
	id := "runloop/a/b"
	for name, spoil := range map[string]func(dir string) error{
		"readable identity": func(dir string) error { return os.Chmod(filepath.Join(dir, "identity"), 0o640) },
		"linked identity": func(dir string) error {
			path := filepath.Join(dir, "identity")
			return errors.Join(os.Rename(path, dir+".identity"), os.Symlink(dir+".identity", path))
		},
		"identity of nonsense": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "identity"), []byte("AGE-SECRET-KEY-1NONSENSE"), 0o600)
		},
		"open folder":   func(dir string) error { return os.Chmod(dir, 0o755) },
		"open vault":    func(dir string) error { return os.Chmod(filepath.Join(dir, "vault"), 0o711) },
		"open scope":    func(dir string) error { return os.Chmod(filepath.Join(dir, "vault/a"), 0o750) },
		"readable file": func(dir string) error { return os.Chmod(filepath.Join(dir, "vault/a/b.age"), 0o644) },
		"damaged file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "vault/a/b.age"), []byte("age-encryption.org/v1\n"), 0o600)
		},
		"another's file": func(dir string) error {
			return os.Rename(filepath.Join(dir, "vault/a/other.age"), filepath.Join(dir, "vault/a/b.age"))
		},
		"pipe": func(dir string) error {
			path := filepath.Join(dir, "vault/a/b.age")
			return errors.Join(os.Remove(path), mkfifo(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p := newVault(t)
			for _, s := range []string{id, "runloop/a/other"} {
				if err := p.Put(t.Context(), idOf(t, s), []byte("value of "+s)); err != nil {
					t.Fatal(err)
				}
			}
			if v, err := p.Get(t.Context(), idOf(t, id)); err != nil || string(v) != "value of "+id {
				t.Fatalf("control: %q, %v", v, err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			v, err := p.Get(t.Context(), idOf(t, id))
			if err == nil || v != nil {
				t.Errorf("read %q", v)
			}
			if err != nil && strings.Contains(err.Error(), "AGE-SECRET") {
				t.Errorf("the error shows the identity: %v", err)
			}
		})
	}
}

func TestOthersFilesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := home.PrivateFile(path, info); err != nil {
		t.Errorf("control: %v", err)
	}
	if err := home.PrivateFile(path, foreign{info}); err == nil {
		t.Error("a file of another user is taken")
	}
}

// A value of one tenant is no other's, even when its file is put in the other's place.
//
//rlp:holds K9
func TestVaultsOfTenantsAreApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	if _, err := Init(dir); err != nil {
		t.Fatal(err)
	}
	id := idOf(t, "runloop/a/b")
	acme := open(t, Config{Provider: "age", Dir: dir, Tenant: tenantOf(t, "acme")})
	if err := acme.Put(t.Context(), id, []byte("the value of acme")); err != nil {
		t.Fatal(err)
	}
	if v, err := acme.Get(t.Context(), id); err != nil {
		t.Fatalf("control: %q, %v", v, err)
	}
	other := open(t, Config{Provider: "age", Dir: dir, Tenant: tenantOf(t, "acme_co")})
	if v, err := other.Get(t.Context(), id); err == nil {
		t.Errorf("acme_co read %q", v)
	}
}

func TestConcurrentPuts(t *testing.T) {
	dir, _ := newVault(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := open(t, Config{Provider: "age", Dir: dir}) // as a process of its own would
			for j := range 4 {
				id := idOf(t, fmt.Sprintf("runloop/s%d/n%d", j, i))
				shared := idOf(t, "runloop/all/shared")
				if err := errors.Join(p.Put(t.Context(), id, []byte("value of "+id.String())), p.Put(t.Context(), shared,
					[]byte("value of shared"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p := open(t, Config{Provider: "age", Dir: dir})
	ids, err := p.List(t.Context())
	if err != nil || len(ids) != 33 {
		t.Fatalf("%d ids, %v", len(ids), err)
	}
	for _, id := range ids {
		if v, err := p.Get(t.Context(), id); err != nil || !strings.HasPrefix(string(v), "value of ") {
			t.Errorf("%s = %q, %v", id, v, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "vault", "*", ".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWithoutAVault(t *testing.T) {
	p := open(t, Config{Provider: "age", Dir: filepath.Join(t.TempDir(), "secrets")})
	id := idOf(t, "runloop/a/b")
	for name, do := range map[string]func() error{
		"get":    func() error { _, err := p.Get(t.Context(), id); return err },
		"put":    func() error { return p.Put(t.Context(), id, []byte("correct-horse")) },
		"delete": func() error { return p.Delete(t.Context(), id) },
		"list":   func() error { _, err := p.List(t.Context()); return err },
	} {
		if err := do(); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "rlp secrets init") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func helperOf(t *testing.T, script string, env ...string) Provider {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return open(t, Config{
		Provider: "exec", Command: []string{path, "show", "{id}", "{tenant}/{scope}/{name}"}, CommandEnv: []string{"GIVEN"},
		Env: append(env, "GIVEN=given", "OTHER=other"), Timeout: 2e9,
	})
}

func TestHelper(t *testing.T) {
	ctx, id := t.Context(), idOf(t, "runloop/mail/key")
	p := helperOf(t, `printf '%s|%s|%s|%s|%s|%s\n' "$1" "$2" "$3" "$GIVEN" "$OTHER" "$HOME"`)
	if v, err := p.Get(ctx, id); err != nil || string(v) != "show|runloop/mail/key|default/mail/key|given||" {
		t.Errorf("Get = %q, %v", v, err)
	}
	for name, script := range map[string]string{
		"fails":          "echo a value nobody should see; echo and a message >&2; exit 3",
		"never ends":     "sleep 100",
		"leaves a child": "sleep 100 & echo value-of-it; wait",
		"never stops":    "yes value",
		"says nothing":   "exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			p := helperOf(t, script)
			p.(*helper).timeout = 300 * time.Millisecond
			v, err := p.Get(ctx, id)
			if err == nil {
				t.Fatalf("Get = %q", v)
			}
			if strings.Contains(err.Error(), "nobody should see") || strings.Contains(err.Error(), "a message") {
				t.Errorf("the error shows what the program said: %v", err)
			}
		})
	}
	for name, do := range map[string]func() error{
		"put": func() error { return p.Put(ctx, id, []byte("correct-horse")) }, "delete": func() error {
			return p.Delete(ctx, id)
		},
		"list": func() error { _, err := p.List(ctx); return err },
	} {
		if err := do(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHelperIsTheOperatorsOwn(t *testing.T) {
	p := helperOf(t, "echo correct-horse")
	if _, err := p.Get(t.Context(), idOf(t, "runloop/a/b")); err != nil {
		t.Fatalf("control: %v", err)
	}
	if err := os.Chmod(p.(*helper).command[0], 0o777); err != nil {
		t.Fatal(err)
	}
	if v, err := p.Get(t.Context(), idOf(t, "runloop/a/b")); err == nil {
		t.Errorf("a program that others may write gave %q", v)
	}
	for _, command := range [][]string{nil, {"pass"}, {"./pass"}, {"/bin/{name}"}} {
		if _, err := Open(Config{Provider: "exec", Tenant: tenantOf(t, "default"), Command: command}); err == nil {
			t.Errorf("%q was taken", command)
		}
	}
}

// A helper's id is one argument, whatever is in it, and never a shell's.
func TestHelperHasNoShell(t *testing.T) {
	h := &helper{command: []string{"/bin/pass", "{id}", "x{name}y"}, tenant: "t"}
	got, err := h.argv(idOf(t, "runloop/a/-b.."))
	if err != nil || !slices.Equal(got, []string{"/bin/pass", "runloop/a/-b..", "x-b..y"}) {
		t.Errorf("argv = %q, %v", got, err)
	}
	h.command = []string{"/bin/pass", "-x", "{name}"}
	if got, err := h.argv(idOf(t, "runloop/a/b")); err != nil || got[2] != "b" {
		t.Errorf("control: %q, %v", got, err)
	}
	if got, err := h.argv(idOf(t, "runloop/a/--clip")); err == nil {
		t.Errorf("an id became an option: %q", got)
	}
}

// A command that does not say for which tenant it asks would give each tenant
// the values of all.
//
//rlp:holds K9
func TestTheCommandOfTenantsNamesThem(t *testing.T) {
	for tenant, refused := range map[string]bool{"default": false, "acme": true} {
		id, err := ident.ParseTenant(tenant)
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Provider: "exec", Tenant: id, Command: []string{"/usr/bin/pass", "show", "{id}"}}
		if _, err := Open(c); (err != nil) != refused || refused && !strings.Contains(err.Error(), "put {tenant} into it") {
			t.Errorf("%s: %v", tenant, err)
		}
		c.Command[2] = "{tenant}/{id}"
		if _, err := Open(c); err != nil {
			t.Errorf("%s, named: %v", tenant, err)
		}
	}
}
