package kb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// withDescriptors lets the process open so many files more until the test ends, or
// the function that it returns is called.
func withDescriptors(t *testing.T, n int) (restore func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	var held []*os.File
	restore = func() {
		for _, f := range held {
			f.Close()
		}
		held = nil
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(restore)
	least, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	held = append(held, least)
	now := was
	now.Cur = uint64(least.Fd()) + 1 + 320 // others of this process are among them
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	for range n {
		held[len(held)-1].Close()
		held = held[:len(held)-1]
	}
	return restore
}

// A store that can open no files answers that, whatever it is asked to write, and
// goes on when it can; nothing that was acknowledged is gone.
func TestAStoreWithoutDescriptorsAnswers(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s, err := Open(t.Context(), Options{Home: home, Seal: func(uint64, [32]byte) ([]byte, error) {
		return []byte("x"),
			nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := s.View(Origin{})
	if _, err := v.Put(t.Context(), "notes", "before", []byte("1")); err != nil {
		t.Fatal("control:", err)
	}
	dir, err := JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{RunID: "run1", Tenant: DefaultTenant, Agent: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Event(&audit.Event{Kind: audit.KindRunComplete}), j.Close()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 3, db.MinDescriptors - 1} {
		restore := withDescriptors(t, n)
		_, put := v.Put(t.Context(), "notes", "during", []byte("2"))
		_, ingest := s.Ingest(t.Context())
		_, sealed := send(t.Context(), s.backend.(*owned).engine, wire.OpSeal, fields{})
		got, read := v.Get(t.Context(), "notes", "before")
		restore()
		for i, err := range []error{put, ingest, sealed} {
			if !errors.Is(err, wire.ErrUnavailable) || !strings.Contains(err.Error(), "descriptors") {
				t.Errorf("%d descriptors, %d: %v", n, i, err)
			}
		}
		if read != nil || string(got.Bytes) != "1" {
			t.Errorf("%d descriptors: read %q, %v", n, got.Bytes, read)
		}
	}
	defer withDescriptors(t, db.MinDescriptors+8)()
	if _, err := v.Put(t.Context(), "notes", "after", []byte("3")); err != nil {
		t.Error("control:", err)
	}
	if got, err := s.Ingest(t.Context()); err != nil || got.Runs != 1 || len(got.Damaged) > 0 {
		t.Errorf("control: %+v, %v", got, err)
	}
}

// A store is opened with the files that it needs, or not at all and with words.
func TestOpeningWantsDescriptors(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	restore := withDescriptors(t, 12)
	s, err := Open(context.Background(), Options{Home: home})
	restore()
	if !errors.Is(err, wire.ErrUnavailable) || !strings.Contains(err.Error(), "ulimit -n") {
		t.Fatalf("%v, %v", s, err)
	}
	if s, err = Open(t.Context(), Options{Home: home}); err != nil {
		t.Fatal("control:", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A store that opens can be written and closed: it does not open with so few files
// left that it could do neither.
func TestAStoreThatOpensCanBeWritten(t *testing.T) {
	home, opened := filepath.Join(t.TempDir(), "home"), 0
	s, err := Open(t.Context(), Options{Home: home}) // later ones need not write to open
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for n := db.MinDescriptors; n < db.MinDescriptors+40; n += 2 {
		restore := withDescriptors(t, n)
		s, err := Open(t.Context(), Options{Home: home})
		if err != nil {
			restore()
			if !errors.Is(err, wire.ErrUnavailable) || opened > 0 {
				t.Errorf("%d: %v", n, err)
			}
			continue
		}
		opened++
		_, err = s.View(Origin{}).Put(t.Context(), "notes", "a", []byte("1"))
		if err = errors.Join(err, s.Close()); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		restore()
	}
	if opened == 0 {
		t.Error("control: it never opens")
	}
}

// A merge does not write a table before that can be done: badger would leave out
// one that it cannot make, and take away those that it is made of.
func TestMergesWaitForDescriptors(t *testing.T) {
	asked := 0
	l := &db.Listener{Failed: make(chan error, 1), Free: func() error {
		if asked++; asked < 3 {
			return &db.ShortError{}
		}
		return nil
	}}
	l.Debugf("[%d] LOG Compact. Added %d keys. Skipped %d keys. Iteration took: %v", 1, 2, 3, 4)
	if asked != 3 || len(l.Failed) != 1 {
		t.Errorf("asked %d times, told %d", asked, len(l.Failed))
	}
	l.Debugf("Discard stats: %v", 1)
	if asked != 3 {
		t.Error("asked about something else")
	}
}
