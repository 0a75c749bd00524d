package kb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/audit"
)

// ends are the end records that the log has of a run.
func ends(t *testing.T, s *Store, run string) []audit.Record {
	t.Helper()
	var all []audit.Record
	for r, err := range s.Audit(t.Context(), Filter{Run: run}) {
		if err != nil {
			t.Fatal(err)
		}
		if audit.Ends(r.Kind()) {
			all = append(all, r)
		}
	}
	return all
}

func removeJournal(t *testing.T, home, run string) {
	t.Helper()
	dir, err := JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, run)); err != nil {
		t.Fatal(err)
	}
}

// A run whose journal goes before it was read to its end gets an end that says
// so, once; one whose journal is there goes on.
func TestAJournalThatIsGoneEndsItsRun(t *testing.T) {
	home := t.TempDir()
	s := openSealed(t, Options{Home: home})
	begun(t, home, "gone", 5)
	there := begun(t, home, "there", 5)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(ends(t, s, "gone")) + len(ends(t, s, "there")); n != 0 {
		t.Fatalf("%d ends of runs that go on", n)
	}
	removeJournal(t, home, "gone")
	got, err := s.Ingest(t.Context())
	if err != nil || len(got.Damaged) != 1 || !strings.Contains(got.Damaged[0], "run gone: its journal is gone") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = s.Ingest(t.Context()); err != nil || len(got.Damaged) != 0 {
		t.Errorf("again: %+v, %v", got, err)
	}
	last := ends(t, s, "gone")
	if len(last) != 1 || last[0].Event.Reason != reasonDamaged || last[0].RunSeq != 6 {
		t.Errorf("%+v", last)
	}
	if err := there.Event(&audit.Event{Kind: audit.KindRunComplete, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	if last := ends(t, s, "there"); len(last) != 1 || last[0].Event.Outcome != "ok" {
		t.Errorf("%+v", last)
	}
	if r, err := s.VerifyLog(t.Context(), LogCheck{}); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// Whoever removes a journal and what the store remembers it by is found out.
func TestARunWithoutEndAndJournalIsAFault(t *testing.T) {
	home := t.TempDir()
	s := openSealed(t, Options{Home: home})
	begun(t, home, "gone", 5)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifyLog(t.Context(), LogCheck{}); err != nil {
		t.Fatal(err)
	}
	removeJournal(t, home, "gone")
	e := s.backend.(*owned).engine
	if err := e.db.Update(func(txn *badger.Txn) error { return txn.Delete(keyOpen("gone")) }); err != nil {
		t.Fatal(err)
	}
	for _, check := range []LogCheck{{}, {Run: "gone"}} {
		_, err := s.VerifyLog(t.Context(), check)
		var fault *LogError
		if !errors.As(err, &fault) || fault.Fault != FaultRun || !strings.Contains(err.Error(), "its journal is gone") {
			t.Errorf("%+v: %v", check, err)
		}
	}
}
