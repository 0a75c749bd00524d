package kb

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// A testKey signs as a key of the operator's would, in a form of its own.
type testKey struct{ ed25519.PrivateKey }

func newTestKey(name string) testKey {
	seed := sha256.Sum256([]byte(name))
	return testKey{ed25519.NewKeyFromSeed(seed[:])}
}

func (k testKey) seal(size uint64, root [32]byte) ([]byte, error) { return k.mark(size, root, nil) }

func (k testKey) mark(size uint64, root [32]byte, lines []string) ([]byte, error) {
	text := fmt.Sprintf("test\n%d\n%x\n%s", size, root, strings.Join(append(lines, ""), "\n"))
	return []byte(text + "\n" + base64.StdEncoding.EncodeToString(ed25519.Sign(k.PrivateKey, []byte(text)))), nil
}

func (k testKey) open(note []byte) (o Opened, err error) {
	i := strings.LastIndex(string(note), "\n")
	if i < 1 || note[i-1] != '\n' {
		return o, errors.New("no note")
	}
	text, sig := string(note[:i]), string(note[i+1:])
	raw, err := base64.StdEncoding.Strict().DecodeString(sig)
	if err != nil || !ed25519.Verify(k.Public().(ed25519.PublicKey), []byte(text), raw) {
		return o, errors.New("it is not signed with this key")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var root []byte
	if n, err := fmt.Sscanf(lines[1]+" "+lines[2], "%d %x", &o.Head.Size, &root); n != 2 || err != nil || len(root) != 32 {
		return o, errors.New("no head")
	}
	o.Head.Root = [32]byte(root)
	o.Lines = lines[3:]
	return o, nil
}

// sealed is o with checkpoints signed by the key of the tests.
func sealed(o Options) Options {
	k := newTestKey("ours")
	o.Seal, o.SealMark = k.seal, k.mark
	return o
}

func openSealed(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), sealed(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// record makes the journal of a run of n denials and an end.
func record(t testing.TB, home, run string, n int) {
	t.Helper()
	endRun(t, begun(t, home, run, n))
}

func endRun(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// begun is the journal of a run that has made n decisions, every third of which
// allowed, and goes on.
func begun(t testing.TB, home, run string, n int) *journal.Journal {
	t.Helper()
	dir, err := JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	agent := "writer"
	if len(run)%2 == 0 {
		agent = "reader"
	}
	j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{
		RunID: run, TraceID: "t", Tenant: "default",
		Agent: agent,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	decide(t, j, n)
	return j
}

func decide(t testing.TB, j *journal.Journal, n int) {
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
