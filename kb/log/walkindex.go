package log

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
)

// indexSpaces are the spaces that lead to records, and what they are called.
var indexSpaces = [...]struct {
	space byte
	name  string
}{{spaceRun, "runs"}, {spaceAgent, "agents"}, {spaceOther, "what was not allowed"}}

// A multiset is a sum over entries that does not depend on their order, under a
// key that is made for one verification: whoever changed the entries could not
// know it.
type multiset struct{ n, sum uint64 }

// entries calls visit with what must lead to a record: key, then value.
func (x *indexWalk) entries(g *audit.Glance, visit func(i int, entry []byte, key int)) {
	x.key = append(append(x.key[:0], spaceRun, byte(len(g.Run)>>8), byte(len(g.Run))), g.Run...)
	x.key = db.Number(x.key, g.RunSeq)
	n := len(x.key)
	x.key = db.Number(x.key, g.Seq)
	visit(0, x.key, n)
	x.key = append(append(x.key[:0], spaceAgent, byte(len(g.Agent)>>8), byte(len(g.Agent))), g.Agent...)
	x.key = db.Number(x.key, g.Seq)
	visit(1, x.key, len(x.key))
	if !g.Decided || g.Deny {
		x.key = db.Number(append(x.key[:0], spaceOther), g.Seq)
		visit(2, x.key, len(x.key))
	}
}

// record counts what must lead to a record.
func (x *indexWalk) record(g *audit.Glance) {
	if !x.made {
		x.seed, x.made = maphash.MakeSeed(), true
	}
	x.entries(g, func(i int, entry []byte, key int) { x.want[i].add(x.seed, entry, key) })
}

// add counts an entry; where its key ends is a part of it.
func (m *multiset) add(seed maphash.Seed, entry []byte, key int) {
	m.n++
	m.sum += maphash.Bytes(seed, entry) * uint64(2*key+1)
}

// indexes counts what is stored, and looks for what is wrong when the sums differ.
func (w *walk) indexes(ctx context.Context, until time.Time) (bool, error) {
	x := &w.index
	if !x.made {
		x.seed, x.made = maphash.MakeSeed(), true
	}
	for ; x.at < len(indexSpaces); x.at++ {
		done, err := w.countSpace(ctx, until)
		if err != nil || !done {
			return false, err
		}
		if x.have[x.at] != x.want[x.at] {
			w.index.from = nil
			w.stage = w.missingEntries
			return true, nil
		}
	}
	w.stage = w.states
	return true, nil
}

// eachEntry calls visit with the entries of the space that is looked at, in steps.
func (w *walk) eachEntry(ctx context.Context, until time.Time, visit func(item *badger.Item, entry []byte,
	key int) error,
) (bool, error) {
	x := &w.index
	space := indexSpaces[x.at].space
	if x.from == nil {
		x.from = []byte{space}
	}
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
	defer it.Close()
	n := 0
	for it.Seek(x.from); it.Valid(); it.Next() {
		item := it.Item()
		if n++; n%1024 == 0 && (ctx.Err() != nil || time.Now().After(until)) {
			x.from = item.KeyCopy(nil)
			return false, ctx.Err()
		}
		x.key = append(x.key[:0], item.Key()...)
		key := len(x.key)
		var err error
		if item.ValueSize() > 0 {
			err = item.Value(func(p []byte) error {
				x.key = append(x.key, p...)
				return nil
			})
		}
		if err == nil && !w.before(x.key) {
			err = visit(item, x.key, key)
		}
		if err != nil {
			return false, err
		}
	}
	x.from = nil
	return true, nil
}

// before reports whether an entry leads to a record that this verification does
// not look at. Entries end in the number of the record.
func (w *walk) before(entry []byte) bool {
	seq := db.TailNumber(entry)
	return len(entry) >= 9 && seq != 0 && (seq <= w.ask.Since.Size || w.report.Unfinished && seq <= w.report.Pruned)
}

// countSpace counts the entries of one space.
func (w *walk) countSpace(ctx context.Context, until time.Time) (bool, error) {
	x := &w.index
	have := &x.have[x.at]
	return w.eachEntry(ctx, until, func(item *badger.Item, entry []byte, key int) error {
		if item.ExpiresAt() != 0 {
			return indexFault(x.at, db.TailNumber(entry), "an entry was given a time at which it will be gone")
		}
		have.add(x.seed, entry, key)
		return nil
	})
}

func indexFault(i int, seq uint64, why string) error {
	return &Error{FaultIndex, seq, 0, "in the index of " + indexSpaces[i].name + " " + why}
}

// missingEntries finds the first record that something does not lead to.
func (w *walk) missingEntries(ctx context.Context, until time.Time) (bool, error) {
	x := &w.index
	if x.from == nil {
		x.from = keyRecord(w.report.From)
	}
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceRecord}})
	defer it.Close()
	n := 0
	for it.Seek(x.from); it.Valid(); it.Next() {
		if n++; n%64 == 0 && (ctx.Err() != nil || time.Now().After(until)) {
			x.from = it.Item().KeyCopy(nil)
			return false, ctx.Err()
		}
		err := it.Item().Value(w.glance.Read)
		if err == nil {
			err = w.entriesOf(&w.glance)
		}
		if err != nil {
			return false, asFault(db.TailNumber(it.Item().Key()), err)
		}
	}
	x.from = nil
	w.stage = w.strayEntries
	return true, nil
}

// entriesOf checks that everything leads to a record that must.
func (w *walk) entriesOf(g *audit.Glance) (err error) {
	w.index.entries(g, func(i int, entry []byte, key int) {
		p, failed := db.Get(w.txn, entry[:key])
		switch {
		case err != nil:
		case failed != nil:
			err = failed
		case p == nil:
			err = indexFault(i, g.Seq, "nothing leads to it")
		case !bytes.Equal(p, entry[key:]):
			err = indexFault(i, g.Seq, fmt.Sprintf("its entry leads to record %d", db.TailNumber(p)))
		}
	})
	return err
}

// strayEntries finds an entry that leads to no record of its words.
func (w *walk) strayEntries(ctx context.Context, until time.Time) (bool, error) {
	done, err := w.eachEntry(ctx, until, func(_ *badger.Item, entry []byte, key int) error {
		entry = bytes.Clone(entry)
		seq := db.TailNumber(entry)
		found := false
		if p, err := db.Get(w.txn, keyRecord(seq)); err != nil {
			return asFault(seq, err)
		} else if p != nil && seq > w.report.Pruned && w.glance.Read(p) == nil {
			w.index.entries(&w.glance, func(i int, want []byte, k int) {
				found = found || k == key && bytes.Equal(want, entry)
			})
		}
		if !found {
			return indexFault(w.index.at, seq, fmt.Sprintf("an entry leads to it that it has nothing to do with (%q)",
				entry[:key]))
		}
		return nil
	})
	if err == nil && done {
		err = indexFault(w.index.at, 0, "something is there twice, or not at all")
	}
	return false, err
}

// states checks that each journal was taken in as far as the log has its run.
func (w *walk) states(ctx context.Context, until time.Time) (bool, error) {
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceState}})
	defer it.Close()
	from := w.index.from
	if from == nil {
		from = []byte{SpaceState}
	}
	n := 0
	for it.Seek(from); it.Valid(); it.Next() {
		if n++; n%256 == 0 && (ctx.Err() != nil || time.Now().After(until)) {
			w.index.from = it.Item().KeyCopy(nil)
			return false, ctx.Err()
		}
		if err := w.stateOf(it.Item()); err != nil {
			return false, err
		}
	}
	w.stage = nil
	return true, unknown(w.runs)
}

// unknown finds a run of which it is not known how far its journal was taken in.
func unknown(runs map[string]*runWalk) error {
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		if !runs[run].known {
			return unknownRun(run)
		}
	}
	return nil
}

func unknownRun(run string) error {
	return &Error{
		Fault: FaultRun,
		Why:   fmt.Sprintf("the log has records of run %s, and not how far its journal was taken in", run),
	}
}

// stateOf compares what is known of a journal with the records of its run.
func (w *walk) stateOf(item *badger.Item) error {
	run := string(item.Key()[1:])
	var s journalState
	err := item.Value(func(p []byte) (err error) {
		s, err = journal.CheckTaken(w.codec, run, p)
		return err
	})
	if err != nil {
		return &Error{Fault: FaultRun, Why: fmt.Sprintf("how far the journal of run %s was taken in cannot be read: %s",
			run, plain(err))}
	}
	r := w.runs[run]
	if r != nil {
		r.known = true
	}
	if r == nil { // of before what was looked at
		if s.State.RunSeq == 0 && !s.Done || w.report.From > 1 {
			return nil
		}
		return &Error{
			Fault: FaultRun,
			Why:   fmt.Sprintf("the journal of run %s was taken in, and the log has nothing of it", run),
		}
	}
	return w.matches(r, &s)
}

// matches checks a run against what is known of its journal, which is there, or
// remembered, for as long as more may come from it.
func (w *walk) matches(r *runWalk, s *journalState) error {
	if err := r.is(s); err != nil || s.Done || w.hasJournal(r.run) {
		return err
	}
	if _, err := w.txn.Get(keyOpen(r.run)); err == nil {
		return nil // it gets its end when journals are taken in
	}
	now, err := w.journalState(r.run) // it may have ended since this reading of the log began
	if err != nil || now.Done {
		return err
	}
	return &Error{Fault: FaultRun, Why: fmt.Sprintf("run %s has no end, and its journal is gone", r.run)}
}

// is checks that a run is in the log as far as its journal was taken in.
func (r *runWalk) is(s *journalState) error {
	want := s.State.RunSeq
	if s.Done && !s.State.Ended {
		want++ // the end that the store gave it
	}
	if want != r.runSeq {
		return &Error{
			Fault: FaultRun,
			Why:   fmt.Sprintf("%d records of the journal of run %s were taken in, and the log has %d", want, r.run, r.runSeq),
		}
	}
	if s.Done && !r.ended {
		return &Error{
			Fault: FaultRun,
			Why:   fmt.Sprintf("the journal of run %s was taken in to its end, and the log has no end of it", r.run),
		}
	}
	return nil
}
