package journal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// A fleet is runs of one process whose journals are synced together.
type fleet struct {
	*world
	group  *journal.Group
	runs   []*journal.Journal
	made   []int // records, by run
	synced []int // of them, that a sync has promised
}

func newFleet(t *testing.T, n int) *fleet {
	f := &fleet{world: newWorld(t), group: &journal.Group{}, made: make([]int, n), synced: make([]int, n)}
	for i := range n {
		f.runs = append(f.runs, f.member(fmt.Sprintf("run%d", i)))
	}
	return f
}

func (f *fleet) member(run string) *journal.Journal {
	f.t.Helper()
	j, err := journal.Create(journal.Options{
		Dir: f.dir, Disk: f.disk, Synced: true, Group: f.group,
		Head: audit.Head{RunID: run, TraceID: "t", Tenant: "default", Agent: "writer"},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { j.Close() })
	return j
}

func (f *fleet) record(i, n int) {
	f.t.Helper()
	for range n {
		f.decide(f.runs[i], f.made[i])
		f.made[i]++
	}
}

// sync syncs the runs, together.
func (f *fleet) sync(which ...int) {
	f.t.Helper()
	var js []*journal.Journal
	for _, i := range which {
		js = append(js, f.runs[i])
	}
	if err := journal.SyncTogether(f.group, js...); err != nil {
		f.t.Fatal(err)
	}
	for _, i := range which {
		f.synced[i] = f.made[i]
	}
}

// check loses power, replays and reads. A run has at least what was synced.
func (f *fleet) check(replay bool, spare func() bool) (short int) {
	f.t.Helper()
	to := f.t.TempDir()
	if err := f.disk.LosePower(f.dir, to, spare); err != nil {
		f.t.Fatal(err)
	}
	if replay {
		if damage, err := journal.Replay(to, func(string) (bool, error) { return false, nil }); err != nil ||
			len(damage) > 0 {
			f.t.Fatal(damage, err)
		}
		if left := groupFiles(f.t, to); len(left) > 0 {
			f.t.Errorf("after replaying there is %v", left)
		}
	}
	for i := range f.runs {
		n, err := f.read(to, fmt.Sprintf("run%d", i))
		if n < f.synced[i] {
			short++
		}
		if damaged := err != nil && !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, fs.ErrNotExist); damaged ||
			n > f.made[i] {
			f.t.Errorf("run%d: %d records of %d: %v", i, n, f.made[i], err)
		}
	}
	return short
}

func groupFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".group-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// What several journals synced together survives the loss of power, though
// their own files were never synced: the control is who does not replay.
func TestGroupSurvivesPowerLoss(t *testing.T) {
	f := newFleet(t, 3)
	for range 5 {
		for i := range f.runs {
			f.record(i, 3)
		}
		before := f.disk.Syncs()
		f.sync(0, 1, 2)
		if n := f.disk.Syncs() - before; n != 1 {
			t.Errorf("three journals took %d syncs", n)
		}
	}
	if short := f.check(false, nil); short != 3 {
		t.Fatalf("control: %d journals lack something without replay", short)
	}
	if short := f.check(true, nil); short != 0 {
		t.Errorf("%d journals lack what was synced", short)
	}
}

// In a resident group one journal after another is synced by one sync each, of a
// file that is there already; the control syncs their own files, and needs no replay.
func TestResidentGroupSurvivesPowerLoss(t *testing.T) {
	for _, resident := range []bool{true, false} {
		f := newFleet(t, 5)
		f.group.Resident = resident
		f.record(0, 3)
		f.sync(0) // which makes the file
		before := f.disk.Syncs()
		for i := 1; i < 5; i++ {
			f.record(i, 3)
			f.sync(i)
		}
		if n := f.disk.Syncs() - before; n != 4 {
			t.Errorf("resident %v: four journals took %d syncs", resident, n)
		}
		if short := f.check(false, nil); (short == 5) != resident {
			t.Errorf("resident %v: %d journals lack something without replay", resident, short)
		}
		if short := f.check(true, nil); short != 0 {
			t.Errorf("resident %v: %d journals lack what was synced", resident, short)
		}
	}
}

// Random runs sync alone, together, and through group files that begin anew;
// the power is lost at random, and the disk keeps what it likes of the rest.
func TestGroupsLoseNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		f := newFleet(t, 1+rnd.IntN(5))
		f.group.Resident = rnd.IntN(2) == 0
		journal.LimitGroup(f.group, int64(1+rnd.IntN(60))<<10)
		for range 1 + rnd.IntN(30) {
			var which []int
			for i := range f.runs {
				if rnd.IntN(3) == 0 {
					continue
				}
				f.record(i, 1+rnd.IntN(200))
				if rnd.IntN(4) > 0 {
					which = append(which, i)
				}
			}
			if len(which) > 0 {
				f.sync(which...)
			}
		}
		if short := f.check(true, func() bool { return rnd.IntN(3) == 0 }); short > 0 {
			t.Fatalf("%d of %d journals lack what was synced", short, len(f.runs))
		}
		for _, j := range f.runs {
			j.Close()
		}
	}
}

// Goroutines sync when they like; each returns when what it recorded is on
// disk. Closing the group leaves journals that need nothing else.
func TestGroupAmongGoroutines(t *testing.T) {
	f := newFleet(t, 8)
	var wg sync.WaitGroup
	for i, j := range f.runs {
		wg.Go(func() {
			for n := range 50 {
				if _, err := j.Decide(&audit.Decision{Keep: true, Deny: n%5 == 0, Target: fmt.Sprintf("/srv/%d",
					n/2)}); err != nil {
					t.Error(err)
				}
				if err := j.Sync(); err != nil {
					t.Error(err)
				}
			}
			f.made[i], f.synced[i] = 50, 50
		})
	}
	wg.Wait()
	if short := f.check(true, nil); short != 0 {
		t.Errorf("%d journals lack what was synced", short)
	}
	if err := f.group.Close(); err != nil {
		t.Fatal(err)
	}
	if short := f.check(false, nil); short != 0 || len(groupFiles(t, f.dir)) != 0 {
		t.Errorf("after closing the group %d journals lack what was synced, and there is %v", short, groupFiles(t, f.dir))
	}
}

// A disk that fails is told to every journal that waited for it.
func TestAFailedGroupTellsAll(t *testing.T) {
	f := newFleet(t, 3)
	for i := range f.runs {
		f.record(i, 1)
	}
	gone := errors.New("the disk is gone")
	f.disk.Fail(gone)
	var wg sync.WaitGroup
	for _, j := range f.runs {
		wg.Go(func() {
			if err := j.Sync(); !errors.Is(err, gone) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := journal.SyncTogether(f.group, f.runs...); !errors.Is(err, gone) {
		t.Error(err)
	}
}

// Replaying leaves alone what lives, what is taken elsewhere, and what somebody
// else wrote: a group file without the key of the directory says nothing.
func TestReplayKeepsOff(t *testing.T) {
	f := newFleet(t, 2)
	f.record(0, 3)
	f.record(1, 3)
	f.sync(0, 1)
	never := func(string) (bool, error) { return false, nil }
	if _, err := journal.Replay(f.dir, never); err != nil || len(groupFiles(t, f.dir)) != 1 {
		t.Errorf("the group file of this process: %v %v", groupFiles(t, f.dir), err)
	}
	for name, c := range map[string]struct {
		change func(p []byte)
		done   string
		want   []int
	}{
		"control":       {func([]byte) {}, "", []int{3, 3}},
		"taken":         {func([]byte) {}, "run0", []int{0, 3}},
		"changed":       {func(p []byte) { p[40] ^= 1 }, "", []int{0, 0}},
		"cut":           {func(p []byte) { clear(p[64:]) }, "", []int{0, 0}},
		"of other runs": {func(p []byte) { copy(p[32:], "../x") }, "", []int{0, 0}},
	} {
		to := t.TempDir()
		if err := f.disk.LosePower(f.dir, to, nil); err != nil {
			t.Fatal(err)
		}
		path := groupFiles(t, to)[0]
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c.change(data)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, run := range []string{"run0", "run1"} { // their names were not synced, but kept
			if err := os.Remove(filepath.Join(to, run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		if damage, err := journal.Replay(to, func(run string) (bool, error) { return run == c.done, nil }); err != nil ||
			len(damage) > 0 {
			t.Fatal(damage, err)
		}
		var got []int
		for _, run := range []string{"run0", "run1"} {
			n, _ := f.read(to, run)
			got = append(got, n)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v records, want %v", name, got, c.want)
		}
		if names, _ := journal.Names(to); slices.ContainsFunc(names, func(n string) bool {
			return !strings.HasPrefix(n, "run")
		}) {
			t.Errorf("%s: there are %v", name, names)
		}
	}
}

// A journal that is gone, of which the group file has only the end, is told, and
// the group file kept.
func TestReplayTellsWhatIsLost(t *testing.T) {
	f := newFleet(t, 2)
	f.record(0, 1)
	f.sync(0) // alone: its own file
	f.record(0, 1)
	f.record(1, 1)
	f.sync(0, 1)
	to := t.TempDir()
	if err := f.disk.LosePower(f.dir, to, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(to, "run0")); err != nil {
		t.Fatal(err)
	}
	damage, err := journal.Replay(to, func(string) (bool, error) { return false, nil })
	if err != nil || len(damage) != 1 || !strings.Contains(damage[0].Error(), "the journal of run run0 is gone") {
		t.Errorf("%v %v", damage, err)
	}
	if aside, err := journal.Quarantined(to); err != nil || len(aside) != 1 || len(groupFiles(t, to)) != 0 {
		t.Errorf("put aside: %v %v, left: %v", aside, err, groupFiles(t, to))
	}
	if n, err := f.read(to, "run1"); n != 1 || err != nil {
		t.Errorf("the other run has %d records: %v", n, err)
	}
}
