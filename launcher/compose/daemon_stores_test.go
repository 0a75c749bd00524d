package compose

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/kb"
)

// A store that cannot be opened is not tried again by each who asks: all who ask
// at once get the answer of the first.
func TestAStoreThatFailedIsTriedOnceWithAPause(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"), home.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Dir(), "kb"), nil, 0o600); err != nil { // a file where the database belongs
		t.Fatal(err)
	}
	s := newStores(t.Context(), io.Discard)
	_, first := s.Take(h, config.Default())
	if first == nil {
		t.Fatal("it was opened")
	}
	if err := os.Remove(filepath.Join(h.Dir(), "kb")); err != nil {
		t.Fatal(err)
	}
	if _, again := s.Take(h, config.Default()); again != first {
		t.Errorf("it was tried again: %v", again)
	}
	f := s.failed[home.DefaultTenant]
	f.at = f.at.Add(-againAfter)
	s.failed[home.DefaultTenant] = f
	k, err := s.Take(h, config.Default())
	if err != nil {
		t.Fatalf("after the pause: %v", err)
	}
	s.giveBack(k)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What is told to take journals in while the stores are given up opens none anew,
// and is not under way when they are closed.
func TestNothingIsTakenInBehindTheEnd(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"), home.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	s := newStores(t.Context(), io.Discard)
	var tellers sync.WaitGroup
	for range 4 {
		tellers.Go(func() {
			for range 50 {
				s.TakeIn(h, config.Default(), 1)
			}
		})
	}
	err = s.Close()
	tellers.Wait()
	s.behind.Wait()
	if err != nil {
		t.Error(err)
	}
	s.TakeIn(h, config.Default(), 1)
	s.behind.Wait()
	next, err := kb.Open(t.Context(), StoreOptions(h, config.Default()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !next.Owner() {
		t.Error("the log is still open")
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// A log that could not be closed is an error of who kept it open.
func TestAStoreThatFailsToCloseIsTold(t *testing.T) {
	h, err := home.Open(filepath.Join(t.TempDir(), "home"), home.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	s := newStores(t.Context(), io.Discard)
	k, err := s.Take(h, config.Default())
	if err != nil {
		t.Fatal(err)
	}
	s.giveBack(k)
	if _, err := k.KB.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(h.Dir(), "kb")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil {
		t.Error("a database whose folder is gone was closed without an error")
	}
}
