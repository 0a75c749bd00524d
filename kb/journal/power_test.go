package journal_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/kbtest"
)

// A world is a directory of journals on a disk that can lose power.
type world struct {
	t    *testing.T
	dir  string
	disk *kbtest.Platter
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: filepath.Join(t.TempDir(), "journal"), disk: kbtest.NewPlatter()}
}

func (w *world) create(run string) *journal.Journal {
	w.t.Helper()
	j, err := journal.Create(journal.Options{
		Dir: w.dir, Disk: w.disk, Synced: true,
		Head: audit.Head{RunID: run, TraceID: "t", Tenant: "default", Agent: "writer"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { j.Close() })
	return j
}

// decide records decision i of a run.
func (w *world) decide(j *journal.Journal, i int) {
	w.t.Helper()
	if _, err := j.Decide(&audit.Decision{Keep: true, Deny: i%5 == 0, Target: fmt.Sprintf("/srv/%d", i/2)}); err != nil {
		w.t.Fatal(err)
	}
}

// left is what readers find of a run after the power was lost: how many
// records, each checked, and how it ends.
func (w *world) left(run string, spare func() bool) (int, error) {
	w.t.Helper()
	to := w.t.TempDir()
	if err := w.disk.LosePower(w.dir, to, spare); err != nil {
		w.t.Fatal(err)
	}
	return w.read(to, run)
}

// read is how many records there are of a run in dir, and how it ends.
func (w *world) read(dir, run string) (int, error) {
	w.t.Helper()
	r, err := journal.OpenReader(dir, run, journal.State{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for n := 0; ; n++ {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if d := rec.Decision; rec.RunSeq != uint64(n+1) || d.Target != fmt.Sprintf("/srv/%d", n/2) || d.Deny != (n%5 == 0) {
			w.t.Fatalf("record %d is %+v", n, d)
		}
	}
}

// What was synced survives the loss of power, whole, under its name; without
// the sync it is lost, which is the control.
func TestSyncSurvivesPowerLoss(t *testing.T) {
	w := newWorld(t)
	j := w.create("run1")
	for i := range 100 {
		w.decide(j, i)
	}
	if n, err := w.left("run1", nil); n != 0 || err == nil {
		t.Fatalf("control: %d records that nobody synced are left: %v", n, err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	w.decide(j, 100)
	if n, err := w.left("run1", nil); n != 100 || err != nil {
		t.Errorf("%d of 100 records are left: %v", n, err)
	}
}

// A sync costs nothing when nothing was recorded since the last one.
func TestSyncOnlyWhatIsNew(t *testing.T) {
	w := newWorld(t)
	j := w.create("run1")
	before := w.disk.Syncs() // of the key
	for i := range 3 {
		w.decide(j, i)
		for range 3 {
			if err := j.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := w.disk.Syncs() - before; n != 3 {
		t.Errorf("3 records took %d syncs", n)
	}
}

// However much or little of what was not synced the disk kept, in whatever
// order: what was synced is there, and nothing is read that was not written.
func TestPowerLossLeavesAPrefix(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for round := range 30 {
		w := newWorld(t)
		j := w.create("run1")
		synced, n := 0, 0
		for range 1 + rnd.IntN(6) {
			for range rnd.IntN(1500) {
				w.decide(j, n)
				n++
			}
			if rnd.IntN(2) == 0 {
				if err := j.Sync(); err != nil {
					t.Fatal(err)
				}
				synced = n
			}
		}
		got, err := w.left("run1", func() bool { return rnd.IntN(2) == 0 })
		if got < synced || got > n || err != nil && synced > 0 && !errors.Is(err, journal.ErrDamaged) {
			t.Fatalf("round %d: %d of %d records were synced, %d are left: %v", round, synced, n, got, err)
		}
		j.Close()
	}
}

// A disk that fails is believed: nothing can be recorded after it, though it
// may say later that all is well.
func TestAFailedSyncBreaksTheJournal(t *testing.T) {
	w := newWorld(t)
	j := w.create("run1")
	mark, err := j.Decide(&audit.Decision{Keep: true, Target: "/srv/0"})
	if err != nil || !j.Again(mark) {
		t.Fatalf("control: %v", err)
	}
	gone := errors.New("the disk is gone")
	w.disk.Fail(gone)
	if err := j.Sync(); !errors.Is(err, gone) || !errors.Is(err, journal.ErrBroken) {
		t.Errorf("syncing to a disk that fails: %v", err)
	}
	w.disk.Fail(nil)
	if err := j.Sync(); !errors.Is(err, journal.ErrBroken) {
		t.Errorf("syncing after it: %v", err)
	}
	if _, err := j.Decide(&audit.Decision{Keep: true, Target: "/srv/0"}); !errors.Is(err, journal.ErrBroken) {
		t.Errorf("recording after it: %v", err)
	}
	if j.Again(mark) {
		t.Error("repeating after it")
	}
}
