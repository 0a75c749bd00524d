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

	"github.com/zalando/go-keyring"
	"golang.org/x/sys/unix"
)

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
		for door, err := range map[string]error{"list": listErr, "put": p.Put(ctx, idOf(t, "runloop/a/new"),
			[]byte("correct-horse")), "delete": p.Delete(ctx, id)} {
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
	if err := open(t, Config{Provider: "keyring", Dir: others}).Put(ctx, id, []byte("correct-horse")); !errors.Is(err,
		errors.ErrUnsupported) {
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
		if (err == nil) != (c.say == "") || err != nil && !strings.HasSuffix(err.Error(), c.say) &&
			!strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	none := open(t, Config{Provider: "exec", Command: []string{filepath.Join(dir, "none"), "{id}"}})
	if _, err := none.Get(t.Context(), idOf(t, "runloop/a/b")); !errors.Is(err, fs.ErrNotExist) ||
		!errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("no program: %v", err)
	}
}

// What a helper gives is one value, less the end of its line; each way in which
// it gives none is told apart, within its time and its room.
func TestWhatHelpersGive(t *testing.T) {
	long := strings.Repeat("x", MaxValue)
	ctx, id := t.Context(), idOf(t, "runloop/a/--clip")
	for script, want := range map[string]string{
		`printf 'correct-horse'`: "correct-horse", `printf 'correct-horse\n'`: "correct-horse",
		`printf 'correct-horse\r\n'`: "correct-horse", `printf 'two\nlines\n\n'`: "two\nlines\n",
		"printf '" + long + "'": long, "printf '" + long + `\r\n'`: long,
	} {
		if v, err := helperOf(t, script).Get(ctx, id); err != nil || string(v) != want {
			t.Errorf("%.40s: %d bytes %.20q, %v", script, len(v), v, err)
		}
	}
	for script, is := range map[string]error{
		"printf '" + long + "x'": ErrLong, "printf '" + long + `x\n'`: ErrLong, "yes value": ErrLong,
		"exit 0": fs.ErrNotExist, `printf '\n'`: fs.ErrNotExist,
		"echo correct-horse; exit 3": errors.ErrUnsupported,
	} {
		v, err := helperOf(t, script).Get(ctx, id)
		if !errors.Is(err, is) || v != nil {
			t.Errorf("%.40s: %.20q, %v", script, v, err)
		}
	}
	slow := helperOf(t, "sleep 60")
	slow.(*helper).timeout = 50 * time.Millisecond
	if _, err := slow.Get(ctx, id); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(),
		"did not answer in time") {
		t.Errorf("a slow one: %v", err)
	}
	optional := helperOf(t, "echo correct-horse")
	optional.(*helper).command = append(optional.(*helper).command, "{name}")
	if _, err := optional.Get(ctx, id); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(),
		"would be an option") {
		t.Errorf("an option: %v", err)
	}
	for timeout, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, -1: 10 * time.Second, 1: 1,
		time.Minute: time.Minute,
	} {
		h, err := newHelper(Config{
			Tenant: tenantOf(t, "default"), Command: []string{"/bin/x", "{id}"}, Timeout: timeout,
			Env: []string{"A", "A=1", "B=2", "C=3"}, CommandEnv: []string{"A", "C"},
		})
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
