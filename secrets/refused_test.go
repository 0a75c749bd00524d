package secrets

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/zalando/go-keyring"
	"golang.org/x/sys/unix"
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
	with, without := &UnavailableError{"age", "there is none", inner}, &UnavailableError{Provider: "age", Why: "there is none"}
	if with.Error() != "the age provider of secrets is not available: there is none: inner" || !errors.Is(with, inner) || !errors.Is(with, errors.ErrUnsupported) {
		t.Error(with)
	}
	if without.Error() != "the age provider of secrets is not available: there is none" || errors.Is(without, inner) || !errors.Is(without, errors.ErrUnsupported) {
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
		"an open identity": func(t *testing.T, dir string) { mkdir(t, dir); write(t, filepath.Join(dir, "identity"), "", 0o644) },
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
		"not there":       {func(t *testing.T, dir string) { remove(t, file(dir)) }, get, "the secret runloop/a/b: file does not exist", true},
		"no scope":        {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "vault")) }, get, "the secret runloop/a/b: file does not exist", true},
		"deleted":         {func(t *testing.T, dir string) { remove(t, file(dir)) }, del, "the secret runloop/a/b: file does not exist", true},
		"of another key":  {func(t *testing.T, dir string) { seal(t, file(dir), "", nil) }, get, "reading runloop/a/b: the file of the vault was not made with this identity, or is damaged", false},
		"no JSON":         {func(t *testing.T, dir string) { seal(t, file(dir), "nonsense", keyOf(t, dir)) }, get, "reading runloop/a/b: the file of the vault is damaged", false},
		"of another":      {func(t *testing.T, dir string) { rename(t, filepath.Join(dir, "vault/a/c.age"), file(dir)) }, get, "belongs to another secret", false},
		"over another's":  {func(t *testing.T, dir string) { rename(t, filepath.Join(dir, "vault/a/c.age"), file(dir)) }, put, "storing runloop/a/b: reading runloop/a/b: the file of the vault belongs to another secret", false},
		"cut off":         {func(t *testing.T, dir string) { cut(t, file(dir)) }, get, "reading runloop/a/b: the file of the vault is damaged", false},
		"readable":        {func(t *testing.T, dir string) { chmod(t, file(dir), 0o644) }, get, "has mode 0644", false},
		"an open scope":   {func(t *testing.T, dir string) { chmod(t, filepath.Join(dir, "vault/a"), 0o755) }, put, "storing runloop/a/b: the age provider", false},
		"an open scope 2": {func(t *testing.T, dir string) { chmod(t, filepath.Join(dir, "vault/a"), 0o755) }, del, "the vault is not private", false},
		"a folder":        {func(t *testing.T, dir string) { remove(t, file(dir)); mkdir(t, filepath.Join(file(dir), "x")) }, del, "deleting runloop/a/b: ", false},
		"nowhere to look": {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "vault")) }, list, "listing the vault: ", true},
		"no identity":     {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "identity")) }, list, "rlp secrets init", false},
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
		if err == nil || !strings.Contains(err.Error(), c.say) || errors.Is(err, fs.ErrNotExist) != c.none || c.none && errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := os.ReadFile(file(dir)); string(after) != string(before) {
			t.Errorf("%s: the file was changed", name)
		}
		if err := p.Put(t.Context(), idOf(t, "runloop/a/new"), []byte("a-new-value")); strings.HasPrefix(name, "an open scope") {
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

// The list of ids of a keyring is private or refused, holds what was stored and
// no more, and a value that another program put there is taken as it is.
func TestKeyringAndItsList(t *testing.T) {
	keyring.MockInit()
	dir := filepath.Join(t.TempDir(), "secrets")
	p := open(t, Config{Provider: "keyring", Dir: dir})
	ctx, id, list := t.Context(), idOf(t, "runloop/a/b"), filepath.Join(dir, "keyring-ids")
	if ids, err := p.List(ctx); err != nil || ids != nil {
		t.Errorf("before anything was stored: %v, %v", ids, err)
	}
	for _, text := range []string{"plain-value", "Y29ycmVjdA==", "base64:of nonsense!", "base64:Y29ycmVjdA=="} {
		if err := keyring.Set("runloop/default", id.String(), text); err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(text, "base64:Y29ycmVjdA==", "correct", 1) // and no other is read
		if v, err := p.Get(ctx, id); err != nil || string(v) != want {
			t.Errorf("%s: %q, %v", text, v, err)
		}
	}
	for range 2 {
		if err := p.Put(ctx, id, []byte("correct-horse")); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(list); err != nil || string(text) != "runloop/a/b\n" {
		t.Errorf("the list is %q, %v", text, err)
	}
	write(t, list, "nonsense\n\nrunloop/a/b\n", 0o600)
	if ids, err := p.List(ctx); err != nil || !slices.Equal(ids, []ID{id}) {
		t.Errorf("with lines of nonsense: %v, %v", ids, err)
	}
	for name, spoil := range map[string]string{"an open list": list, "an open folder": dir} {
		chmod(t, spoil, 0o755)
		_, listErr := p.List(ctx)
		for door, err := range map[string]error{"list": listErr, "put": p.Put(ctx, idOf(t, "runloop/a/new"), []byte("correct-horse")), "delete": p.Delete(ctx, id)} {
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "its list of ids is not private") {
				t.Errorf("%s, %s: %v", name, door, err)
			}
		}
		if v, err := p.Get(ctx, id); err != nil || string(v) != "correct-horse" {
			t.Errorf("%s: the value is %q, %v", name, v, err)
		}
		if _, err := keyring.Get("runloop/default", "runloop/a/new"); !errors.Is(err, keyring.ErrNotFound) {
			t.Errorf("%s: stored all the same: %v", name, err)
		}
		chmod(t, list, 0o600)
		chmod(t, dir, 0o700)
	}
	others := filepath.Join(t.TempDir(), "open")
	mkdir(t, others)
	chmod(t, others, 0o755)
	if err := open(t, Config{Provider: "keyring", Dir: others}).Put(ctx, id, []byte("correct-horse")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a folder of others: %v", err)
	}
	if left, err := os.ReadDir(others); err != nil || len(left) > 0 {
		t.Errorf("a folder of others has %v, %v", left, err)
	}
	keyring.MockInitWithError(errors.New("no bus"))
	if err := p.Put(ctx, idOf(t, "runloop/a/new"), []byte("correct-horse")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("no keyring: %v", err)
	}
	if ids, err := p.List(ctx); err != nil || !slices.Equal(ids, []ID{id}) {
		t.Errorf("what was not stored is listed: %v, %v", ids, err)
	}
}

// A keyring that waits for its user is asked no longer than the call lasts.
func TestAKeyringThatWaits(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wait := make(chan struct{})
	defer close(wait)
	k := &keychain{}
	if err := k.ask(over, func() error { <-wait; return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The program of a helper is the operator's or root's, and nobody else's.
func TestProgramsThatAreTrusted(t *testing.T) {
	dir := t.TempDir()
	program, text := filepath.Join(dir, "program"), filepath.Join(dir, "text")
	write(t, program, "", 0o755)
	write(t, text, "", 0o644)
	for _, c := range []struct {
		path        string
		owner, user int
		mode        fs.FileMode
		say         string
	}{
		{program, 1000, 1000, 0o755, ""},
		{program, 0, 1000, 0o755, ""},
		{program, 0, 0, 0o700, ""},
		{program, 1001, 1000, 0o755, "belongs to user 1001, not to 1000 or root"},
		{program, 1000, 0, 0o755, "belongs to user 1000, not to 0 or root"},
		{program, -1, 1000, 0o755, "belongs to user -1"},
		{program, 1000, 1000, 0o775, "is writable by others"},
		{program, 1000, 1000, 0o757, "is writable by others"},
		{text, 1000, 1000, 0o644, "is not a program"},
		{dir, 1000, 1000, 0o755, "is not a program"},
	} {
		chmod(t, c.path, c.mode)
		info, err := os.Stat(c.path)
		if err != nil {
			t.Fatal(err)
		}
		err = trusted(c.path, owned{info, c.owner}, c.user)
		if (err == nil) != (c.say == "") || err != nil && !strings.HasSuffix(err.Error(), c.say) && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	none := open(t, Config{Provider: "exec", Command: []string{filepath.Join(dir, "none"), "{id}"}})
	if _, err := none.Get(t.Context(), idOf(t, "runloop/a/b")); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("no program: %v", err)
	}
}

// What a helper gives is one value, less the end of its line; each way in which
// it gives none is told apart, within its time and its room.
func TestWhatHelpersGive(t *testing.T) {
	long := strings.Repeat("x", MaxValue)
	ctx, id := t.Context(), idOf(t, "runloop/a/--clip")
	for script, want := range map[string]string{
		`printf 'correct-horse'`: "correct-horse", `printf 'correct-horse\n'`: "correct-horse", `printf 'correct-horse\r\n'`: "correct-horse", `printf 'two\nlines\n\n'`: "two\nlines\n",
		"printf '" + long + "'": long, "printf '" + long + `\r\n'`: long,
	} {
		if v, err := helperOf(t, script).Get(ctx, id); err != nil || string(v) != want {
			t.Errorf("%.40s: %d bytes %.20q, %v", script, len(v), v, err)
		}
	}
	for script, is := range map[string]error{
		"printf '" + long + "x'": ErrLong, "printf '" + long + `x\n'`: ErrLong, "yes value": ErrLong, "exit 0": fs.ErrNotExist, `printf '\n'`: fs.ErrNotExist,
		"echo correct-horse; exit 3": errors.ErrUnsupported,
	} {
		v, err := helperOf(t, script).Get(ctx, id)
		if !errors.Is(err, is) || v != nil {
			t.Errorf("%.40s: %.20q, %v", script, v, err)
		}
	}
	slow := helperOf(t, "sleep 60")
	slow.(*helper).timeout = 50 * time.Millisecond
	if _, err := slow.Get(ctx, id); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("a slow one: %v", err)
	}
	optional := helperOf(t, "echo correct-horse")
	optional.(*helper).command = append(optional.(*helper).command, "{name}")
	if _, err := optional.Get(ctx, id); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "would be an option") {
		t.Errorf("an option: %v", err)
	}
	for timeout, want := range map[time.Duration]time.Duration{0: 10 * time.Second, -1: 10 * time.Second, 1: 1, time.Minute: time.Minute} {
		h, err := newHelper(Config{Tenant: tenantOf(t, "default"), Command: []string{"/bin/x", "{id}"}, Timeout: timeout, Env: []string{"A", "A=1", "B=2", "C=3"}, CommandEnv: []string{"A", "C"}})
		if err != nil || h.timeout != want || !slices.Equal(h.env, []string{"A=1", "C=3"}) {
			t.Errorf("%v: %v, %q, %v", timeout, h.timeout, h.env, err)
		}
	}
}

// Of a helper that has no time left nothing goes on: not what it started, and
// what hides from its end is not waited for.
func TestNothingIsLeftOfAHelper(t *testing.T) {
	get := func(script string) {
		t.Helper()
		p := helperOf(t, script)
		p.(*helper).timeout = 200 * time.Millisecond
		if _, err := p.Get(t.Context(), idOf(t, "runloop/a/b")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", script, err)
		}
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.Open(fifo) // when there is somebody who writes
		opened <- f
	}()
	get("sleep 60 3>" + fifo + " >/dev/null & wait")
	if f, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil { // should the child have had no time to
		f.Close()
	}
	f := <-opened
	if _, err := io.ReadAll(f); err != nil { // which ends when the child has
		t.Error(err)
	}
	f.Close()

	end, err := os.OpenFile(fifo, os.O_RDWR, 0) // until it is closed the child waits
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	get("setsid cat <" + fifo + " & wait")
}

// Output is kept in memory that does not move, up to its room, and the program
// learns when it is full.
func TestOutputIsCapped(t *testing.T) {
	c := &capped{room: 9}
	for _, s := range []string{"abc", "de"} {
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil || cap(c.kept) != 9 {
			t.Fatalf("%q: %d, %v, room for %d", s, n, err, cap(c.kept))
		}
	}
	if n, err := c.Write([]byte("fghijk")); n != 4 || !errors.Is(err, ErrLong) || string(c.kept) != "abcdefghi" {
		t.Errorf("%d, %v, %q", n, err, c.kept)
	}
}
