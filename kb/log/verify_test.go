package log

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/logtest"
	"runloop.dev/rlp/kb/wire"
)

// A checkpoint is made when a run ends, every so many records, and when it is
// asked for; each is a head that the log went through, and is made once.
func TestCheckpoints(t *testing.T) {
	o := newPlace(t)
	o.CheckpointEvery = 100
	s := openLog(t, o)
	client := openLog(t, o)
	sizes := func(after uint64) (got []uint64) {
		for c, err := range client.Checkpoints(t.Context(), after) {
			if err != nil {
				t.Fatal(err)
			}
			opened, err := newTestKey("ours").open(c.Note)
			if err != nil || opened.Head != c.Head {
				t.Fatal(c, opened, err)
			}
			got = append(got, c.Head.Size)
		}
		return got
	}
	j := logtest.Begin(t, o.home, "run1", 90)
	if _, err := s.Ingest(t.Context()); err != nil || len(sizes(0)) != 0 {
		t.Fatal(sizes(0), err)
	}
	logtest.Decide(t, j, 20)
	if _, err := s.Ingest(t.Context()); err != nil || !slices.Equal(sizes(0), []uint64{110}) {
		t.Fatal(sizes(0), err)
	}
	logtest.Decide(t, j, 5)
	for range 2 {
		c, err := client.Checkpoint(t.Context())
		if err != nil || c.Head.Size != 115 {
			t.Fatal(c, err)
		}
	}
	logtest.End(t, j)
	if _, err := s.Ingest(t.Context()); err != nil || !slices.Equal(sizes(0), []uint64{110, 115, 116}) ||
		!slices.Equal(sizes(110), []uint64{115, 116}) {
		t.Fatal(sizes(0), err)
	}
	if _, err := openLog(t, newPlace(t)).Checkpoint(t.Context()); err != nil {
		t.Error("of an empty log:", err)
	}
	bare := newPlace(t)
	bare.Seal, bare.SealMark = nil, nil
	if _, err := openLog(t, bare).Checkpoint(t.Context()); !errors.Is(err, wire.ErrUnavailable) {
		t.Error("without a key:", err)
	}
}

// A key that cannot be used keeps no record out of the log: that there is no
// checkpoint is reported, verify names the run that has none, and the next
// records are signed with those before them.
func TestNoCheckpointNow(t *testing.T) {
	working := true
	o := newPlace(t)
	seal := o.Seal
	o.Seal = func(size uint64, root [32]byte) ([]byte, error) {
		if !working {
			return nil, errors.New("the key is gone")
		}
		return seal(size, root)
	}
	s, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	logtest.Record(t, o.home, "run1", 5)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	working = false
	logtest.Record(t, o.home, "run22", 5)
	got, err := s.Ingest(t.Context())
	if err != nil || got.Records != 6 || len(got.Damaged) != 1 || !strings.Contains(got.Damaged[0], "the key is gone") {
		t.Fatal(got, err)
	}
	check := Check{Open: newTestKey("ours").open}
	var fault *Error
	if _, err := s.VerifyLog(t.Context(), check); !errors.As(err, &fault) || fault.Fault != FaultUnsealed ||
		fault.Seq != 12 {
		t.Error(err)
	}
	working = true
	j := logtest.Begin(t, o.home, "run333", 1)
	defer j.Close()
	if got, err := s.Ingest(t.Context()); err != nil || len(got.Damaged) > 0 {
		t.Error(got, err)
	}
	if r, err := s.VerifyLog(t.Context(), check); err != nil || r.Sealed != 13 || r.Open != 1 {
		t.Error(r, err)
	}
}

// Nothing is signed that does not go on from what was signed before: what was
// rewritten behind the store's back gets no checkpoint.
func TestNothingElseIsSigned(t *testing.T) {
	o, _ := threeRuns(t)
	attack(t, o, func(a *adversary) {
		recs := a.records()
		recs[49].Decision.Target = "/srv/alibi"
		a.replace(recs, withIndex|withNumber|withTree)
	})
	s := openLog(t, o)
	if _, err := s.Checkpoint(t.Context()); !errors.Is(err, wire.ErrDamaged) {
		t.Error(err)
	}
	logtest.Record(t, o.home, "run4444", 5)
	if got, err := s.Ingest(t.Context()); err != nil || got.Records != 6 || len(got.Damaged) != 1 {
		t.Error(got, err)
	}
}

// One run, or what came since a checkpoint, is looked at alone: what is wrong
// there is found, and what is wrong elsewhere is not looked for.
func TestVerifyPart(t *testing.T) {
	whole, heads := threeRuns(t)
	ours := newTestKey("ours").open
	run := Check{Open: ours, Run: "run22"}
	since := Check{Open: ours, Since: heads[1]}
	within := openLog(t, copied(t, whole))
	for size := range uint64(94) { // in the middle of runs, and at their ends
		r, err := within.VerifyLog(t.Context(), Check{Open: ours, Since: rootOf(t, within, size)})
		if err != nil || r.Records != int(93-size) {
			t.Errorf("since %d: %+v, %v", size, r, err)
		}
	}
	for name, c := range map[string]struct {
		do                func(a *adversary)
		ofRun, afterwards Fault
	}{
		"nothing":               {func(*adversary) {}, "", ""},
		"before":                {func(a *adversary) { a.flip(keyRecord(5), 60) }, "", ""},
		"in the run":            {func(a *adversary) { a.flip(keyRecord(50), 60) }, FaultChanged, ""},
		"in the run, gone":      {func(a *adversary) { a.drop(keyRecord(50)) }, FaultRemoved, ""},
		"in the run, not shown": {func(a *adversary) { a.drop(keyRun("run22", 9)) }, FaultRun, ""},
		"its end, not shown":    {func(a *adversary) { a.drop(keyRun("run22", 31)) }, FaultIndex, ""},
		"its denial, not shown": {func(a *adversary) { a.drop(keyOther(50)) }, FaultIndex, ""},
		"after it":              {func(a *adversary) { a.flip(keyRecord(80), 60) }, "", FaultChanged},
		"after it, not shown":   {func(a *adversary) { a.drop(keyAgent("reader", 80)) }, "", FaultIndex},
		"its leaf":              {func(a *adversary) { a.flip(keyTile(0, 0), 49*32+1) }, FaultTree, FaultRewritten},
		"the head of before": {
			func(a *adversary) { a.replace(a.records()[:60], withIndex|withNumber|withTree|withNone) },
			FaultRun, FaultTruncated,
		},
	} {
		o := copied(t, whole)
		attack(t, o, c.do)
		s := openLog(t, o)
		for _, part := range []struct {
			check Check
			want  Fault
			n     int
		}{{run, c.ofRun, 31}, {since, c.afterwards, 21}} {
			r, err := s.VerifyLog(t.Context(), part.check)
			if part.want == "" && (err != nil || r.Records != part.n || r.Runs != 1) || part.want != "" &&
				!hasFault(err, part.want) {
				t.Errorf("%s: run %q since %d: %+v, %v, want %q", name, part.check.Run, part.check.Since.Size, r, err, part.want)
			}
		}
		s.Close()
	}
}

func rootOf(t *testing.T, s *testLog, size uint64) Head {
	t.Helper()
	if size == 0 {
		return Head{}
	}
	return Head{size, mustRoot(t, s, size)}
}

// An older copy of the whole store is whole: only a head that was held elsewhere
// shows that something is missing.
func TestRollback(t *testing.T) {
	o := newPlace(t)
	s := openLog(t, o)
	logtest.Record(t, o.home, "run1", 5)
	if _, err := s.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	older := copied(t, o)
	s = openLog(t, o)
	logtest.Record(t, o.home, "run22", 5)
	outside, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check := Check{Open: newTestKey("ours").open}
	known := Check{Open: check.Open, Against: []Head{outside.Head}}
	if _, err := s.VerifyLog(t.Context(), known); err != nil {
		t.Error("the control:", err)
	}
	if _, err := verified(t, older, check); err != nil {
		t.Error("alone it is whole:", err)
	}
	if _, err := verified(t, older, known); !hasFault(err, FaultTruncated) {
		t.Error(err)
	}
	if _, err := verified(t, older, Check{Since: outside.Head}); !hasFault(err, FaultTruncated) {
		t.Error(err)
	}
	// It goes on in another way, and is longer than what is known: another log.
	logtest.Record(t, older.home, "run333", 9)
	fork := openLog(t, older)
	if _, err := fork.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := fork.VerifyLog(t.Context(), known); !hasFault(err, FaultRewritten) {
		t.Error(err)
	}
}

// A log is verified in steps while it grows, by another process too; one whose
// owner has changed is verified from the beginning, and not more than a few at a
// time.
func TestVerifyWhileInUse(t *testing.T) {
	o := newPlace(t)
	first := openLog(t, o)
	client := openLog(t, o)
	for i := range 3 {
		logtest.Record(t, o.home, fmt.Sprint("run", i), 400)
	}
	if _, err := client.Ingest(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.log.verifyStep = 1
	check := Check{Open: newTestKey("ours").open}
	j := newJudge(&check)
	q := &verifyLogRequest{Ask: j.ask()}
	steps := 0
	for done := false; !done; steps++ {
		logtest.Record(t, o.home, fmt.Sprint("more", steps), 3)
		if _, err := client.Ingest(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := wire.Ask(t.Context(), client, q)
		if err != nil || r.Step.Gone {
			t.Fatal(r, err)
		}
		if err := j.judge(&r.Step); err != nil {
			t.Fatal(err)
		}
		q.Walk, q.Step, done = r.Walk, q.Step+1, r.Step.Finished
	}
	if j.report.Records != 1207 || j.report.Sealed != 1207 || steps < 5 {
		t.Errorf("in %d steps: %+v", steps, j.report)
	}
	for range 4 {
		if _, err := wire.Ask(t.Context(), client, &verifyLogRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.VerifyLog(t.Context(), check); !errors.Is(err, wire.ErrUnavailable) {
		t.Error("one more at a time:", err)
	}
	q = &verifyLogRequest{Walk: 3, Step: 1}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := wire.Ask(t.Context(), client, q); err != nil || !r.Step.Gone {
		t.Error("another owner goes on with what it has not begun:", r, err)
	}
	if r, err := client.VerifyLog(t.Context(), check); err != nil || r.Sealed < 1207 {
		t.Error(r, err)
	}
}

// Whatever byte of a record, a tile, a checkpoint, an entry or the head is
// another, or is gone, is found.
func TestEveryByteCounts(t *testing.T) {
	o, _ := threeRuns(t)
	e := openLog(t, o)
	check := Check{Open: newTestKey("ours").open}
	if _, err := walkAll(t, e, check); err != nil {
		t.Fatal("the control:", err)
	}
	all := dumpLog(t, e, SpaceRecord, spaceRun, spaceAgent, spaceOther, SpaceTile, SpaceCheckpoint)
	all[string(keyHead())] = append([]byte(nil), dumpLog(t, e, 'm')[string(keyHead())]...)
	keys := make([]string, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	set := func(k string, v []byte) {
		err := e.db.Update(func(txn *badger.Txn) error {
			if v == nil {
				return txn.Delete([]byte(k))
			}
			return txn.Set([]byte(k), v)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.SampledFrom(keys).Draw(rt, "key")
		was := all[k]
		at := rapid.IntRange(0, len(was)+len(k)-1).Draw(rt, "byte")
		bit := byte(1) << rapid.IntRange(0, 7).Draw(rt, "bit")
		var changed []byte
		undo := func() { set(k, was) }
		switch {
		case rapid.IntRange(0, 9).Draw(rt, "gone") == 0:
			if k[0] == SpaceCheckpoint && db.TailNumber([]byte(k)) < 93 {
				return // one of before is not missed: a later one says the same
			}
			set(k, nil)
		case at < len(was):
			changed = slices.Clone(was)
			changed[at] ^= bit
			set(k, changed)
		default: // a byte of the key
			p := []byte(k)
			p[at-len(was)] ^= bit
			if _, there := all[string(p)]; there || !strings.ContainsRune("argnTC", rune(p[0])) {
				return
			}
			if k[0] == SpaceCheckpoint {
				return // moved: found as one of another size, or not missed
			}
			set(k, nil)
			set(string(p), was)
			undo = func() { set(string(p), nil); set(k, was) }
		}
		_, err := walkAll(t, e, check)
		undo()
		if _, is := asError(err); !is && !sameRecord(e, k, changed, was) {
			rt.Fatalf("byte %d of %q: %v", at, k, err)
		}
	})
	// Every byte, if there is time; otherwise some of each.
	stride := 211
	if os.Getenv("RLP_SOAK") != "" {
		stride = 1
	}
	at := 0
	for _, k := range keys {
		for ; at < len(all[k]); at += stride {
			p := slices.Clone(all[k])
			p[at] ^= 1 << (at % 8)
			set(k, p)
			if _, err := walkAll(t, e, check); !isDamage(err) && !sameRecord(e, k, p, all[k]) {
				t.Errorf("byte %d of %q: %v", at, k, err)
			}
		}
		at -= len(all[k])
		set(k, all[k])
	}
	if _, err := walkAll(t, e, check); err != nil {
		t.Error("all is as it was:", err)
	}
}

// sameRecord reports whether two stored forms are the same record, as an empty
// text is where there is none: its line is the same, and so is its leaf.
func sameRecord(e *testLog, k string, p, q []byte) bool {
	a, err := e.codec.Decode(p)
	b, berr := e.codec.Decode(q)
	return k[0] == SpaceRecord && err == nil && berr == nil && reflect.DeepEqual(a, b)
}

// A bit that is another in a file of the database is found when it is opened or
// when the log is verified, never passed over.
func TestFilesFailClosed(t *testing.T) {
	whole, _ := threeRuns(t)
	check := Check{Open: newTestKey("ours").open}
	files, err := filepath.Glob(filepath.Join(whole.home, "kb", "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, f := range files {
		if ext := filepath.Ext(f); ext != ".sst" && ext != ".vlog" {
			continue
		}
		p, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if len(p) < 12 {
				continue
			}
			o := copied(t, whole)
			q := slices.Clone(p)
			at := i * (len(q) - 1) / 11
			q[at] ^= 0x10
			if err := os.WriteFile(filepath.Join(o.home, "kb", filepath.Base(f)), q, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := open(o)
			var r Report
			if err == nil {
				r, err = s.VerifyLog(t.Context(), check)
				s.Close()
			}
			// A byte that nothing is read from changes nothing.
			if err == nil && (r.Records != 93 || r.Sealed != 93) || err != nil && !errors.Is(err, wire.ErrDamaged) &&
				!errors.Is(err, wire.ErrUnavailable) {
				t.Errorf("byte %d of %d of %s: %+v, %v", at, len(q), filepath.Base(f), r, err)
			}
			tried++
		}
	}
	if tried < 12 {
		t.Errorf("%d places were tried", tried)
	}
}

// A log of before it was a tree gets one, in steps that
// may be interrupted; a record that cannot be read is named by who verifies it,
// and keeps nobody from the rest of the store.
func TestLeavesOfOlderStores(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		o, heads := threeRuns(t)
		attack(t, o, func(a *adversary) {
			if err := a.db.DropPrefix([]byte{SpaceTile}, []byte{SpaceCheckpoint}, keyHead()); err != nil {
				a.Fatal(err)
			}
			if !interrupted {
				return
			}
			t := &tree{}
			for _, r := range a.records()[:50] {
				line, err := r.AppendJSON(nil)
				if err != nil {
					a.Fatal(err)
				}
				t.add(tlog.RecordHash(line))
			}
			a.update(t.save)
		})
		s := openLog(t, o)
		if err := s.log.AddLeaves(); err != nil {
			t.Fatal(err)
		}
		if r, err := s.VerifyLog(t.Context(), Check{Open: newTestKey("ours").open, Against: heads}); err != nil ||
			r.Records != 93 ||
			r.Sealed != 93 || r.Checkpoints != 1 {
			t.Errorf("interrupted %v: %+v, %v", interrupted, r, err)
		}
	}
	o, _ := threeRuns(t)
	attack(t, o, func(a *adversary) {
		if err := a.db.DropPrefix([]byte{SpaceTile}, []byte{SpaceCheckpoint}, keyHead()); err != nil {
			a.Fatal(err)
		}
		a.set(keyRecord(50), []byte("no record"))
	})
	s := openLog(t, o)
	if err := s.log.AddLeaves(); err != nil {
		t.Fatal(err)
	}
	var fault *Error
	if _, err := s.VerifyLog(t.Context(), Check{}); !errors.As(err, &fault) || fault.Seq != 50 {
		t.Error(err)
	}
}
