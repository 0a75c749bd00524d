package kb_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/internal/base/owner/ownertest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// What was put is there for the next owner, and a client becomes the owner
// when there is none any more.
func TestSuccession(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	var stores []*kb.Store
	for range 4 {
		stores = append(stores, openStore(t, home))
	}
	ctx := t.Context()
	var last uint64
	for i, s := range stores {
		rev, err := stores[len(stores)-1].View(kb.Origin{}).Put(ctx, "notes", "a", []byte{byte(i)})
		if err != nil || rev <= last {
			t.Fatalf("put under owner %d: revision %d after %d, %v", i, rev, last, err)
		}
		last = rev
		for _, other := range stores[i:] {
			v, err := other.View(kb.Origin{}).Get(ctx, "notes", "a")
			if err != nil || v.Bytes[0] != byte(i) {
				t.Fatalf("under owner %d: %v %v", i, v, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.View(kb.Origin{}).Get(ctx, "notes", "a"); !errors.Is(err, kb.ErrClosed) {
			t.Errorf("a closed store answers: %v", err)
		}
	}
	for _, left := range []string{"kb.sock"} {
		if _, err := os.Lstat(filepath.Join(home, "run", left)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", left, err)
		}
	}
	v, err := openStore(t, home).View(kb.Origin{}).Get(ctx, "notes", "a")
	if err != nil || v.Revision != last {
		t.Errorf("opened again: %+v %v", v, err)
	}
}

// A store whose folder is gone, as one whose disk is full, does not hold up the end
// of its process. It stays claimed until its engine is done, and loses nothing.
func TestAStoreThatCannotBeWrittenIsClosed(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openStore(t, home)
	if _, err := s.View(kb.Origin{}).Put(t.Context(), "notes", "a", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "kb")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("closed without its folder: %v", err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	v, err := openStore(t, home).View(kb.Origin{}).Get(t.Context(), "notes", "a")
	if err != nil || string(v.Bytes) != "kept" {
		t.Errorf("opened again: %v, %v", v, err)
	}
}

// Owners come and go under users that never stop.
func TestSuccessionUnderLoad(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	first := openStore(t, home)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for w := range 3 {
		s := openStore(t, home)
		wg.Go(func() {
			v := s.View(kb.Origin{})
			for i := 0; ctx.Err() == nil; i++ {
				key := string(rune('a' + w))
				rev, err := v.Put(context.Background(), "notes", key, []byte{byte(i)})
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := v.Get(context.Background(), "notes", key); err != nil || got.Revision != rev {
					t.Errorf("put gave revision %d, get %d: %v", rev, got.Revision, err)
					return
				}
			}
		})
	}
	owner := first
	for range 5 {
		next := openStore(t, home)
		if err := owner.Close(); err != nil {
			t.Error(err)
		}
		if _, err := next.View(kb.Origin{}).Put(ctx, "drafts", "x", nil); err != nil {
			t.Error(err)
		}
		owner = next
	}
	cancel()
	wg.Wait()
}

// What lies around the store is for its owner alone.
func TestModes(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	openStore(t, home)
	for path, want := range map[string]os.FileMode{
		"": os.ModeDir | 0o700, "run": os.ModeDir | 0o700, "kb": os.ModeDir | 0o700,
		"run/kb.sock": os.ModeSocket | 0o600, "run/kb.lock": 0o600,
	} {
		if info, err := os.Lstat(filepath.Join(home, path)); err != nil || info.Mode() != want {
			t.Errorf("%q has mode %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
	for mode, ok := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o770: false, 0o702: false} {
		hand := t.TempDir() // made by hand: others may look into it, and may not write
		if err := ownertest.Share(hand, mode); err != nil {
			t.Fatal(err)
		}
		s, err := kb.Open(t.Context(), kb.Options{Home: hand})
		switch {
		case err == nil && ok:
			if info, err := os.Lstat(filepath.Join(hand, "kb")); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("in a home of mode %#o the database has mode %v (%v)", mode, info.Mode(), err)
			}
		case ok || !errors.Is(err, kb.ErrUnavailable) || !strings.Contains(err.Error(), "chmod 700"):
			t.Errorf("a home of mode %#o: %v", mode, err)
		}
		if err == nil {
			s.Close()
		}
	}
	shut := filepath.Join(t.TempDir(), "home")
	if err := os.MkdirAll(filepath.Join(shut, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(shut, "run"), 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := kb.Open(t.Context(), kb.Options{Home: shut}); !errors.Is(err, kb.ErrUnavailable) {
		t.Errorf("sockets where others can look: %v", err)
	}
	if _, err := kb.Open(t.Context(), kb.Options{Home: "relative"}); !errors.Is(err, kb.ErrInvalid) {
		t.Errorf("a relative home: %v", err)
	}
}

// A home whose path is longer than a socket's may be works like any other.
func TestLongHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("long/", 40), "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	openStore(t, home)
	s := openStore(t, home)
	if _, err := s.View(kb.Origin{}).Put(t.Context(), "notes", "a", nil); err != nil || s.Owner() {
		t.Errorf("%v, owner %v", err, s.Owner())
	}
}

// Another version at the socket is named as what it is.
func TestOtherVersion(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	openStore(t, home)
	c, err := net.Dial("unix", filepath.Join(home, "run", "kb.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	codec, err := audit.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	w := wire.NewConn(c, codec)
	var h map[int]any
	if err := w.Receive(&h); err != nil || h[1] != "rlp-kb" {
		t.Fatal(h, err)
	}
	if err := w.Send(map[int]any{1: "rlp-kb", 2: 999, 3: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Send(map[int]any{1: 1}); err == nil {
		if err := w.Receive(&h); err == nil {
			t.Errorf("version 999 is answered: %v", h)
		}
	}
}

// A process that only records does not open the database.
func TestRunNeedsNoStore(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	dir := journalDir(t, home, "")
	end(t, writeRun(t, dir, "run1", 3))
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 1 || entries[0].Name() != "journal" {
		t.Errorf("a run has made %v (%v)", entries, err)
	}
	b, err := kb.BacklogOf(home, "")
	if err != nil || b.Journals != 1 || b.Bytes == 0 || b.Large() {
		t.Errorf("%+v %v", b, err)
	}
	got, err := kb.IngestBacklog(t.Context(), kb.Options{Home: home}, 1<<40)
	if err != nil || got.Records != 4 || got.Runs != 1 {
		t.Errorf("%+v %v", got, err)
	}
}

// A run cannot begin where its journal cannot be written.
//
//rlp:holds R71
func TestNoJournalNoRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Create(journal.Options{Dir: dir, Head: audit.Head{RunID: "run1"}}); err == nil {
		t.Error("a journal inside a file")
	}
}

// One flipped bit in a table is an error, never another value or a missing key.
func TestFlippedBitInStore(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openStore(t, home)
	v := s.View(kb.Origin{})
	for i := range 50 {
		if _, err := v.Put(t.Context(), "notes", string(rune('a'+i)), make([]byte, 200)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(home, "kb", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	p, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{10, len(p) / 3, len(p) / 2, len(p) * 2 / 3} {
		q := append([]byte(nil), p...)
		q[at] ^= 1
		if err := os.WriteFile(tables[0], q, 0o600); err != nil {
			t.Fatal(err)
		}
		bad, err := kb.Open(t.Context(), kb.Options{Home: home})
		if err == nil {
			bad.Close()
			t.Errorf("the store opens with bit %d flipped", at*8)
		}
	}
	if err := os.WriteFile(tables[0], p, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(t, home).View(kb.Origin{}).Get(t.Context(), "notes", "a"); err != nil { // the control
		t.Error(err)
	}
}

// The settings of who asks say which domains there are, not those of who owns the store.
func TestDomains(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	plain := openStore(t, home)
	more, err := kb.Open(t.Context(), kb.Options{Home: home, Domains: []string{"invoices"}})
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if _, err := more.View(kb.Origin{}).Put(t.Context(), "invoices", "a", nil); err != nil {
		t.Error(err)
	}
	if _, err := plain.View(kb.Origin{}).Get(t.Context(), "invoices", "a"); !errors.Is(err, kb.ErrDomain) {
		t.Errorf("a domain that is not in the settings: %v", err)
	}
	if d := more.Domains(); len(d) != len(plain.Domains())+1 {
		t.Errorf("domains %v", d)
	}
	for _, bad := range []string{"Invoices", "contacts_raw", "", "a b"} {
		if _, err := kb.Open(t.Context(), kb.Options{Home: home, Domains: []string{bad}}); !errors.Is(err, kb.ErrInvalid) {
			t.Errorf("domain %q: %v", bad, err)
		}
	}
}
