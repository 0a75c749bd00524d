package secrets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sentIn is a list in a new private folder.
func sentIn(t *testing.T) *sentList {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "secrets")
	mkdir(t, dir)
	return &sentList{dir: dir}
}

func sentAt(t *testing.T, l *sentList, host, want string) {
	t.Helper()
	ids, err := l.at(host)
	slices.Sort(ids)
	if got := strings.Join(ids, " "); err != nil || got != want {
		t.Errorf("to %s was sent %q, %v; want %q", host, got, err, want)
	}
}

// The list is read again when it is another file, of another time or of another
// length, and forgotten when it is gone.
func TestTheListIsReadAgain(t *testing.T) {
	l := sentIn(t)
	when := time.Unix(1_700_000_000, 0)
	put := func(text string, at time.Time) {
		t.Helper()
		write(t, l.path(), text, 0o600)
		if err := os.Chtimes(l.path(), at, at); err != nil {
			t.Fatal(err)
		}
	}
	sentAt(t, l, "h:1", "")
	put("runloop/a/b@h:1\n", when)
	sentAt(t, l, "h:1", "runloop/a/b")
	put("runloop/a/c@h:1\n", when.Add(time.Second))
	sentAt(t, l, "h:1", "runloop/a/c")
	put("runloop/a/c@h:1\nrunloop/a/d@h:1\n", when.Add(time.Second))
	sentAt(t, l, "h:1", "runloop/a/c runloop/a/d")
	other := &sentList{dir: filepath.Dir(l.dir)}
	write(t, other.path(), "runloop/a/e@h:1\nrunloop/a/f@h:1\n", 0o600)
	if err := os.Chtimes(other.path(), when.Add(time.Second), when.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	rename(t, other.path(), l.path())
	sentAt(t, l, "h:1", "runloop/a/e runloop/a/f")
	remove(t, l.path())
	sentAt(t, l, "h:1", "")
}

// A line is a secret, "@" and a host, and a list with any other is refused; hosts
// of this machine are one, however they were written.
func TestLinesOfTheList(t *testing.T) {
	for _, text := range []string{"nonsense\n", "runloop/a/b\n", "nonsense@h:1\n", "runloop/a/b@h:1\n\n", "@h:1\n"} {
		l := sentIn(t)
		write(t, l.path(), text, 0o600)
		for range 2 {
			if ids, err := l.at("h:1"); err == nil || ids != nil {
				t.Errorf("%q: %q", text, ids)
			}
		}
		if err := l.add("runloop/a/b", "h:1"); err == nil {
			t.Errorf("%q: added to", text)
		}
		if got, _ := os.ReadFile(l.path()); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	l := sentIn(t)
	write(t, l.path(), "runloop/a/b@127.0.0.1:8000\nrunloop/a/c@*\n", 0o600)
	sentAt(t, l, "[::1]:8000", "runloop/a/b runloop/a/c")
	sentAt(t, l, "h", "runloop/a/c")
	if err := l.add("runloop/a/d", "[::ffff:127.0.0.1]:9"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(l.path()); string(got) != "runloop/a/b@localhost:8000\nrunloop/a/c@*\nrunloop/a/d@localhost:9\n" {
		t.Errorf("the list is %q", got)
	}
}

// The list is sorted; a secret that was sent to as many hosts as are told apart,
// and to one more, is of any, and others stay as they are.
func TestHowManyHostsAreToldApart(t *testing.T) {
	l := sentIn(t)
	for i := range maxSentHosts {
		for _, id := range []string{"runloop/a/b", fmt.Sprintf("runloop/c/s%d", i)} {
			if err := l.add(id, fmt.Sprintf("h%d:1", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	sentAt(t, l, "h3:1", "runloop/a/b runloop/c/s3")
	sentAt(t, l, "other:1", "")
	if err := l.add("runloop/a/b", "other:1"); err != nil {
		t.Fatal(err)
	}
	sentAt(t, l, "h3:1", "runloop/a/b runloop/c/s3")
	sentAt(t, l, "another:1", "runloop/a/b")
	text, err := os.ReadFile(l.path())
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if err != nil || len(lines) != 1+maxSentHosts || !slices.IsSorted(lines) || !strings.HasPrefix(string(text),
		"runloop/a/b@*\nrunloop/c/s0@h0:1\n") {
		t.Errorf("%d lines, %v: %.200s", len(lines), err, text)
	}
}

// What cannot be noted is an error, and nothing is written anywhere.
func TestAListThatCannotBeKept(t *testing.T) {
	open := sentIn(t)
	chmod(t, open.dir, 0o755)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "", 0o600)
	for name, l := range map[string]*sentList{"an open folder": open, "below a file": {dir: file}} {
		if err := l.add("runloop/a/b", "h:1"); err == nil || !strings.HasPrefix(err.Error(),
			"noting that runloop/a/b is sent to h:1: ") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(l.path()); err == nil {
			t.Errorf("%s: written all the same", name)
		}
	}
	if ids, err := (&sentList{dir: file}).at("h:1"); err == nil {
		t.Errorf("below a file: %q", ids)
	}
}

// A value that came although the call was over is looked for as what it is.
func TestAValueThatCameLate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	sender, _, _ := others(t, dir)
	if err := sender.Sending("runloop/a/b", "h:443"); err != nil {
		t.Fatal(err)
	}
	r, p, _ := others(t, dir)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := r.Hear(over, "h:443", nil); err != nil || scrubbed(r, theirs) != "[secret]" || p.gets != 1 {
			t.Errorf("%q, %v, fetched %d", scrubbed(r, theirs), err, p.gets)
		}
	}
}
