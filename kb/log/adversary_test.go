package log

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/logtest"
	"runloop.dev/rlp/kb/wire"
)

// An adversary is root: they stop whoever owns the store, open its database with
// a program that knows where everything lies, and change what they like.
type adversary struct {
	*testing.T
	db    *badger.DB
	codec *audit.Codec
	keys  testKey // not the operator's
}

// attack lets an adversary at a store that nobody has open.
func attack(t *testing.T, o place, do func(a *adversary)) {
	t.Helper()
	db, err := badger.Open(db.DatabaseOptions(o.dir()))
	if err != nil {
		t.Fatal(err)
	}
	codec, err := audit.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	do(&adversary{t, db, codec, newTestKey("theirs")})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func (a *adversary) update(do func(txn *badger.Txn) error) {
	a.Helper()
	if err := a.db.Update(do); err != nil {
		a.Fatal(err)
	}
}

func (a *adversary) set(k, v []byte) {
	a.Helper()
	a.update(func(txn *badger.Txn) error { return txn.Set(k, v) })
}

func (a *adversary) drop(k []byte) {
	a.Helper()
	a.update(func(txn *badger.Txn) error { return txn.Delete(k) })
}

func (a *adversary) get(k []byte) (v []byte) {
	a.Helper()
	err := a.db.View(func(txn *badger.Txn) (err error) {
		v, err = db.Get(txn, k)
		return err
	})
	if err != nil || v == nil {
		a.Fatalf("%q: %v", k, err)
	}
	return v
}

// all is everything in a space.
func (a *adversary) all(space byte) []stored {
	a.Helper()
	return pairsIn(a, a.db, space)
}

// records is the log.
func (a *adversary) records() (recs []*audit.Record) {
	a.Helper()
	for _, p := range a.all(SpaceRecord) {
		rec, err := a.codec.Decode(p.value)
		if err != nil {
			a.Fatal(err)
		}
		recs = append(recs, &rec)
	}
	return recs
}

// put stores a record under a number, and nothing else.
func (a *adversary) put(at uint64, rec *audit.Record) {
	a.Helper()
	p, err := a.codec.Encode(rec)
	if err != nil {
		a.Fatal(err)
	}
	a.set(keyRecord(at), p)
}

// How thorough an adversary is who has another log in mind.
const (
	withIndex  = 1 << iota // what leads to records leads to those that are there
	withNumber             // records say the number of their new place
	withRunSeq             // and follow each other within their runs
	withTree               // tiles and root are those of the records
	withStates             // journals were taken in as far as the log goes
	withOwnKey             // checkpoints are made again, signed with a key of their own
	withNone               // checkpoints are gone
)

// replace makes recs the log.
func (a *adversary) replace(recs []*audit.Record, how int) {
	a.Helper()
	if err := a.db.DropPrefix([]byte{SpaceRecord}); err != nil {
		a.Fatal(err)
	}
	last := map[string]uint64{}
	for i, r := range recs {
		if how&withNumber != 0 {
			r.Seq = uint64(i + 1)
		}
		if last[r.Head.RunID]++; how&withRunSeq != 0 {
			r.RunSeq = last[r.Head.RunID]
		}
		a.put(uint64(i+1), r)
	}
	if how&withIndex != 0 {
		a.reindex(recs)
	}
	if how&withTree != 0 {
		a.replant(recs)
	}
	if how&withStates != 0 {
		a.restate(last)
	}
	if how&(withOwnKey|withNone) != 0 {
		a.resign(how)
	}
}

func (a *adversary) reindex(recs []*audit.Record) {
	if err := a.db.DropPrefix([]byte{spaceRun}, []byte{spaceAgent}, []byte{spaceOther}); err != nil {
		a.Fatal(err)
	}
	a.update(func(txn *badger.Txn) error {
		for i, r := range recs {
			seq := uint64(i + 1)
			if err := errors.Join(txn.Set(keyRun(r.Head.RunID, r.RunSeq), db.Number(nil, seq)),
				txn.Set(keyAgent(r.Head.Agent, seq),
					nil)); err != nil {
				return err
			}
			if !r.Allowed() {
				if err := txn.Set(keyOther(seq), nil); err != nil {
					return err
				}
			}
		}
		return txn.Set(keySeq(), db.Number(nil, uint64(len(recs))))
	})
}

// replant makes the tree anew.
func (a *adversary) replant(recs []*audit.Record) {
	if err := a.db.DropPrefix([]byte{SpaceTile}); err != nil {
		a.Fatal(err)
	}
	t := &tree{}
	for _, r := range recs {
		line, err := r.AppendJSON(nil)
		if err != nil {
			a.Fatal(err)
		}
		t.add(tlog.RecordHash(line))
	}
	a.update(t.save)
}

func (a *adversary) restate(last map[string]uint64) {
	for _, p := range a.all(SpaceState) {
		var s journalState
		if err := a.codec.Unmarshal(p.value, &s); err != nil {
			a.Fatal(err)
		}
		n := last[string(p.key[1:])]
		if n == 0 {
			a.drop(p.key)
			continue
		}
		s.State.RunSeq = n
		v, err := s.Encode(a.codec, string(p.key[1:]))
		if err != nil {
			a.Fatal(err)
		}
		a.set(p.key, v)
	}
}

func (a *adversary) resign(how int) {
	for _, p := range a.all(SpaceCheckpoint) {
		a.drop(p.key)
		if how&withNone != 0 {
			continue
		}
		a.update(func(txn *badger.Txn) error {
			head, err := storedHead(txn)
			size := db.TailNumber(p.key)
			if err != nil || size > head.Size {
				return err
			}
			root, err := rootAt(txn, size)
			if err != nil {
				return err
			}
			note, err := a.keys.Seal(size, root)
			if err != nil {
				return err
			}
			v, err := a.codec.Marshal(Checkpoint{Head{size, root}, note})
			if err != nil {
				return err
			}
			return txn.Set(p.key, v)
		})
	}
}

// threeRuns is a closed store of three runs that have ended, 41, 31 and 21
// records long, and the head of each checkpoint.
func threeRuns(t testing.TB) (place, []Head) {
	t.Helper()
	o := newPlace(t)
	s, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range []string{"run1", "run22", "run333"} {
		logtest.Record(t, o.home, run, 40-10*i)
		if _, err := s.Ingest(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var heads []Head
	for c, err := range s.Checkpoints(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, c.Head)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(heads) != 3 || heads[2].Size != 93 {
		t.Fatal(heads)
	}
	for _, run := range []string{"run1", "run22", "run333"} { // as they will be soon
		if err := os.Remove(filepath.Join(o.home, "journal", run)); err != nil {
			t.Fatal(err)
		}
	}
	return o, heads
}

// copied is another store that holds the same.
func copied(t testing.TB, o place) place {
	t.Helper()
	from := o.home
	o.home = filepath.Join(t.TempDir(), "home")
	if err := os.CopyFS(o.home, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(o.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, os.Chmod(path, 0o700))
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// verified opens a store and verifies its log.
func verified(t testing.TB, o place, c Check) (Report, error) {
	t.Helper()
	s, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.VerifyLog(t.Context(), c)
}

// Whatever an adversary with root does to the log is named, with the first record
// that it is about: without the key by the checkpoints in the store, and what
// nothing in the store can show, by a checkpoint that was held elsewhere.
func TestAdversary(t *testing.T) {
	all := withIndex | withNumber | withRunSeq | withTree | withStates
	ours := newTestKey("ours").open
	change := func(a *adversary, at uint64) []*audit.Record {
		recs := a.records()
		recs[at-1].Decision.Deny, recs[at-1].Decision.Target = false, "/etc/shadow"
		return recs
	}
	without := func(a *adversary, at uint64) []*audit.Record { return slices.Delete(a.records(), int(at-1), int(at)) }
	swapped := func(a *adversary, i, j uint64) []*audit.Record {
		recs := a.records()
		recs[i-1], recs[j-1] = recs[j-1], recs[i-1]
		return recs
	}
	with := func(a *adversary, at uint64) []*audit.Record {
		recs := a.records()
		r := *recs[at]
		d := *r.Decision
		d.Target, r.Decision = "/srv/alibi", &d
		return slices.Insert(recs, int(at-1), &r)
	}
	whole, heads := threeRuns(t)
	outside := Check{Open: ours, Against: heads[2:]}
	if r, err := verified(t, copied(t, whole), outside); err != nil || r.Records != 93 || r.Checkpoints != 3 ||
		r.Sealed != 93 || r.Runs != 3 || r.Open != 0 {
		t.Fatalf("the control: %+v, %v", r, err)
	}
	for name, c := range map[string]struct {
		do    func(a *adversary)
		fault Fault
		seq   uint64
		outer bool // only a checkpoint that is held elsewhere shows it
	}{
		"nothing": {do: func(*adversary) {}},
		"change":  {func(a *adversary) { a.replace(change(a, 50), 0) }, FaultChanged, 50, false},
		"change, index too": {
			func(a *adversary) { a.replace(change(a, 50), withIndex) }, FaultChanged, 50,
			false,
		},
		"change, tree too": {func(a *adversary) { a.replace(change(a, 50), all) }, FaultRewritten, 42, false},
		"change, own key": {
			func(a *adversary) { a.replace(change(a, 50), all|withOwnKey) }, FaultCheckpoint, 0,
			false,
		},
		"change, no checkpoints": {
			func(a *adversary) { a.replace(change(a, 50), all|withNone) }, FaultUnsealed, 41,
			false,
		},
		"delete": {func(a *adversary) { a.drop(keyRecord(50)) }, FaultRemoved, 50, false},
		"delete and close the gap": {
			func(a *adversary) { a.replace(without(a, 50), withIndex|withNumber) }, FaultTree,
			93, false,
		},
		"delete, numbers, no counter": {
			func(a *adversary) { a.replace(without(a, 50), withNumber) }, FaultRemoved, 50,
			false,
		},
		"delete, tree too": {func(a *adversary) { a.replace(without(a, 50), all) }, FaultRewritten, 42, false},
		"delete, no checkpoints": {
			func(a *adversary) { a.replace(without(a, 50), all|withNone) }, FaultUnsealed, 41,
			false,
		},
		"delete from runs too": {func(a *adversary) {
			a.replace(without(a, 50),
				withTree|withIndex|withNumber|withStates)
		}, FaultRun, 50, false},
		"swap": {func(a *adversary) { a.replace(swapped(a, 50, 52), 0) }, FaultReordered, 50, false},
		"swap, numbers too": {
			func(a *adversary) { a.replace(swapped(a, 50, 52), withNumber) }, FaultReordered,
			50, false,
		},
		"swap, tree too": {
			func(a *adversary) { a.replace(swapped(a, 50, 52), all) }, FaultRewritten, 42,
			false,
		},
		"insert": {func(a *adversary) { a.replace(with(a, 50), 0) }, FaultReordered, 50, false},
		"insert, numbers too": {
			func(a *adversary) { a.replace(with(a, 50), withNumber) }, FaultInserted, 50,
			false,
		},
		"insert, tree too":          {func(a *adversary) { a.replace(with(a, 50), all) }, FaultRewritten, 42, false},
		"insert behind the end":     {func(a *adversary) { a.put(94, a.records()[3]) }, FaultInserted, 94, false},
		"insert far behind the end": {func(a *adversary) { a.put(94000, a.records()[3]) }, FaultInserted, 94000, false},
		"truncate": {
			func(a *adversary) { a.drop(keyRecord(93)); a.drop(keyRecord(92)) }, FaultTruncated,
			92, false,
		},
		"truncate, tree too": {func(a *adversary) { a.replace(a.records()[:70], all) }, FaultTruncated, 71, false},
		"truncate in a run": {
			func(a *adversary) { a.replace(a.records()[:70], all|withNone) }, FaultRun, 0,
			false,
		},
		"truncate, and checkpoints": {
			func(a *adversary) { a.replace(a.records()[:72], all); a.drop(keyCheckpoint(93)) },
			FaultTruncated, 73, true,
		},
		"the last checkpoint is gone": {func(a *adversary) { a.drop(keyCheckpoint(93)) }, FaultUnsealed, 93, false},
		"a leaf":                      {func(a *adversary) { a.flip(keyTile(0, 0), 49*32) }, FaultTree, 50, false},
		"the root":                    {func(a *adversary) { a.flip(keyHead(), 20) }, FaultTree, 1, false},
		"a tile more":                 {func(a *adversary) { a.set(keyTile(0, 7), make([]byte, 32)) }, FaultTree, 0, false},
		"the counter":                 {func(a *adversary) { a.set(keySeq(), db.Number(nil, 92)) }, FaultTree, 93, false},
		"a record will be gone":       {func(a *adversary) { a.expire(keyRecord(50)) }, FaultChanged, 50, false},
		"a run's entry":               {func(a *adversary) { a.drop(keyRun("run22", 3)) }, FaultIndex, 44, false},
		"an agent's entry":            {func(a *adversary) { a.drop(keyAgent("writer", 44)) }, FaultIndex, 44, false},
		"a denial's entry":            {func(a *adversary) { a.drop(keyOther(44)) }, FaultIndex, 44, false},
		"a run's entry leads away": {
			func(a *adversary) { a.set(keyRun("run22", 3), db.Number(nil, 45)) }, FaultIndex, 44,
			false,
		},
		"a stray entry of a run": {
			func(a *adversary) { a.set(keyRun("run22", 99), db.Number(nil, 45)) }, FaultIndex, 45,
			false,
		},
		"a stray entry of an agent": {func(a *adversary) { a.set(keyAgent("saint", 44), nil) }, FaultIndex, 44, false},
		"a stray entry of a denial": {func(a *adversary) { a.set(keyOther(42), nil) }, FaultIndex, 42, false},
		"an entry that is no entry": {func(a *adversary) { a.set([]byte("g\x00\x06wri"), nil) }, FaultIndex, 0, false},
		"an entry will be gone":     {func(a *adversary) { a.expire(keyOther(44)) }, FaultIndex, 44, false},
		"a checkpoint of its own":   {func(a *adversary) { a.resign(withOwnKey) }, FaultCheckpoint, 0, false},
		"a checkpoint of the future": {
			func(a *adversary) { a.set(keyCheckpoint(94), a.get(keyCheckpoint(93))) },
			FaultCheckpoint, 0, false,
		},
		"pruned, says the counter": {
			func(a *adversary) { a.dropUpTo(41); a.set(keyPruned(), db.Number(nil, 41)) },
			FaultRemoved, 1, false,
		},
		"pruned, says a mark of theirs": {func(a *adversary) { a.dropUpTo(41); a.ownMark(41) }, FaultRemoved, 1, false},
	} {
		if testing.Short() && len(name)%4 != 0 {
			continue // a quarter of them, where everything takes long
		}
		t.Run(name, func(t *testing.T) {
			o := copied(t, whole)
			attack(t, o, c.do)
			if err := readAll(t, o); err != nil && (strings.Contains(name, "tree too") || strings.Contains(name, "own key") ||
				strings.Contains(name, "no checkpoints")) {
				t.Errorf("who only reads the log should notice nothing of this: %v", err)
			}
			_, err := verified(t, o, Check{Open: ours})
			if c.outer {
				if err != nil {
					t.Errorf("without a checkpoint from elsewhere nobody could know: %v", err)
				}
				_, err = verified(t, o, outside)
			}
			fault, is := asError(err)
			if c.fault == "" && err == nil {
				return
			}
			if !is || fault.Fault != c.fault || fault.Seq != c.seq || !errors.Is(err, wire.ErrDamaged) {
				t.Errorf("it says: %v; it is: %s of record %d", err, c.fault, c.seq)
			}
		})
	}
}

// readAll reads a log as rlp audit list does.
func readAll(t *testing.T, o place) error {
	t.Helper()
	s, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, f := range []Filter{{}, {Run: "run22"}, {Agent: "writer"}, {Decision: "deny"}} {
		for _, err := range s.Audit(t.Context(), f) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *adversary) flip(k []byte, at int) {
	p := a.get(k)
	p[at] ^= 1
	a.set(k, p)
}

func (a *adversary) expire(k []byte) {
	v := a.get(k)
	a.update(func(txn *badger.Txn) error { return txn.SetEntry(badger.NewEntry(k, v).WithTTL(1 << 50)) })
}

func (a *adversary) dropUpTo(seq uint64) {
	for i, r := range a.records()[:seq] {
		n := uint64(i + 1)
		for _, k := range [][]byte{keyRecord(n), keyRun(r.Head.RunID, r.RunSeq), keyAgent(r.Head.Agent, n), keyOther(n)} {
			a.drop(k)
		}
	}
}

func (a *adversary) ownMark(seq uint64) {
	var head Head
	a.update(func(txn *badger.Txn) (err error) {
		head, err = storedHead(txn)
		return err
	})
	m := Mark{Head: head, Pruned: seq, UnixMS: 1}
	m.Note, _ = a.keys.Mark(head.Size, head.Root, m.lines())
	p, err := a.codec.Marshal(m)
	if err != nil {
		a.Fatal(err)
	}
	a.set(keyMark(seq), p)
	a.set(keyPruned(), db.Number(nil, seq))
}
