package log

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/kb/logtest"
	"runloop.dev/rlp/kb/wire"
)

// prunable is a store with a clock of its own: a run that ended long ago, one that
// ended long ago and has records behind one that goes on, the one that goes on,
// and one of today.
func prunable(t *testing.T) (*testLog, place) {
	t.Helper()
	o := newPlace(t)
	s := openLog(t, o)
	ingest := func(want int) {
		t.Helper()
		if got, err := s.Ingest(t.Context()); err != nil || got.Records != want {
			t.Fatal(got, err)
		}
	}
	logtest.Record(t, o.home, "run1", 300)
	ingest(301)
	j := logtest.Begin(t, o.home, "run22", 10)
	ingest(10)
	logtest.Record(t, o.home, "run333", 20)
	ingest(21)
	logtest.Decide(t, j, 10)
	ingest(10)
	logtest.End(t, j)
	ingest(1)
	logtest.Begin(t, o.home, "run4444", 5)
	ingest(5)
	logtest.Record(t, o.home, "run55555", 20)
	ingest(21)
	return s, o
}

// What was pruned is gone for every question, on record, and the log is still the
// one that it was: it verifies, proofs of what is left are good, heads from before
// hold, and who kept the line of a record that is gone can prove it.
func TestPrune(t *testing.T) {
	s, o := prunable(t)
	ours := Check{Open: newTestKey("ours").open}
	before, err := s.VerifyLog(t.Context(), ours)
	if err != nil || before.Records != 369 || before.Open != 1 {
		t.Fatal(before, err)
	}
	kept, err := s.Inclusion(t.Context(), 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	mark, n, err := s.Prune(t.Context(), time.Now().Add(-time.Hour))
	if err != nil || n != 0 || mark.Note != nil {
		t.Fatal("nothing is old:", mark, n, err)
	}
	client := openLog(t, o)
	// Up to the run that goes on, though everything is older.
	if mark, n, err = client.Prune(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 343 || mark.Pruned != 343 ||
		len(mark.Cut) != 0 {
		t.Fatal(mark, n, err)
	}
	after, err := client.VerifyLog(t.Context(), Check{Open: ours.Open, Against: []Head{
		before.Head,
		{17, mustRoot(t, s, 17)},
	}})
	if err != nil || after.Head != before.Head || after.Records != 26 || after.Pruned != 343 || after.From != 344 ||
		after.PrunedMS == 0 || after.Unfinished {
		t.Fatalf("%+v, %v", after, err)
	}
	count := func(f Filter) (n int) {
		for _, err := range s.Audit(t.Context(), f) {
			if err != nil {
				t.Errorf("%+v: %v", f, err)
			}
			n++
		}
		return n
	}
	for _, c := range []struct {
		f    Filter
		want int
	}{
		{Filter{}, 26},
		{Filter{Limit: 3}, 3},
		{Filter{Limit: 1000}, 26},
		{Filter{Run: "run1"}, 0},
		{Filter{Run: "run55555"}, 21},
		{Filter{Agent: "writer"}, 5},
		{Filter{Decision: "deny"}, 16},
		{Filter{Run: "run1", Limit: 4}, 0},
		{Filter{After: 360}, 9},
		{Filter{After: 5}, 26},
	} {
		if got := count(c.f); got != c.want {
			t.Errorf("%+v: %d records, want %d", c.f, got, c.want)
		}
	}
	gone, err := s.Inclusion(t.Context(), 7, 0)
	if err != nil || gone.Line != nil || gone.Leaf != tlog.RecordHash(kept.Line) || tlog.CheckRecord(gone.Proof, 369,
		gone.Head.Root, 6, gone.Leaf) != nil {
		t.Error("a record that is gone:", gone, err)
	}
	left, err := s.Inclusion(t.Context(), 350, 360)
	if err != nil || tlog.CheckRecord(left.Proof, 360, left.Head.Root, 349, tlog.RecordHash(left.Line)) != nil {
		t.Error("a record that is left:", err)
	}
	if older, newer, proof, err := s.Consistency(t.Context(), 99, 0); err != nil || tlog.CheckTree(proof, 369, newer.Root,
		99, older.Root) != nil {
		t.Error(err)
	}
	if _, err := s.VerifyLog(t.Context(), Check{Run: "run55555", Open: ours.Open}); err != nil {
		t.Error(err)
	}
	if _, err := s.VerifyLog(t.Context(), Check{Since: Head{99, mustRoot(t, s, 99)}, Open: ours.Open}); err != nil {
		t.Error("since before what was pruned:", err)
	}
	if marks, err := s.Marks(t.Context()); err != nil || len(marks) != 1 || !slices.Equal(marks[0].lines(), mark.lines()) {
		t.Error(marks, err)
	}
	// What comes later is pruned with another mark.
	logtest.Record(t, o.home, "run666666", 5)
	if _, err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := s.VerifyLog(t.Context(), ours); err != nil || r.Records != 32 {
		t.Error(r, err)
	}
}

func mustRoot(t *testing.T, s *testLog, size uint64) [32]byte {
	t.Helper()
	older, _, _, err := s.Consistency(t.Context(), size, 0)
	if err != nil {
		t.Fatal(err)
	}
	return older.Root
}

// A run that has records on both sides is on record too: it goes on with the
// number that follows.
func TestPruneCutsRuns(t *testing.T) {
	o := newPlace(t)
	e := openLog(t, o)
	j := logtest.Begin(t, o.home, "run1", 10)
	mustAsk(t, e, &ingestRequest{})
	logtest.Record(t, o.home, "run22", 5)
	mustAsk(t, e, &ingestRequest{})
	logtest.End(t, j)
	mustAsk(t, e, &ingestRequest{})
	// The first ten records are old: as they would be if the run had slept.
	var last int64
	for _, p := range dumpLog(t, e, SpaceRecord) {
		rec, err := e.codec.Decode(p)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Seq == 11 {
			last = rec.Time.UnixMilli()
		}
	}
	// Only what was recorded before that is pruned; a busy machine may have
	// recorded all in one millisecond, and then nothing is.
	r := mustAsk(t, e, &pruneRequest{BeforeMS: last})
	if r.Mark == nil {
		cutAt(t, e, 10)
	}
	report, err := walkAll(t, e, Check{Open: newTestKey("ours").open})
	if err != nil || report.Pruned == 0 || report.Records != 17-int(report.Pruned) {
		t.Fatalf("%+v, %v", report, err)
	}
	m, err := lastMarkOf(e)
	if err != nil || m.Cut["run1"] != m.Pruned {
		t.Fatal(m, err)
	}
	page := mustAsk(t, e, &seekRequest{Filter: Filter{Run: "run1"}})
	if page.From != m.Pruned+1 {
		t.Errorf("a reading of what is left begins at %d", page.From)
	}
	got := mustAsk(t, e, &pageRequest{Filter: Filter{Run: "run1"}, From: page.From, UpTo: page.UpTo})
	if len(got.Records) != 11-int(m.Pruned) {
		t.Errorf("%d records", len(got.Records))
	}
	// Without what says where the run was cut, it has a gap.
	m.Cut = nil
	m.Note, _ = newTestKey("ours").Mark(m.Head.Size, m.Head.Root, m.lines())
	p, err := e.codec.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.db.Update(func(txn *badger.Txn) error { return txn.Set(keyMark(m.Pruned), p) }); err != nil {
		t.Fatal(err)
	}
	if _, err := walkAll(t, e, Check{}); !hasFault(err, FaultRun) {
		t.Error(err)
	}
}

// cutAt prunes up to a record, whatever its time.
func cutAt(t *testing.T, e *testLog, upTo uint64) {
	t.Helper()
	err := e.db.Update(func(txn *badger.Txn) error {
		head, err := storedHead(txn)
		if err != nil {
			return err
		}
		return e.log.pruner.putMark(txn, &Mark{Head: head, Pruned: upTo, UnixMS: 1, Cut: map[string]uint64{"run1": upTo}})
	})
	if err != nil {
		t.Fatal(err)
	}
	mustAsk(t, e, &pruneRequest{})
}

func lastMarkOf(e *testLog) (m *Mark, err error) {
	err = e.db.View(func(txn *badger.Txn) error {
		m, err = e.log.lastMark(txn)
		return err
	})
	return m, err
}

// walkAll is VerifyLog, in steps that are asked for here.
func walkAll(t testing.TB, e *testLog, c Check) (Report, error) {
	t.Helper()
	j := newJudge(&c)
	q := &verifyLogRequest{Ask: j.ask()}
	for {
		r, err := wire.Ask(t.Context(), e, q)
		if err != nil {
			return j.report, err
		}
		if err := j.judge(&r.Step); err != nil || r.Step.Finished {
			return j.report, err
		}
		q.Walk, q.Step = r.Walk, q.Step+1
	}
}

func hasFault(err error, f Fault) bool {
	fault, is := asError(err)
	return is && fault.Fault == f
}

// A prune that is interrupted shows nothing of what it was to remove, and the
// next one goes on; without a key there is none, and what was tampered with stays.
func TestPruneIsCareful(t *testing.T) {
	s, o := prunable(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ours := newTestKey("ours").open
	bare := o
	bare.Seal, bare.SealMark = nil, nil
	e := openLog(t, bare)
	if _, err := wire.Ask(t.Context(), e, &pruneRequest{}); !errors.Is(err, ErrNoSeal) {
		t.Error("without a key:", err)
	}
	e.log.opt = o.Options
	m, all, err := e.log.pruner.markMore(t.Context(), time.Now().Add(time.Hour).UnixMilli(), time.Now().Add(time.Hour))
	if err != nil || !all || m.Pruned != 343 {
		t.Fatal(m, err)
	}
	if r, err := walkAll(t, e, Check{Open: ours}); err != nil || !r.Unfinished || r.Records != 26 {
		t.Errorf("interrupted: %+v, %v", r, err)
	}
	for _, f := range []Filter{{Run: "run1"}, {Run: "run1", Limit: 5}, {Limit: 400}, {Decision: "deny", Limit: 400}, {}} {
		at := mustAsk(t, e, &seekRequest{Filter: f})
		if f.Limit = 0; at.From == 0 {
			continue
		}
		if r := mustAsk(t, e, &pageRequest{Filter: f, From: at.From, UpTo: at.UpTo}); len(r.Records) > 26 {
			t.Errorf("interrupted, %+v shows %d records", f, len(r.Records))
		}
	}
	if r := mustAsk(t, e, &pruneRequest{BeforeMS: 1}); r.Removed != 343 || !r.More {
		t.Error("gone on:", r.Removed, r.More)
	}
	if r, err := walkAll(t, e, Check{Open: ours}); err != nil || r.Unfinished || len(dumpLog(t, e, SpaceRecord)) != 26 {
		t.Error(r, err)
	}
	for _, space := range []byte{spaceRun, spaceAgent} {
		if n := len(dumpLog(t, e, space)); n != 26 {
			t.Errorf("%d entries are left in %c", n, space)
		}
	}
	// Records that come back are seen.
	if err := e.db.Update(func(txn *badger.Txn) error { return txn.Set(keyRecord(7), []byte("x")) }); err != nil {
		t.Fatal(err)
	}
	if _, err := walkAll(t, e, Check{}); !hasFault(err, FaultInserted) {
		t.Error(err)
	}
}

// What an adversary has changed is not pruned away.
func TestPruneKeepsEvidence(t *testing.T) {
	o, _ := threeRuns(t)
	attack(t, o, func(a *adversary) {
		recs := a.records()
		recs[49].Decision.Target = "/etc/shadow"
		a.put(50, recs[49])
	})
	s := openLog(t, o)
	if _, n, err := s.Prune(t.Context(), time.Now().Add(time.Hour)); !errors.Is(err, wire.ErrDamaged) || n != 0 {
		t.Error(n, err)
	}
}

// Each step of pruning begins behind the records that the one before it removed,
// and not at the first one again.
func TestPruningPassesOverNothingTwice(t *testing.T) {
	o := newPlace(t)
	for _, run := range []string{"one", "two", "three"} {
		logtest.Record(t, o.home, run, intakeItems)
	}
	ingestAll(t, o)
	e := openLog(t, o)
	if m, _, err := e.log.pruner.markMore(t.Context(), time.Now().Add(time.Hour).UnixMilli(),
		time.Now().Add(time.Hour)); err != nil || m.Pruned != 3*(intakeItems+1) {
		t.Fatalf("%+v, %v", m, err)
	}
	past := time.Now().Add(-time.Hour) // one batch, and no more
	for want := uint64(intakeItems); want <= 3*intakeItems; want += intakeItems {
		n, done, err := e.log.pruner.removePruned(t.Context(), past)
		if err != nil || done || n != intakeItems || e.log.pruner.removed != want {
			t.Fatalf("%d, %v, %v; removed up to %d, want %d", n, done, err, e.log.pruner.removed, want)
		}
	}
	if n, done, err := e.log.pruner.removePruned(t.Context(), past); err != nil || !done || n != 3 {
		t.Errorf("%d, %v, %v", n, done, err)
	}
}

// Who prunes gets the room back, while it goes on and not when badger comes to it;
// without that the database is larger than before.
func TestPruneGivesRoomBack(t *testing.T) {
	runs, each, both := 60, 1000, []bool{false, true}
	if testing.Short() { // the race detector: what is merged beside the prune, and how much there is without it is not asked
		runs, both = 15, both[1:]
	}
	sizes := map[bool]uint64{}
	for _, gives := range both {
		e := filled(t, runs, each)
		switch {
		case !gives:
			e.log.pruner.unfreed = -2 * runs * each
		case len(both) == 1:
			e.log.pruner.unfreed = fewRemoved // as if those were not the first
		}
		if _, n, err := e.Prune(t.Context(), time.Now().Add(time.Hour)); err != nil || n != runs*each {
			t.Fatal(n, err)
		}
		for _, table := range e.db.Tables() {
			sizes[gives] += uint64(table.OnDiskSize)
		}
		if r, err := e.VerifyLog(t.Context(), Check{Open: newTestKey("ours").open}); err != nil ||
			r.Pruned != uint64(runs*each) || r.Records != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	t.Log("bytes in tables:", sizes)
	if len(both) == 2 && sizes[true] > sizes[false]/4*3 { // the tables that badger is still writing when it is asked are not among them
		t.Errorf("the tables have %d bytes after pruning, and %d without giving room back", sizes[true], sizes[false])
	}
}

// filled is a log of runs that has been written into tables, all in one level. What
// is written next is in tables of its own soon.
func filled(t *testing.T, runs, each int) *testLog {
	t.Helper()
	o := newPlace(t)
	o.memTable = 4 << 20
	e := openLog(t, o)
	for i := range runs {
		if err := e.log.madeUp(fmt.Sprintf("0197b3e2-7c1d-7e4a-9d00-%012d", i), each, true); err != nil {
			t.Fatal(err)
		}
	}
	// Makes badger write and merge what it has, as it does with more of it.
	if err := errors.Join(e.db.Update(func(txn *badger.Txn) error { return txn.Set([]byte("other"), nil) }),
		e.db.DropPrefix([]byte("other")), e.db.Flatten(1)); err != nil {
		t.Fatal(err)
	}
	return e
}

// Records whose removal no table tells of yet take room, however often a prune that
// goes on in many parts asks: they count until there is something to merge.
func TestWhatIsNotFreedYetCounts(t *testing.T) {
	e := filled(t, 2, 1000)
	p := &e.log.pruner
	for _, last := range []bool{false, true} {
		p.unfreed = fewRemoved
		if err := p.giveBack(last); err != nil || p.unfreed != fewRemoved {
			t.Errorf("the last: %v: %d left, %v", last, p.unfreed, err)
		}
	}
	// The control: with a table that is above the others there is.
	if err := errors.Join(e.db.Update(func(txn *badger.Txn) error { return txn.Set([]byte("other"), nil) }),
		e.Close()); err != nil {
		t.Fatal(err)
	}
	e = openLog(t, e.place)
	p = &e.log.pruner
	p.unfreed = fewRemoved
	if err := p.giveBack(true); err != nil || p.unfreed != 0 {
		t.Errorf("%d left, %v; levels %+v", p.unfreed, err, e.db.Levels())
	}
}
