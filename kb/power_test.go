package kb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/kbtest"
)

// childSynced records decisions for ever, each on disk before it says so; with
// sync "never" it only says so.
func childSynced(home, run, sync string) error {
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		return err
	}
	j, err := journal.Create(journal.Options{Dir: dir, Synced: true, Head: audit.Head{
		RunID: run, Tenant: "default",
		Agent: "powerless",
	}})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := j.Decide(&audit.Decision{Keep: true, Target: strconv.Itoa(i)}); err != nil {
			return err
		}
		if sync != "never" {
			if err := j.Sync(); err != nil {
				return err
			}
		}
		fmt.Println(i)
	}
}

// childTaker takes in journals for ever, removes each as soon as the log has it,
// and says how many are left.
func childTaker(home string) error {
	ctx := context.Background()
	dir, err := kb.JournalDir(home, "")
	if err != nil {
		return err
	}
	later := func() time.Time { return time.Now().Add(time.Hour) } // nobody follows the journals
	s, err := kb.Open(ctx, kb.Options{Home: home, Now: later})
	if err != nil {
		return err
	}
	for {
		if got, err := s.Ingest(ctx); err != nil || len(got.Damaged) > 0 {
			return fmt.Errorf("%v: %w", got.Damaged, err)
		}
		names, err := journal.Names(dir)
		if err != nil {
			return err
		}
		if err := journal.KeepName(filepath.Join(dir, "any")); err != nil { // so that what was removed does not come back
			return err
		}
		fmt.Println(len(names))
	}
}

// The log has every record that was on disk when the power was lost, once,
// also of runs whose own files were never synced, and then that the run was
// killed. Taking them in once more, as after a second loss of power that brought
// the journals back, changes nothing. The control takes the group file away.
func TestTheLogHasWhatWasOnDisk(t *testing.T) {
	const runs, records = 6, 40
	dir, disk := filepath.Join(t.TempDir(), "journal"), kbtest.NewPlatter()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowDisk{Platter: disk, ready: make(chan struct{})}
		var group journal.Group
		var wg sync.WaitGroup
		for i := range runs {
			j, err := journal.Create(journal.Options{
				Dir: dir, Disk: slow, Group: &group, Synced: true,
				Head: audit.Head{RunID: fmt.Sprintf("run%d", i), Tenant: "default", Agent: "writer"},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { j.Close() })
			for n := range records {
				if _, err := j.Decide(&audit.Decision{Keep: true, Target: fmt.Sprint(n)}); err != nil {
					t.Fatal(err)
				}
			}
			wg.Go(func() {
				if err := j.Sync(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first is at the disk, all others wait for it
		}
		close(slow.ready)
		wg.Wait()
	})
	for _, control := range []bool{true, false} {
		home := filepath.Join(t.TempDir(), "home")
		left := filepath.Join(home, "journal")
		lose := func() {
			t.Helper()
			if err := disk.LosePower(dir, left, nil); err != nil {
				t.Fatal(err)
			}
		}
		lose()
		groups, err := filepath.Glob(filepath.Join(left, ".group-*"))
		if err != nil || len(groups) != 1 {
			t.Fatal(groups, err)
		}
		if control {
			if err := os.Remove(groups[0]); err != nil {
				t.Fatal(err)
			}
		}
		s := openStore(t, home)
		if _, err := s.Ingest(t.Context()); err != nil {
			t.Fatal(err)
		}
		whole := 0
		for i := range runs {
			if countRun(t, s, fmt.Sprintf("run%d", i)) == records+1 {
				whole++
			}
		}
		if control {
			if whole == runs {
				t.Fatal("control: no run lacks what the group file had")
			}
			continue
		}
		if whole != runs {
			t.Errorf("%d of %d runs are whole", whole, runs)
		}
		lose()
		if got, err := s.Ingest(t.Context()); err != nil || got.Records != 0 || len(got.Damaged) > 0 {
			t.Errorf("taking in the same again: %+v %v", got, err)
		}
	}
}

// A slowDisk does nothing with journals until it is ready.
type slowDisk struct {
	*kbtest.Platter
	ready chan struct{}
}

func (d *slowDisk) SyncFile(f *os.File) error {
	if strings.Contains(f.Name(), ".new-") {
		<-d.ready
	}
	return d.Platter.SyncFile(f)
}

// countRun is how many records of a run the log has, each checked.
func countRun(t *testing.T, s *kb.Store, run string) (n int) {
	t.Helper()
	for rec, err := range s.Audit(t.Context(), kb.Filter{Run: run}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; rec.RunSeq != uint64(n) {
			t.Fatalf("%s: record %d has run_seq %d", run, n, rec.RunSeq)
		}
		switch {
		case rec.Decision != nil && rec.Decision.Target != fmt.Sprint(n-1):
			t.Fatalf("%s: record %d is %+v", run, n, rec.Decision)
		case rec.Event != nil && !strings.HasPrefix(rec.Event.Reason, "killed"):
			t.Fatalf("%s ends with %+v", run, rec.Event)
		}
	}
	return n
}
