package log

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
)

// records looks at the records from where the last step ended: each must be the
// next one, make the leaf that is stored, and follow the last one of its run.
func (w *walk) records(ctx context.Context, until time.Time) (bool, error) {
	if done, err := w.prunedLeaves(ctx, until); err != nil || !done {
		return false, err
	}
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceRecord}})
	defer it.Close()
	begun := w.tree.size
	for it.Seek(keyRecord(w.tree.size + 1)); it.Valid(); it.Next() {
		if w.tree.size%tileWidth == 0 && w.tree.size > begun {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if time.Now().After(until) {
				return false, nil
			}
		}
		if err := w.record1(it.Item()); err != nil {
			return false, err
		}
	}
	if w.tree.size < w.head.Size {
		return false, &Error{
			FaultTruncated, w.tree.size + 1, w.head.Size,
			fmt.Sprintf("the log ends before it, and its tree has %d leaves", w.head.Size),
		}
	}
	w.stage = w.wholeTree
	return true, nil
}

// prunedLeaves takes the leaves of records that were pruned from the tree.
func (w *walk) prunedLeaves(ctx context.Context, until time.Time) (bool, error) {
	begun := w.tree.size
	for w.tree.size < w.report.Pruned {
		if w.tree.size%tileWidth == 0 && w.tree.size > begun && time.Now().After(until) {
			return false, ctx.Err()
		}
		if err := w.passed(); err != nil {
			return false, err
		}
		leaf, err := w.storedLeaf(w.tree.size + 1)
		if err != nil {
			return false, err
		}
		if err := w.grow(leaf); err != nil {
			return false, err
		}
	}
	return true, nil
}

// storedLeaf is the leaf of record seq as it is stored. They are asked for in order.
func (w *walk) storedLeaf(seq uint64) (tlog.Hash, error) {
	n := seq - 1
	if w.leaves == nil || n%tileWidth == 0 {
		width := int(min(w.head.Size-n/tileWidth*tileWidth, tileWidth))
		p, err := readTile(w.txn, 0, n/tileWidth, width)
		if err != nil {
			return tlog.Hash{}, treeFault(n/tileWidth*tileWidth+1, n/tileWidth*tileWidth+uint64(width), err)
		}
		w.leaves = p
	}
	return tlog.Hash(w.leaves[n%tileWidth*tlog.HashSize:]), nil
}

// record1 looks at the record that comes next.
func (w *walk) record1(item *badger.Item) error {
	seq := w.tree.size + 1
	if err := w.passed(); err != nil {
		return err
	}
	at := db.TailNumber(item.Key())
	switch {
	case len(item.Key()) != 9 || at > w.head.Size && seq > w.head.Size:
		return &Error{FaultInserted, at, 0, fmt.Sprintf("there is a record behind the end of the log, which has %d",
			w.head.Size)}
	case at != seq:
		return &Error{FaultRemoved, seq, min(at-1, w.head.Size), fmt.Sprintf("the next one that is there is %d", at)}
	}
	want, err := w.storedLeaf(seq)
	if err != nil {
		return err
	}
	var leaf tlog.Hash
	err = item.Value(func(p []byte) error {
		if leaf, _, err = w.leafer.leaf(p); err != nil {
			return &Error{FaultChanged, seq, 0, err.Error()}
		}
		if err = w.glance.Read(p); err != nil {
			return &Error{FaultChanged, seq, 0, err.Error()}
		}
		if w.glance.Seq != seq {
			return &Error{FaultReordered, seq, 0, fmt.Sprintf("record %d stands in its place", w.glance.Seq)}
		}
		if leaf != want || item.ExpiresAt() != 0 {
			return w.blame(seq, p, leaf, want)
		}
		w.index.record(&w.glance)
		if err := w.found(p); err != nil {
			return err
		}
		return w.follow(&w.glance)
	})
	if err != nil {
		return asFault(seq, err)
	}
	w.report.Records++
	return w.grow(leaf)
}

// grow adds a leaf and compares the tiles that it fills with those that are stored.
func (w *walk) grow(leaf tlog.Hash) error {
	w.tree.add(leaf)
	for _, f := range w.tree.full {
		if err := w.sameTile(f.level, f.n, f.p); err != nil {
			return err
		}
	}
	w.tree.full = w.tree.full[:0]
	return nil
}

// sameTile compares a tile with the one that is stored.
func (w *walk) sameTile(level int, n uint64, p []byte) error {
	stored, err := db.Get(w.txn, keyTile(level, n))
	if err == nil && bytes.Equal(stored, p) {
		return nil
	}
	if err != nil && !isDamage(err) {
		return err
	}
	span := uint64(1) << (tileBits * level)
	first := n * tileWidth * span
	return &Error{
		FaultTree, first + 1, min(first+uint64(len(p)/tlog.HashSize)*span, w.head.Size),
		fmt.Sprintf("tile %d of level %d is not that of the records", n, level),
	}
}

// follow checks that a record is the next of its run, and of one that goes on.
func (w *walk) follow(g *audit.Glance) error {
	r := w.current
	if r == nil || r.run != string(g.Run) {
		if r = w.runs[string(g.Run)]; r == nil {
			var err error
			if r, err = w.firstOf(string(g.Run), g.RunSeq); err != nil {
				return err
			}
			w.runs[r.run] = r
			w.report.Runs++
			w.report.Open++
		}
		w.current = r
	}
	switch {
	case r.ended:
		return &Error{FaultRun, g.Seq, 0, fmt.Sprintf("it comes after the end of run %s", r.run)}
	case g.RunSeq != r.runSeq+1:
		return &Error{FaultRun, g.Seq, 0, fmt.Sprintf("it is number %d of run %s, where number %d belongs", g.RunSeq,
			r.run, r.runSeq+1)}
	}
	r.runSeq++
	if r.ended = !g.Decided && audit.Ends(string(g.Kind)); r.ended {
		w.report.Open--
		if r.runSeq == 1 && !w.isFinding {
			w.report.Bare++
		}
		w.ended(g.Seq)
	}
	return nil
}

// firstOf is a run before the first of its records that is looked at.
func (w *walk) firstOf(run string, runSeq uint64) (*runWalk, error) {
	r := &runWalk{run: run}
	if w.mark != nil {
		r.runSeq = w.mark.Cut[run]
	}
	if w.ask.Since.Size == 0 || runSeq <= r.runSeq+1 {
		return r, nil
	}
	// Those before it are not looked at: the one that it follows must be among them.
	p, err := db.Get(w.txn, keyRun(run, runSeq-1))
	if err != nil {
		return nil, err
	}
	before := db.TailNumber(p)
	if p == nil || before == 0 || before > w.ask.Since.Size {
		return r, nil // and it will be found not to follow
	}
	if p, err = db.Get(w.txn, keyRecord(before)); err != nil {
		return nil, err
	}
	var g audit.Glance
	if err := g.Read(p); err != nil {
		return nil, &Error{FaultChanged, before, 0, err.Error()}
	}
	r.runSeq, r.ended = runSeq-1, !g.Decided && audit.Ends(string(g.Kind))
	return r, nil
}

// ended notes the end of a run, for who knows up to where there are checkpoints.
func (w *walk) ended(seq uint64) {
	if w.step.End == 0 {
		w.step.End = seq
	}
}

// passed gives back the roots that are wanted of the tree as it is now.
func (w *walk) passed() error {
	size := w.tree.size
	if len(w.wanted) > 0 && w.wanted[0] == size {
		w.step.Roots = append(w.step.Roots, w.tree.head())
		w.wanted = w.wanted[1:]
	}
	c, err := w.nextPoint()
	if err != nil || c == nil || c.Head.Size != size {
		return err
	}
	w.points = w.points[1:]
	w.step.Signed = append(w.step.Signed, walkPoint{*c, w.tree.root()})
	w.step.End = 0
	return nil
}

// nextPoint is the next checkpoint that is stored, from Since on; nil: there is none.
func (w *walk) nextPoint() (*Checkpoint, error) {
	if len(w.points) == 0 && w.pointsAt != math.MaxUint64 {
		r, err := w.checkpointsOf(w.txn, w.pointsAt)
		if err != nil {
			return nil, &Error{Fault: FaultCheckpoint, Why: plain(err)}
		}
		w.points = r.Checkpoints
		w.pointsAt = math.MaxUint64
		if n := len(w.points); n > 0 && r.More {
			w.pointsAt = w.points[n-1].Head.Size
		}
	}
	if len(w.points) == 0 {
		return nil, nil
	}
	return &w.points[0], nil
}

// leftOver finds a record where all were pruned.
func (w *walk) leftOver() error {
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceRecord}})
	defer it.Close()
	it.Rewind()
	if !it.Valid() || db.TailNumber(it.Item().Key()) > w.report.Pruned || w.report.Unfinished {
		return nil
	}
	return &Error{
		FaultInserted, db.TailNumber(it.Item().Key()), 0,
		fmt.Sprintf("there is one, and all up to %d were pruned", w.report.Pruned),
	}
}

// wholeTree checks what is left of the tree: the last tiles, the root, that there
// is no tile and no checkpoint more.
func (w *walk) wholeTree(context.Context, time.Time) (bool, error) {
	if err := w.passed(); err != nil {
		return false, err
	}
	if c, err := w.nextPoint(); err != nil || c != nil {
		if err == nil {
			err = shortFault(w.head.Size, c.Head.Size)
		}
		return false, err
	}
	tiles := 0
	for level, p := range w.tree.tiles {
		n := w.head.Size >> (tileBits * level) >> tileBits
		tiles += int(n)
		if len(p) == 0 {
			continue
		}
		tiles++
		if err := w.sameTile(level, n, p); err != nil {
			return false, err
		}
	}
	if w.tree.head() != w.head {
		return false, &Error{FaultTree, 1, w.head.Size, "the root that is stored is not that of the records"}
	}
	it := w.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceTile}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		tiles--
	}
	if err := w.leftOver(); err != nil {
		return false, err
	}
	if tiles != 0 {
		return false, &Error{Fault: FaultTree, Why: fmt.Sprintf("there are %d tiles more than belong to %d records",
			-tiles, w.head.Size)}
	}
	w.stage = w.indexes
	return true, nil
}
