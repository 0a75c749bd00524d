package compose

import (
	"fmt"
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
	s.GiveBack(k)
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
	s.GiveBack(k)
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

// However many tenants are named, few stores stay open that nobody uses, those that
// were used last; one that is used stays open, and each opens again.
func TestFewStoresStayOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	s := newStores(t.Context(), t.Output())
	at := func(i int) home.Home {
		h, err := home.Open(dir, fmt.Sprint("t", i))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	take := func(i int) *KeptStore {
		k, err := s.Take(at(i), config.Default())
		if err != nil || k == nil {
			t.Fatal(i, k, err)
		}
		if head, err := k.KB.Head(t.Context()); err != nil || head.Size != 0 {
			t.Fatal(head, err)
		}
		return k
	}
	open := func() (n int) {
		for _, k := range s.byTenant {
			if k.open {
				n++
			}
		}
		return n
	}
	used := take(0)
	for i := 1; i < mostOpen+4; i++ {
		s.GiveBack(take(i))
	}
	if n := open(); n != mostOpen+1 { // the last one was opened when as many were open as may
		t.Errorf("%d stores are open", n)
	}
	for i, want := range []bool{true, false, false, false, true} {
		if k := s.byTenant[fmt.Sprint("t", i)]; (k != nil && k.open) != want {
			t.Errorf("%d: %+v", i, k)
		}
	}
	if _, err := used.KB.Head(t.Context()); err != nil {
		t.Errorf("one that is used was closed: %v", err)
	}
	s.GiveBack(used)
	s.GiveBack(take(1))
	var asking sync.WaitGroup // all at once, and each finds its own open
	for i := range 3 * mostOpen {
		asking.Go(func() {
			k, err := s.Take(at(i%(mostOpen+8)), config.Default())
			if err == nil {
				_, err = k.KB.Head(t.Context())
				s.GiveBack(k)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
