package access

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// What is kept does not hold what was printed.
func TestTokensAreKeptAsDigests(t *testing.T) {
	k := kitOf(t, nil)
	made, text := k.token(t, nil)
	if k.status(t, bearer(t, text)) != http.StatusOK {
		t.Fatal("control: the token is not good")
	}
	err := filepath.WalkDir(k.store.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text[16:]) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := k.store.List()
	if err != nil || len(list) != 1 || list[0].Token.ID != made.ID || list[0].Used.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
}

// A file that others could have read or changed, or that leads elsewhere, is no
// token, at once and while the service runs; the others stay good.
func TestFilesOfTokens(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"readable by the group": func(t *testing.T, path string) { must(t, os.Chmod(path, 0o640)) },
		"writable by others":    func(t *testing.T, path string) { must(t, os.Chmod(path, 0o602)) },
		"a link to itself elsewhere": func(t *testing.T, path string) {
			other := filepath.Join(t.TempDir(), "x")
			must(t, os.Rename(path, other))
			must(t, os.Symlink(other, path))
			if data, err := os.ReadFile(path); err != nil || len(data) == 0 {
				t.Fatalf("control: the link leads nowhere: %v", err)
			}
		},
		"cut":     func(t *testing.T, path string) { must(t, os.Truncate(path, 40)) },
		"emptied": func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"gone":    func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"too long": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString("#" + strings.Repeat("x", maxRecord))
			must(t, errors.Join(err, f.Close()))
		},
		"of another id": func(t *testing.T, path string) {
			must(t, os.Rename(path, filepath.Join(filepath.Dir(path), "abcdefghij.toml")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			k := kitOf(t, func(o *Options) {
				o.Now = func() time.Time { return now }
				o.Tokens.now = o.Now
			})
			made, text := k.token(t, nil)
			_, other := k.token(t, func(o *Token) { o.Name = "other" })
			if k.status(t, bearer(t, text)) != http.StatusOK {
				t.Fatal("control: the token is not good")
			}
			spoil(t, k.store.path(made.ID))
			now = now.Add(2 * rereadAfter)
			if got := k.status(t, bearer(t, text)); got != http.StatusUnauthorized {
				t.Errorf("status %d", got)
			}
			if got := k.status(t, bearer(t, other)); got != http.StatusOK {
				t.Errorf("the other token: %d", got)
			}
		})
	}
}

// A folder that others can look into, or a link, holds no token, and nobody
// learns whether one was good.
func TestTheFolderOfTokens(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"mode": func(dir string) error { return os.Chmod(dir, 0o755) },
		"link": func(dir string) error { return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir)) },
		"file": func(dir string) error { return errors.Join(os.Rename(dir, dir+"2"), os.WriteFile(dir, nil, 0o600)) },
	} {
		k := kitOf(t, nil)
		_, text := k.token(t, nil)
		if k.status(t, bearer(t, text)) != http.StatusOK {
			t.Fatal("control: the token is not good")
		}
		must(t, spoil(k.store.dir))
		for _, token := range []string{text, newToken().text} {
			if got := k.status(t, bearer(t, token)); got != http.StatusServiceUnavailable {
				t.Errorf("%s: status %d", name, got)
			}
		}
		if _, _, err := k.store.New(Token{Name: "x", Tenant: "acme", May: 1}); err == nil {
			t.Errorf("%s: a token is made in it", name)
		}
	}
}

// A revoked token is over for every process, at its next request.
func TestRevoke(t *testing.T) {
	k := kitOf(t, nil)
	made, text := k.token(t, nil)
	if k.status(t, bearer(t, text)) != http.StatusOK {
		t.Fatal("control: the token is not good")
	}
	elsewhere := OpenStore(k.store.dir, time.Now)
	if got, err := elsewhere.Revoke(made.ID); err != nil || got.State(time.Now()) != "revoked" {
		t.Fatalf("%+v, %v", got, err)
	}
	if got := k.status(t, bearer(t, text)); got != http.StatusUnauthorized {
		t.Errorf("status %d", got)
	}
	if _, err := elsewhere.Revoke(made.ID); err != nil {
		t.Errorf("again: %v", err)
	}
	if _, err := elsewhere.Revoke("abcdefghij"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if _, err := elsewhere.Revoke("../../x"); err == nil {
		t.Error("a path is an id")
	}
}

// Two good tokens of one name would be one caller.
func TestNamesAreOfOneToken(t *testing.T) {
	k := kitOf(t, nil)
	made, _ := k.token(t, nil)
	if _, _, err := k.store.New(Token{Name: "ci", Tenant: "acme", May: 1}); err == nil || !strings.Contains(err.Error(),
		made.ID) {
		t.Errorf("%v", err)
	}
	k.token(t, func(o *Token) { o.Tenant = "other" })
	if _, err := k.store.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	k.token(t, nil)
	for _, bad := range []Token{
		{Name: "operator", Tenant: "default", May: 1},
		{Name: "", Tenant: "acme", May: 1},
		{Name: "a b", Tenant: "acme", May: 1},
		{Name: "x", Tenant: "", May: 1},
		{Name: "x", Tenant: "a/b", May: 1},
		{Name: "x", Tenant: "acme", May: 1, Expires: time.Now().Add(-time.Hour)},
		{Name: "x", Tenant: "acme", May: 1, CertHash: "x"},
		{Name: "x", Tenant: "acme", May: 1, CertName: "a\nb"},
	} {
		if made, _, err := k.store.New(bad); err == nil {
			t.Errorf("%+v", made)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A certificate lets nobody in where none is asked for.
func TestWhoCouldComeIn(t *testing.T) {
	s := OpenStore(filepath.Join(t.TempDir(), "tokens"), time.Now)
	far := time.Now().Add(time.Hour)
	for _, made := range []Token{
		{Name: "ci", Tenant: "acme", May: service.Launch, Expires: far},
		{Name: "runner", Tenant: "acme", May: service.Launch, Expires: far, CertName: "runner.example"},
		{Name: "laptop", Tenant: "acme", May: service.Launch, Expires: far, CertHash: strings.Repeat("ab", 32)},
	} {
		if _, _, err := s.New(made); err != nil {
			t.Fatal(err)
		}
	}
	for certs, want := range map[bool]int{true: 3, false: 1} {
		if n, err := s.Good(certs); n != want || err != nil {
			t.Errorf("certificates are asked for: %v: %d could come in, want %d (%v)", certs, n, want, err)
		}
	}
}
