package access

import (
	"crypto/x509"
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

// A record says which version it is and all that it must, and is kept as long as
// it is the one of its file.
func TestRecordsSayWhatTheyAre(t *testing.T) {
	r := aRecord()
	text := string(r.encode())
	for name, c := range map[string]struct{ from, to, say string }{
		"no version":       {"version = 1\n", "", "version"},
		"another version":  {"version = 1", "version = 2", "version is 2, and this rlp knows 1"},
		"no id":            {"id = \"" + r.ID + "\"\n", "", "id"},
		"no name":          {"name = \"ci\"\n", "", "name"},
		"no rights":        {"may = [\"run\", \"read\"]\n", "", "may"},
		"no beginning":     {"created = 2026-01-02T03:04:05Z\n", "", "created"},
		"a bad secret":     {r.secret.String(), strings.ToUpper(r.secret.String()), "64 hex digits in lower case"},
		"a short secret":   {r.secret.String(), "ab", "64 hex digits in lower case"},
		"no hex":           {r.secret.String(), strings.Repeat("zz", 32), "64 hex digits in lower case"},
		"the id of a file": {"id = \"" + r.ID, "id = \"a" + r.ID[1:], "is not that of its file"},
	} {
		if name == "the id of a file" && r.ID[0] == 'a' {
			continue
		}
		edited := strings.Replace(text, c.from, c.to, 1)
		if edited == text {
			t.Fatalf("%s: nothing was edited", name)
		}
		if got, err := decode(r.ID, "f", []byte(edited)); err == nil || got != nil || !strings.Contains(err.Error(), c.say) ||
			strings.Contains(err.Error(), "version is 0") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, id := range []string{"abcdefghi", "abcdefghijk", "abcdefghi1", "ABCDEFGHIJ", ""} {
		edited := strings.Replace(text, r.ID, id, 1)
		if got, err := decode(id, "f", []byte(edited)); err == nil || got != nil && got.ID == id && err == nil {
			t.Errorf("the id %q: %+v", id, got)
		}
	}
	if strings.Contains(string((&Token{ID: "x"}).encode()), "profiles") {
		t.Error("no profile is written as a list")
	}
	for _, c := range []struct {
		t        Token
		call, id string
	}{
		{Token{ID: "i", Name: "n"}, "token:n", "token:i"},
		{Token{ID: "i", Name: "n", CertName: "c"}, "cert:n", "cert:i"},
		{Token{ID: "i", Name: "n", CertHash: "c"}, "cert:n", "cert:i"},
	} {
		if c.t.Caller() != c.call || c.t.callerID() != c.id {
			t.Errorf("%+v: %s, %s", c.t, c.t.Caller(), c.t.callerID())
		}
	}
}

// The store reads again what changed, whatever shows it; lists by name; and says
// when it cannot.
func TestTheStoreFollowsItsFiles(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	k := kitOf(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Tokens.now = o.Now
	})
	s := k.store
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("before there is any: %v, %v", list, err)
	}
	for _, name := range []string{"c", "a", "b"} {
		k.token(t, func(o *Token) { o.Name = name })
	}
	must(t, os.WriteFile(filepath.Join(s.dir, "abcdefghij.toml"), []byte("nonsense"), 0o600))
	must(t, os.WriteFile(filepath.Join(s.dir, "klmnopqrst.toml"), []byte("nonsense"), 0o600))
	must(t, os.Chmod(filepath.Join(s.dir, "klmnopqrst.toml"), 0o644))
	for _, stray := range []string{
		"abc.toml", "ABCDEFGHIJ.toml", "abcdefghi1.toml", "klmnopqrst", "klmnopqrst.used",
		"abcdefghijk.toml",
	} {
		must(t, os.WriteFile(filepath.Join(s.dir, stray), []byte("nonsense"), 0o600))
	}
	list, err := s.List()
	names := ""
	for _, l := range list {
		if l.Token != nil {
			names += l.Token.Name
		} else {
			names += " " + l.ID
		}
		if (l.Token == nil) != (l.Err != nil) || l.ID == "klmnopqrst" && !strings.Contains(l.Err.Error(), "has mode 0644") {
			t.Errorf("%+v", l)
		}
	}
	if err != nil || names != "abc abcdefghij klmnopqrst" {
		t.Errorf("%q, %v", names, err)
	}
	made := list[0].Token
	got := func(name string) *Token {
		t.Helper()
		found, err := s.byID(made.ID)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return found
	}
	over, _ := k.token(t, func(o *Token) { o.Name = "z" })
	for want := 4; want > 2; want-- {
		if n, err := s.Good(true); n != want || err != nil {
			t.Errorf("%d good ones, %v; want %d", n, err, want)
		}
		_, err := s.Revoke(over.ID)
		must(t, err)
	}
	if found, err := s.byCert(&x509.Certificate{Raw: []byte("x")}); found != nil || err != nil {
		t.Errorf("a certificate of nobody: %+v, %v", found, err)
	}
	// A change within the second, of which the folder does not tell, is seen a second later.
	path, folder := s.path(made.ID), func() time.Time {
		info, err := os.Stat(s.dir)
		must(t, err)
		return info.ModTime()
	}
	first := got("first")
	before := folder()
	must(t, edit(path, `"acme"`, `"evil"`))
	begin := now
	must(t, os.Chtimes(path, begin, begin)) // of another time than it had, however fast this goes
	must(t, os.Chtimes(s.dir, before, before))
	now = now.Add(rereadAfter - 1)
	if got("within the second") != first {
		t.Error("read again within the second")
	}
	if list, err := s.List(); err != nil || list[0].Token.Tenant != "evil" {
		t.Errorf("a list within the second: %+v, %v", list[0].Token, err)
	}
	must(t, edit(path, `"evil"`, `"longer"`))
	must(t, os.Chtimes(path, begin, begin)) // of the time that it had
	must(t, os.Chtimes(s.dir, before, before))
	now = now.Add(rereadAfter)
	if longer := got("of another length"); longer == nil || longer.Tenant != "longer" {
		t.Errorf("of another length: %+v", longer)
	}
	second := got("as it is")
	now = now.Add(rereadAfter)
	if got("nothing changed") != second {
		t.Error("a file that did not change was read again")
	}
	must(t, os.Chmod(path, 0o640))
	now = now.Add(rereadAfter)
	if third := got("its mode changed"); third != nil {
		t.Errorf("others may read it: %+v", third)
	}
	must(t, os.Chmod(path, 0o600))
	now = now.Add(-time.Hour)
	if fourth := got("the clock went back"); fourth == nil {
		t.Error("it was mended, and is no token")
	}
	must(t, os.Chmod(s.dir, 0o755))
	for name, do := range map[string]func() error{
		"list":   func() error { _, err := s.List(); return err },
		"good":   func() error { _, err := s.Good(true); return err },
		"byID":   func() error { _, err := s.byID(made.ID); return err },
		"byCert": func() error { _, err := s.byCert(&x509.Certificate{}); return err },
		"revoke": func() error { _, err := s.Revoke(made.ID); return err },
		"new":    func() error { _, _, err := s.New(Token{Name: "x", Tenant: "acme", May: service.Read}); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), s.dir) {
			t.Errorf("an open folder, %s: %v", name, err)
		}
	}
	must(t, os.Chmod(s.dir, 0o700))
	if got("mended") == nil {
		t.Error("the folder was mended, and there is no token")
	}
	must(t, os.RemoveAll(s.dir))
	if got("gone") != nil {
		t.Error("the folder is gone, and there is a token")
	}
	if _, err := s.Revoke(made.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("revoked without a folder: %v", err)
	}
	below := OpenStore(filepath.Join(t.TempDir(), "none", "tokens"), time.Now)
	if _, _, err := below.New(Token{Name: "x", Tenant: "acme", May: service.Read}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder below none: %v", err)
	}
}

// What is revoked is the token of an id and stays as it was; what is no id, or is
// no record, is told.
func TestRevokingAgain(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	k := kitOf(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Tokens.now = o.Now
	})
	made, text := k.token(t, nil)
	for _, id := range []string{"", "../x", text, "abcdefghi", "abcdefghijk", "abcdefghi1"} {
		if got, err := k.store.Revoke(id); err == nil || got != nil || !strings.HasSuffix(err.Error(), "is no id of one") {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := k.store.Revoke("abcdefghij"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that there is not: %v", err)
	}
	first, err := k.store.Revoke(made.ID)
	if err != nil || !first.Revoked.Equal(now) {
		t.Fatalf("%+v, %v", first, err)
	}
	now = now.Add(time.Hour)
	if again, err := k.store.Revoke(made.ID); err != nil || !again.Revoked.Equal(first.Revoked) {
		t.Errorf("revoked again: %+v, %v", again, err)
	}
	must(t, os.Truncate(k.store.path(made.ID), 10))
	if _, err := k.store.Revoke(made.ID); err == nil || !strings.HasPrefix(err.Error(), "revoking the token "+made.ID) {
		t.Errorf("a record that is broken: %v", err)
	}
}

// The last use of a token is written down once a minute, in a file beside it.
func TestLastUsesAreWrittenDown(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	k := kitOf(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Tokens.now = o.Now
	})
	made, text := k.token(t, nil)
	used := func(name string, want time.Time) {
		t.Helper()
		if got := k.status(t, bearer(t, text)); got != http.StatusOK {
			t.Fatalf("%s: %d", name, got)
		}
		list, err := k.store.List()
		if err != nil || len(list) != 1 || !list[0].Used.Equal(want) {
			t.Errorf("%s: used at %v, want %v, %v", name, list[0].Used.Unix(), want.Unix(), err)
		}
	}
	begin := now
	used("first", begin)
	now = begin.Add(touchAfter - 1)
	used("within the minute", begin)
	now = begin.Add(touchAfter)
	used("a minute later", now)
	if info, err := os.Stat(k.store.used(made.ID)); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	k.store.touch("abcdefghij")
	if _, err := os.Stat(k.store.used("abcdefghij")); err == nil {
		t.Error("what is no token was used")
	}
	must(t, edit(k.store.path(made.ID), `"ci"`, `"cx"`))
	must(t, os.Chtimes(k.store.path(made.ID), now, now))
	last := now
	now = now.Add(2 * rereadAfter)
	used("another name", last)
}

// Who failed a few times is forgotten after a while, and what many share is theirs
// only as long.
func TestTriesAreForgotten(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	no := func() bool { return false }
	s := newTries()
	for range freeTries {
		s.attempt(now, "a", "", no)
	}
	if ok, wait := s.attempt(now, "a", "", no); ok || wait <= 0 {
		t.Fatalf("control: %v, %v", ok, wait)
	}
	if e := s.get("from a", now.Add(forgetAfter)); e == nil || e.failed != freeTries {
		t.Errorf("at its last instant: %+v", e)
	}
	if e := s.get("from a", now.Add(forgetAfter+1)); e != nil || len(s.all) != 0 || s.slow.Len() != 0 {
		t.Errorf("behind it: %+v, %d, %d", e, len(s.all), s.slow.Len())
	}
	if failed, held := s.counts(); failed != freeTries || held != 1 {
		t.Errorf("%d failed, %d held", failed, held)
	}
	known := newTries()
	known.attempt(now, "a", "t", func() bool { return true })
	if !known.isKnown("pair t a", now) || known.isKnown("pair t b", now) || known.isKnown("from a", now) {
		t.Error("who came in is not known, or another is")
	}
	known.attempt(now, "b", "t", no)
	if known.isKnown("from b", now) {
		t.Error("who failed is known")
	}
}
