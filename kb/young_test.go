//go:build unix

package kb_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/kb"
)

// A journal that the log has is left alone while it is young, and judged when it
// is put away: a process that ends a hundred runs a second would read each of the
// last two hundred journals at the end of each.
func TestJournalIsOpenedAgainWhenItIsPutAway(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	var later atomic.Int64
	began := time.Now() // however slow the machine is
	s, err := kb.Open(t.Context(), kb.Options{Home: home, Now: func() time.Time {
		return began.Add(time.Duration(later.Load()))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeRun(t, dir, "run1", 3).Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Ingest(t.Context()); err != nil || got.Records == 0 || len(got.Damaged) != 0 {
		t.Fatal(got, err)
	}
	// As its writer would: only who opens it can tell.
	f, err := os.Open(filepath.Join(dir, "run1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Ingest(t.Context()); err != nil || len(got.Damaged) != 0 {
		t.Errorf("opened while young: %+v, %v", got, err)
	}
	later.Store(int64(time.Hour))
	if got, err := s.Ingest(t.Context()); err != nil || len(got.Damaged) == 0 {
		t.Errorf("not judged when it was put away: %+v, %v", got, err)
	}
}
