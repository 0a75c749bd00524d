package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const theirs = "correct-horse-battery"

// others is a run of the tenant whose list is in dir, and how often the provider
// was opened.
func others(t *testing.T, dir string) (*Run, *counting, *int) {
	p, opened := &counting{memory: memory{idOf(t, "runloop/a/b"): theirs}}, new(int)
	r := NewRun(func() (Provider, error) { *opened++; return p, nil })
	r.Remember(dir, map[string][]string{"settled.example:443": {"runloop/a/b"}})
	t.Cleanup(r.Close)
	return r, p, opened
}

func scrubbed(r *Run, text string) string { return string(r.Scrub([]byte(text), func(string) {})) }

// A run that holds no secret does not see the value that another one sent to a
// host which both reach; it opens nothing before that host has answered.
//
//rlp:holds R82
func TestWhatAHostWasSent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	reader, p, opened := others(t, dir)
	hear := func(host string) {
		t.Helper()
		if err := reader.Hear(t.Context(), host, nil); err != nil {
			t.Fatal(err)
		}
	}
	hear("api.example.com:443")
	sender, _, _ := others(t, dir)
	for range 2 {
		if err := sender.Sending("runloop/a/b", "api.example.com:443"); err != nil {
			t.Fatal(err)
		}
	}
	hear("other.example:443")
	if *opened != 0 || reader.Knows() || scrubbed(reader, theirs) != theirs {
		t.Errorf("control: opened %d, knows %v", *opened, reader.Knows())
	}
	hear("api.example.com:443") // which was sent it since it answered last
	hear("api.example.com:443")
	if got := scrubbed(reader, "it is "+theirs); got != "it is [secret]" || p.gets != 1 || !reader.Knows() {
		t.Errorf("%q, fetched %d times", got, p.gets)
	}
	if _, err := reader.Handle(t.Context(), "runloop/a/b"); err != nil ||
		scrubbed(reader, theirs) != "[secret runloop/a/b]" {
		t.Errorf("a run with its handle: %q, %v", scrubbed(reader, theirs), err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "sent")); err != nil ||
		string(text) != "runloop/a/b@api.example.com:443\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// What the configuration sends somewhere is looked for in what that host says.
func TestWhatTheConfigurationSends(t *testing.T) {
	r, _, opened := others(t, t.TempDir())
	if err := r.Hear(t.Context(), "other.example:443", nil); err != nil || *opened != 0 || scrubbed(r, theirs) != theirs {
		t.Errorf("control: %v, opened %d", err, *opened)
	}
	if err := r.Hear(t.Context(), "settled.example:443", nil); err != nil || scrubbed(r, theirs) != "[secret]" {
		t.Errorf("%q, %v", scrubbed(r, theirs), err)
	}
}

// Values that the policy binds to a host are looked for by their names, one that
// is gone is none, and what cannot be read is told once.
func TestWhatMayBeSentToAHost(t *testing.T) {
	r, _, _ := others(t, t.TempDir())
	if err := r.Hear(t.Context(), "h:443", []string{"runloop/a/b", "runloop/a/gone"}); err != nil ||
		scrubbed(r, theirs) != "[secret runloop/a/b]" {
		t.Errorf("%q, %v", scrubbed(r, theirs), err)
	}
	broken := NewRun(func() (Provider, error) { return nil, &UnavailableError{Provider: "age", Why: "there is none"} })
	if err := broken.Hear(t.Context(), "h:443", []string{"runloop/a/b"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("told %v", err)
	}
	if err := broken.Hear(t.Context(), "h:443", []string{"runloop/a/b", "runloop/a/c"}); err != nil {
		t.Errorf("told twice: %v", err)
	}
	late, _, _ := others(t, t.TempDir())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	late.open = func() (Provider, error) { return nil, over.Err() }
	if err := late.Hear(over, "h:443", []string{"runloop/a/b"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is over: %v", err)
	}
	if late.looked["runloop/a/b"] {
		t.Error("what a call had no time for is not looked for again")
	}
}

// The list is private, whole or refused, and bounded.
func TestTheListOfWhatWasSent(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r, _, _ := others(t, dir)
	for i := range maxSentHosts + 5 {
		if err := r.Sending("runloop/a/b", fmt.Sprintf("h%d.example:443", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Sending("runloop/a/c", "one.example:443"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "sent"))
	if err != nil || string(text) != "runloop/a/b@*\nrunloop/a/c@one.example:443\n" {
		t.Errorf("%q, %v", text, err)
	}
	reader, _, _ := others(t, dir)
	if err := reader.Hear(t.Context(), "any.example:443", nil); err != nil || scrubbed(reader, theirs) != "[secret]" {
		t.Errorf("%q, %v", scrubbed(reader, theirs), err)
	}
	for name, spoil := range map[string]func(path string) error{
		"no line of it": func(path string) error { return os.WriteFile(path, []byte("nonsense\n"), 0o600) },
		"others read":   func(path string) error { return os.Chmod(path, 0o644) },
		"a link": func(path string) error {
			return errors.Join(os.Rename(path, path+"2"),
				os.Symlink(path+"2", path))
		},
	} {
		if err := spoil(filepath.Join(dir, "sent")); err != nil {
			t.Fatal(err)
		}
		fresh, _, _ := others(t, dir)
		if err := fresh.Sending("runloop/a/d", "h:443"); err == nil {
			t.Errorf("%s: it was sent all the same", name)
		}
		if err := fresh.Hear(t.Context(), "h:443", nil); err == nil {
			t.Errorf("%s: nobody was told", name)
		}
		if err := os.WriteFile(filepath.Join(dir, "fresh"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "fresh"), filepath.Join(dir, "sent")); err != nil {
			t.Fatal(err)
		}
		if err := fresh.Sending("runloop/a/d", "h:443"); err != nil {
			t.Errorf("%s: control: %v", name, err)
		}
	}
}

// A run that another one launched sees nothing of what the runs above it know, to
// every depth, and goes on not to see it when they are over.
//
//rlp:holds R82 Y46
func TestWhatRunsAboveKnow(t *testing.T) {
	top, _, _ := others(t, t.TempDir())
	child, grandchild, stranger := runWith(t, "another-secret"), runWith(t), runWith(t)
	if _, err := top.Handle(t.Context(), "runloop/a/b"); err != nil {
		t.Fatal(err)
	}
	child.Under(top)
	grandchild.Under(child)
	top.Close()
	for name, r := range map[string]*Run{"child": child, "grandchild": grandchild} {
		if got := scrubbed(r, theirs+" "+strings.ToUpper(theirs)); got != "[secret] [secret]" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := scrubbed(grandchild, "another-secret"); got != "[secret]" {
		t.Errorf("the middle one's: %q", got)
	}
	if got := scrubbed(stranger, theirs); got != theirs {
		t.Errorf("control: %q", got)
	}
	if got := scrubbed(child, "another-secret"); got != "[secret runloop/test/s0]" {
		t.Errorf("its own: %q", got)
	}
}

// A value is found backwards, by bytes and by characters, and so in every writing.
func TestBackwards(t *testing.T) {
	r := runWith(t, "Zürich-4711-x", "plain-value-9")
	for _, text := range []string{
		"9-eulav-nialp", "9-EULAV-nialp", "x-1174-hcir\xbc\xc3Z", "x-1174-hcirüZ",
		"392d65756c61762d6e69616c70", "OS1ldWxhdi1uaWFscA", "9%2deulav%2Dnialp",
	} {
		if got := scrubbed(r, "a "+text+" b"); strings.Contains(got, text) ||
			!strings.HasPrefix(got, "a [secret runloop/test/s") {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := scrubbed(r, "9-eulav-nial"); got != "9-eulav-nial" {
		t.Errorf("control: %q", got)
	}
}

// A server of this machine is the same by each of its names; another port, and
// another machine, is another.
//
//rlp:holds R82
func TestThisMachineHasManyNames(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:8000": true, "localhost:8000": true, "[::1]:8000": true, "127.8.9.1:8000": true, "a.localhost:8000": true,
		"localhost:8001": false, "10.0.0.1:8000": false, "localhost.example:8000": false, "xlocalhost:8000": false,
	} {
		dir := filepath.Join(t.TempDir(), "secrets")
		sender, _, _ := others(t, dir)
		if err := sender.Sending("runloop/a/b", "127.0.0.1:8000"); err != nil {
			t.Fatal(err)
		}
		reader, _, _ := others(t, dir)
		if err := reader.Hear(t.Context(), host, nil); err != nil {
			t.Fatal(err)
		}
		if got := scrubbed(reader, theirs) == "[secret]"; got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}

// What the policy of a run above binds to a host is looked for in what that host
// says, to every depth, though nobody has fetched it, and elsewhere not.
//
//rlp:holds R82
func TestWhatPoliciesAboveBind(t *testing.T) {
	for bound, want := range map[string]map[string]bool{
		"runloop/a/b@api.example.com:443": {
			"api.example.com:443": true, "api.example.com:444": false,
			"other.example:443": false,
		},
		"runloop/a/b@*.example.com:443":       {"api.example.com:443": true, "example.com:443": false},
		"runloop/a/b@127.0.0.1:80":            {"localhost:80": true, "localhost:81": false},
		"runloop/a/b":                         {"other.example:443": true},
		"runloop/a/unknown@other.example:443": {"other.example:443": false},
	} {
		for host, found := range want {
			for depth := range 3 {
				dir := t.TempDir()
				r, _, opened := others(t, dir)
				r.Binds([]string{bound})
				for range depth {
					up := r
					r, _, opened = others(t, dir)
					r.Under(up)
				}
				if err := r.Hear(t.Context(), host, nil); err != nil {
					t.Fatal(err)
				}
				if got := scrubbed(r, theirs); (got == "[secret]") != (found && depth > 0) || *opened > 0 && depth == 0 {
					t.Errorf("%s, %s, depth %d: %q", bound, host, depth, got)
				}
			}
		}
	}
}
