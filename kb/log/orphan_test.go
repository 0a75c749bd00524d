package log

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/logtest"
)

// ends are the end records that the log has of a run.
func ends(t *testing.T, s *testLog, run string) []audit.Record {
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
	dir := logtest.Dir(home)
	if err := os.Remove(filepath.Join(dir, run)); err != nil {
		t.Fatal(err)
	}
}

// A run whose journal goes before it was read to its end gets an end that says
// so, once; one whose journal is there goes on.
func TestAJournalThatIsGoneEndsItsRun(t *testing.T) {
	home := t.TempDir()
	s := openLog(t, at(home))
	logtest.Begin(t, home, "gone", 5)
	there := logtest.Begin(t, home, "there", 5)
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
	if r, err := s.VerifyLog(t.Context(), Check{}); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// Whoever removes a journal and what the store remembers it by is found out.
func TestARunWithoutEndAndJournalIsAFault(t *testing.T) {
	home := t.TempDir()
	s := openLog(t, at(home))
	logtest.Begin(t, home, "gone", 5)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.VerifyLog(t.Context(), Check{}); err != nil {
		t.Fatal(err)
	}
	removeJournal(t, home, "gone")
	if err := s.db.Update(func(txn *badger.Txn) error { return txn.Delete(keyOpen("gone")) }); err != nil {
		t.Fatal(err)
	}
	for _, check := range []Check{{}, {Run: "gone"}} {
		_, err := s.VerifyLog(t.Context(), check)
		var fault *Error
		if !errors.As(err, &fault) || fault.Fault != FaultRun || !strings.Contains(err.Error(), "its journal is gone") {
			t.Errorf("%+v: %v", check, err)
		}
	}
}

// What lies among the journals and is none is told by its name, and keeps nothing
// out: neither what is named like a group file nor what is named like a run.
func TestWhatIsNoJournalKeepsNothingOut(t *testing.T) {
	put := map[string]func(path string) error{
		"a directory":        func(p string) error { return os.MkdirAll(filepath.Join(p, "full"), 0o700) },
		"a closed directory": func(p string) error { return os.Mkdir(p, 0) },
		"a FIFO":             func(p string) error { return unix.Mkfifo(p, 0o600) },
		"a link":             func(p string) error { return os.Symlink("/dev/null", p) },
		"a link to nothing":  func(p string) error { return os.Symlink("nothing", p) },
		"a socket": func(p string) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err == nil {
				err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: p}), unix.Close(fd))
			}
			return err
		},
	}
	for what, put := range put {
		for _, name := range []string{".group-x", "0-run"} {
			home, err := os.MkdirTemp("", "rlp") // a socket has a short path
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(home) })
			s := openLog(t, at(home))
			logtest.Record(t, home, "run", 5)
			dir := logtest.Dir(home)
			if err := put(filepath.Join(dir, name)); err != nil {
				t.Fatal(what, err)
			}
			got, err := s.Ingest(t.Context())
			if err != nil || len(got.Damaged) != 1 || !strings.Contains(got.Damaged[0], name) {
				t.Errorf("%s called %s: %+v, %v", what, name, got, err)
			}
			if n := len(ends(t, s, "run")); n != 1 {
				t.Errorf("%s called %s: %d ends of a run that has nothing to do with it", what, name, n)
			}
		}
	}
}
