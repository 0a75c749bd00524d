package kb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/kb"
)

// fill puts values, replaces some, deletes some, and records a run.
func fill(t *testing.T, home string, s *kb.Store, n int) {
	t.Helper()
	v := s.View(kb.Origin{Agent: "writer", Source: "agent"})
	for i := range n {
		for range 1 + i%3 {
			if _, err := v.Put(t.Context(), "notes", fmt.Sprint("k", i), []byte(fmt.Sprintf("word%d of many", i))); err != nil {
				t.Fatal(err)
			}
		}
		if i%5 == 0 {
			if err := v.Delete(t.Context(), "notes", fmt.Sprint("k", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeRun(t, dir, "run-"+filepath.Base(filepath.Dir(home)), 20).Close(); err != nil {
		t.Fatal(err)
	}
}

// state is everything that can be asked of a store, in text.
func state(t *testing.T, s *kb.Store) string {
	t.Helper()
	var b strings.Builder
	v := s.View(kb.Origin{})
	for e, err := range v.List(t.Context(), "notes", "") {
		if err != nil {
			t.Fatal(err)
		}
		value, err := v.Get(t.Context(), "notes", e.Key)
		if err != nil {
			t.Fatal(err)
		}
		chain, err := v.Why(t.Context(), "notes", e.Key)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%+v %s %+v\n", e, value.Bytes, chain)
	}
	return b.String() + log(t, s)
}

func log(t *testing.T, s *kb.Store) string {
	t.Helper()
	var b strings.Builder
	for r, err := range s.Audit(t.Context(), kb.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d %s %d %v\n", r.Seq, r.Head.RunID, r.RunSeq, r.Time)
	}
	return b.String()
}

func backup(t *testing.T, s *kb.Store) ([]byte, kb.BackupInfo) {
	t.Helper()
	var b bytes.Buffer
	info, err := s.Backup(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), info
}

// What was backed up, through the owner or a client of it, is what another store
// holds when it was restored: values, revisions, chains, log and what is found.
func TestBackupAndRestore(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	owner := openStore(t, home)
	fill(t, home, owner, 300)
	for i := range 2 { // more than a page
		if _, err := owner.View(kb.Origin{}).Put(t.Context(), "notes", fmt.Sprint("large", i), bytes.Repeat([]byte("x "),
			300<<10)); err != nil {
			t.Fatal(err)
		}
	}
	client := openStore(t, home)
	want := state(t, owner)
	for name, from := range map[string]*kb.Store{"owner": owner, "client": client} {
		file, info := backup(t, from)
		if info.Values != 242 || info.Records != 21 {
			t.Errorf("%s: %+v", name, info)
		}
		there := filepath.Join(t.TempDir(), "home")
		holder := openStore(t, there)
		to := holder
		if name == "client" {
			to = openStore(t, there)
		}
		if again, err := to.Restore(t.Context(), bytes.NewReader(file), false); err != nil || again != info {
			t.Fatal(again, err)
		}
		if got := state(t, to); got != want {
			t.Errorf("%s: the restored store differs", name)
		}
		if v, err := to.Verify(t.Context()); err != nil || v.Values != info.Values {
			t.Error(v, err)
		}
		hits, err := to.View(kb.Origin{}).Search(t.Context(), kb.Query{Domain: "notes", Text: "word17", K: 3})
		if err != nil || len(hits) != 1 || hits[0].Key != "k17" {
			t.Error(hits, err)
		}
		rev, err := to.View(kb.Origin{}).Put(t.Context(), "notes", "new", nil)
		if err != nil || rev <= 600 {
			t.Errorf("the next revision is %d, %v", rev, err)
		}
	}
}

// A backup is of one moment, whatever is written meanwhile: two values that
// change one after the other are never further apart than that.
func TestBackupOfOneMoment(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openStore(t, home)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	started := make(chan struct{})
	wg.Go(func() {
		v := s.View(kb.Origin{})
		for i := 0; ctx.Err() == nil; i++ {
			for _, key := range []string{"a", "z"} { // as far apart as pages may be
				if _, err := v.Put(context.Background(), "notes", key, []byte(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			}
			if i == 3 {
				close(started)
			}
		}
	})
	<-started
	v := s.View(kb.Origin{})
	for i := range 3 {
		if _, err := v.Put(t.Context(), "notes", fmt.Sprint("m", i), make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		file, _ := backup(t, s)
		to := openStore(t, filepath.Join(t.TempDir(), "home"))
		if _, err := to.Restore(t.Context(), bytes.NewReader(file), false); err != nil {
			t.Fatal(err)
		}
		a, errA := to.View(kb.Origin{}).Get(t.Context(), "notes", "a")
		z, errZ := to.View(kb.Origin{}).Get(t.Context(), "notes", "z")
		var na, nz int
		fmt.Sscan(string(a.Bytes), &na)
		fmt.Sscan(string(z.Bytes), &nz)
		if errA != nil || errZ != nil || na != nz && na != nz+1 {
			t.Errorf("a is %d and z is %d (%v %v)", na, nz, errA, errZ)
		}
	}
	cancel()
	wg.Wait()
}

// A store with values is left alone unless they may go; then revisions go on,
// and the log stays the store's own.
func TestRestoreOverValues(t *testing.T) {
	from := filepath.Join(t.TempDir(), "a", "home")
	s := openStore(t, from)
	fill(t, from, s, 20)
	file, _ := backup(t, s)
	home := filepath.Join(t.TempDir(), "b", "home")
	to := openStore(t, home)
	fill(t, home, to, 30)
	mine, before := log(t, to), state(t, to)
	if _, err := to.Restore(t.Context(), bytes.NewReader(file), false); !errors.Is(err, kb.ErrNotEmpty) {
		t.Fatalf("restoring over values: %v", err)
	}
	if state(t, to) != before {
		t.Fatal("a refused restore has changed something")
	}
	last, err := to.View(kb.Origin{}).Put(t.Context(), "notes", "mine", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := to.Restore(t.Context(), bytes.NewReader(file), true)
	if err != nil || !info.LogKept {
		t.Fatal(info, err)
	}
	if log(t, to) != mine {
		t.Error("a restore has changed the log")
	}
	if _, err := to.View(kb.Origin{}).Get(t.Context(), "notes", "mine"); err == nil {
		t.Error("what was there before is there still")
	}
	for e, err := range to.View(kb.Origin{}).List(t.Context(), "notes", "") {
		if err != nil || e.Revision <= last {
			t.Errorf("%+v %v: a revision up to %d was given out before", e, err, last)
		}
	}
	if v, err := to.Verify(t.Context()); err != nil || v.Values != 16 {
		t.Error(v, err)
	}
}

// A file that is not a whole backup of this tenant changes nothing, wherever it
// is cut or one bit of it is another.
func TestDamagedBackup(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openStore(t, home)
	fill(t, home, s, 10)
	file, _ := backup(t, s)
	to := openStore(t, filepath.Join(t.TempDir(), "home"))
	refuse := func(what string, p []byte) {
		t.Helper()
		if _, err := to.Restore(t.Context(), bytes.NewReader(p), true); !errors.Is(err, kb.ErrBackup) ||
			errors.Is(err, kb.ErrInvalid) ||
			strings.Contains(err.Error(), kb.ErrInvalid.Error()) || strings.Contains(err.Error(), kb.ErrDamaged.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := 0; n < len(file); n += 1 + len(file)/200 {
		refuse(fmt.Sprint("cut at ", n), file[:n])
		p := bytes.Clone(file)
		p[n] ^= 1
		refuse(fmt.Sprint("bit flipped at ", n), p)
	}
	refuse("something behind it", append(bytes.Clone(file), 'x'))
	refuse("twice", append(bytes.Clone(file), file...))
	if got := state(t, to); got != "" {
		t.Errorf("a refused restore has left %s", got)
	}
	other, err := kb.Open(t.Context(), kb.Options{Home: filepath.Join(t.TempDir(), "home"), Tenant: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Restore(t.Context(), bytes.NewReader(file), true); !errors.Is(err, kb.ErrBackup) ||
		!strings.Contains(err.Error(), "tenant default") {
		t.Errorf("a backup of another tenant: %v", err)
	}
	if _, err := to.Restore(t.Context(), bytes.NewReader(file), false); err != nil { // the control
		t.Error(err)
	}
}

// A chain has the first change and the last ones, and outlives its value.
func TestWhy(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	owner := openStore(t, home)
	for name, s := range map[string]*kb.Store{"owner": owner, "client": openStore(t, home)} {
		ctx := t.Context()
		if _, err := s.View(kb.Origin{}).Why(ctx, "notes", name); err == nil {
			t.Error("a key that never was has a chain")
		}
		for i := range 40 {
			v := s.View(kb.Origin{Agent: fmt.Sprint("agent", i), Run: fmt.Sprint("run", i), Source: "agent", Label: kb.Trusted})
			if _, err := v.Put(ctx, "notes", name, make([]byte, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.View(kb.Origin{Agent: "remover"}).Delete(ctx, "notes", name); err != nil {
			t.Fatal(err)
		}
		c, err := s.View(kb.Origin{}).Why(ctx, "notes", name)
		if err != nil || len(c.Steps) != 32 || c.Left != 9 {
			t.Fatalf("%d steps, %d left out, %v", len(c.Steps), c.Left, err)
		}
		first, second, last := c.Steps[0], c.Steps[1], c.Steps[31]
		if first.Origin.Agent != "agent0" || second.Origin.Agent != "agent10" || second.Size != 10 ||
			second.Origin.Label != kb.Trusted || second.Origin.Tenant != "default" {
			t.Errorf("%+v\n%+v", first, second)
		}
		if !last.Deleted || last.Origin.Agent != "remover" || last.Origin.Label != kb.Untrusted ||
			last.Revision <= c.Steps[30].Revision {
			t.Errorf("%+v", last)
		}
	}
}

// An origin that lies about its size or label is refused, whoever sends it.
func TestOriginsAreBounded(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "home"))
	for _, o := range []kb.Origin{
		{Label: "certain"},
		{Source: strings.Repeat("x", 5000)},
		{Agent: "\xff"},
		{ETag: strings.Repeat("e", 257)},
	} {
		if _, err := s.View(o).Put(t.Context(), "notes", "a", nil); !errors.Is(err, kb.ErrInvalid) {
			t.Errorf("label %q: %v", o.Label, err)
		}
	}
}
