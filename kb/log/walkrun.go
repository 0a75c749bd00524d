package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// oneRun looks at the records of one run: each must be proved by the tree, and by
// the first checkpoint that has them all, and follow the one before.
func (w *walk) oneRun(ctx context.Context, until time.Time) (bool, error) {
	prefix := db.Named(spaceRun, w.ask.Run)
	if w.current == nil {
		w.current = &runWalk{run: w.ask.Run}
		w.report.Runs, w.report.Open = 1, 1
		if err := w.proofHead(prefix); err != nil {
			return false, err
		}
		if w.mark != nil {
			w.current.runSeq = w.mark.Cut[w.ask.Run]
		}
	}
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	n := 0
	for it.Seek(db.Number(prefix[:len(prefix):len(prefix)], w.current.runSeq+1)); it.Valid(); it.Next() {
		if n++; n%64 == 0 && (ctx.Err() != nil || time.Now().After(until)) {
			return false, ctx.Err()
		}
		if err := w.runEntry(it.Item()); err != nil {
			return false, err
		}
	}
	w.index.from = nil
	w.stage = w.hidden
	return true, nil
}

// proofHead chooses the head that the records of a run are proved in: the first
// checkpoint that has them all, or the log as it is.
func (w *walk) proofHead(prefix []byte) error {
	root, err := rootAt(w.txn, w.head.Size)
	if err != nil {
		return treeFault(1, w.head.Size, err)
	}
	if root != w.head.Root {
		return &Error{FaultTree, 1, w.head.Size, "the root that is stored is not that of the tree"}
	}
	last, err := w.lastEntry(prefix)
	if err != nil || last == 0 {
		return err
	}
	r, err := w.checkpointsOf(w.txn, last-1)
	if err != nil {
		return &Error{Fault: FaultCheckpoint, Why: plain(err)}
	}
	if len(r.Checkpoints) == 0 {
		return nil
	}
	c := r.Checkpoints[0]
	if c.Head.Size > w.head.Size {
		return shortFault(w.head.Size, c.Head.Size)
	}
	if root, err = rootAt(w.txn, c.Head.Size); err != nil {
		return treeFault(1, c.Head.Size, err)
	}
	w.step.Signed = append(w.step.Signed, walkPoint{c, root})
	w.head = Head{c.Head.Size, root}
	return nil
}

// lastEntry is the number of the last record that the index has of a run.
func (w *walk) lastEntry(prefix []byte) (seq uint64, err error) {
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: prefix, Reverse: true})
	defer it.Close()
	it.Seek(db.Number(prefix[:len(prefix):len(prefix)], ^uint64(0)))
	if !it.Valid() {
		return 0, nil
	}
	err = it.Item().Value(func(p []byte) error {
		seq = db.TailNumber(p)
		return nil
	})
	if err == nil && (seq == 0 || seq > w.head.Size) {
		err = indexFault(0, seq, fmt.Sprintf("run %s leads to a record that is not there", w.ask.Run))
	}
	return seq, err
}

// runEntry looks at the record that an entry of the run leads to.
func (w *walk) runEntry(item *badger.Item) error {
	var seq uint64
	err := item.Value(func(p []byte) error {
		seq = db.TailNumber(p)
		return nil
	})
	if err != nil {
		return asFault(0, err)
	}
	if seq <= w.report.Pruned {
		if !w.report.Unfinished {
			return indexFault(0, seq, "an entry leads to it, and it was pruned")
		}
		w.current.runSeq = db.TailNumber(item.Key())
		return nil
	}
	p, err := db.Get(w.txn, keyRecord(seq))
	if err == nil && p == nil {
		err = &Error{FaultRemoved, seq, 0, "it is one of run " + w.ask.Run}
	}
	if err == nil {
		err = w.glance.Read(p)
	}
	if err != nil {
		return asFault(seq, err)
	}
	g := &w.glance
	switch {
	case g.Seq != seq:
		return &Error{FaultReordered, seq, 0, fmt.Sprintf("record %d stands in its place", g.Seq)}
	case string(g.Run) != w.ask.Run || db.TailNumber(item.Key()) != g.RunSeq || len(item.Key()) != 3+len(g.Run)+8:
		return indexFault(0, seq, fmt.Sprintf("run %s leads to it, and it is number %d of run %s", w.ask.Run, g.RunSeq,
			g.Run))
	}
	if err := w.proved(seq, p); err != nil {
		return err
	}
	if err := w.entriesOf(g); err != nil {
		return err
	}
	if err := w.found(p); err != nil {
		return asFault(seq, err)
	}
	if w.report.From == 0 {
		w.report.From = seq
	}
	w.report.Records++
	return w.followRun(g)
}

// followRun is follow for the one run that is looked at.
func (w *walk) followRun(g *audit.Glance) error {
	w.runs[w.current.run] = w.current
	return w.follow(g)
}

// proved checks that a record is at its place in the head that proves the run.
func (w *walk) proved(seq uint64, p []byte) error {
	leaf, _, err := w.leafer.leaf(p)
	if err != nil {
		return asFault(seq, err)
	}
	n := seq - 1
	if w.leaves == nil || w.leavesAt != n/tileWidth {
		if err := w.provedTile(seq); err != nil {
			return err
		}
	}
	if want := tlog.Hash(w.leaves[n%tileWidth*tlog.HashSize:]); want != leaf {
		return w.blame(seq, p, leaf, want)
	}
	return nil
}

// provedTile reads the leaves around a record. The proof of one of them is made
// of all the others, so that it proves them all.
func (w *walk) provedTile(seq uint64) (err error) {
	n := seq - 1
	w.leavesAt = n / tileWidth
	if w.leaves, err = readTile(w.txn, 0, w.leavesAt, int(min(w.head.Size-w.leavesAt*tileWidth, tileWidth))); err != nil {
		return treeFault(seq, 0, err)
	}
	proof, err := tlog.ProveRecord(int64(w.head.Size), int64(n), hashes{w.txn})
	if err != nil {
		return treeFault(seq, 0, err)
	}
	if tlog.CheckRecord(proof, int64(w.head.Size), w.head.Root, int64(n),
		tlog.Hash(w.leaves[n%tileWidth*tlog.HashSize:])) != nil {
		return &Error{FaultTree, seq, 0, "its leaf is not in the tree of the log"}
	}
	return nil
}

// hidden looks for records of a run without an end that the index does not lead
// to. A run that has its end and no gap before it has no others.
func (w *walk) hidden(ctx context.Context, until time.Time) (bool, error) {
	if !w.current.ended {
		done, err := w.scanRun(ctx, until)
		if err != nil || !done {
			return false, err
		}
	}
	p, err := db.Get(w.txn, keyState(w.ask.Run))
	if err != nil {
		return false, asFault(0, err)
	}
	w.stage = nil
	if p == nil && w.report.Records == 0 {
		return true, nil
	}
	if p == nil {
		return true, unknownRun(w.ask.Run)
	}
	s, err := journal.CheckTaken(w.codec, w.ask.Run, p)
	if err != nil {
		return false, &Error{Fault: FaultRun, Why: "how far its journal was taken in cannot be read: " + plain(err)}
	}
	if w.report.Records == 0 && w.report.Pruned > 0 {
		return true, nil
	}
	return true, w.matches(w.current, &s)
}

// scanRun looks at all records for those of the run.
func (w *walk) scanRun(ctx context.Context, until time.Time) (bool, error) {
	from := w.index.from
	if from == nil {
		from = keyRecord(w.report.Pruned + 1)
	}
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceRecord}})
	defer it.Close()
	n := 0
	for it.Seek(from); it.Valid(); it.Next() {
		if n++; n%1024 == 0 && (ctx.Err() != nil || time.Now().After(until)) {
			w.index.from = it.Item().KeyCopy(nil)
			return false, ctx.Err()
		}
		err := it.Item().Value(w.glance.Read)
		if err == nil && string(w.glance.Run) == w.ask.Run {
			err = w.entriesOf(&w.glance)
		}
		if err != nil && !errors.Is(err, wire.ErrDamaged) {
			continue // a record of which nothing is known; the whole log is another question
		}
		if err != nil {
			return false, asFault(db.TailNumber(it.Item().Key()), err)
		}
	}
	return true, nil
}
