// Package logtest makes what tests of an audit log need: journals of runs, and a key
// that signs checkpoints in a form of its own.
package logtest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// A Key signs as a key of the operator's would.
type Key struct{ key ed25519.PrivateKey }

// NewKey is the key of a name.
func NewKey(name string) Key {
	seed := sha256.Sum256([]byte(name))
	return Key{ed25519.NewKeyFromSeed(seed[:])}
}

// Seal signs a checkpoint.
func (k Key) Seal(size uint64, root [32]byte) ([]byte, error) { return k.Mark(size, root, nil) }

// Mark signs what was pruned.
func (k Key) Mark(size uint64, root [32]byte, lines []string) ([]byte, error) {
	text := fmt.Sprintf("test\n%d\n%x\n%s", size, root, strings.Join(append(lines, ""), "\n"))
	return []byte(text + "\n" + base64.StdEncoding.EncodeToString(ed25519.Sign(k.key, []byte(text)))), nil
}

// Open reads what the key signed.
func (k Key) Open(note []byte) (size uint64, root [32]byte, lines []string, err error) {
	i := strings.LastIndex(string(note), "\n")
	if i < 1 || note[i-1] != '\n' {
		return 0, root, nil, errors.New("no note")
	}
	text, sig := string(note[:i]), string(note[i+1:])
	raw, err := base64.StdEncoding.Strict().DecodeString(sig)
	if err != nil || !ed25519.Verify(k.key.Public().(ed25519.PublicKey), []byte(text), raw) {
		return 0, root, nil, errors.New("it is not signed with this key")
	}
	lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var sum []byte
	if n, err := fmt.Sscanf(lines[1]+" "+lines[2], "%d %x", &size, &sum); n != 2 || err != nil || len(sum) != 32 {
		return 0, root, nil, errors.New("no head")
	}
	return size, [32]byte(sum), lines[3:], nil
}

// Dir is where the runs of a home have their journals.
func Dir(home string) string { return filepath.Join(home, "journal") }

// Record makes the journal of a run of n denials and an end.
func Record(t testing.TB, home, run string, n int) {
	t.Helper()
	End(t, Begin(t, home, run, n))
}

// End makes a run end well.
func End(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// Begin makes the journal of a run that has made n decisions, every third of which
// allowed, and goes on.
func Begin(t testing.TB, home, run string, n int) *journal.Journal {
	t.Helper()
	agent := "writer"
	if len(run)%2 == 0 {
		agent = "reader"
	}
	j, err := journal.Create(journal.Options{Dir: Dir(home), Head: audit.Head{
		RunID: run, TraceID: "t", Tenant: "default",
		Agent: agent,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	Decide(t, j, n)
	return j
}

// Decide makes a run make n decisions more.
func Decide(t testing.TB, j *journal.Journal, n int) {
	t.Helper()
	name := func(s string) audit.Name {
		n, err := j.Intern(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	d := audit.Decision{
		Cap: name("kb.write"), Op: name("kb_put"), Reason: name("domain_not_permitted"),
		Layer: name("override:writer.toml"), Keep: true,
	}
	for i := range n {
		d.Deny = i%3 != 0
		d.Target = fmt.Sprintf("/home/user/notes/%d.md", i)
		if _, err := j.Decide(&d); err != nil {
			t.Fatal(err)
		}
	}
}
