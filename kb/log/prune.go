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
	"runloop.dev/rlp/kb/wire"
)

// Prune removes the records from the beginning of the log that are older than
// before, up to the first that is not or that is of a run that has not ended.
// Their leaves stay, so that the log is still the one that it was, and what was
// pruned is on record, signed. A record that is not the one that entered the log
// is not removed, nor what comes after it. Prune returns the last mark, if there
// is one, and how many records are gone that were there before; what an earlier
// one was interrupted in is done first.
func (s *Client) Prune(ctx context.Context, before time.Time) (Mark, int, error) {
	q := &pruneRequest{BeforeMS: before.UnixMilli()}
	var last Mark
	n := 0
	for {
		r, err := wire.Ask(ctx, s.asker, q)
		if err != nil {
			return last, n, fmt.Errorf("pruning the audit log: %w", err)
		}
		n += r.Removed
		if r.Mark != nil {
			last = *r.Mark
		}
		if !r.More {
			return last, n, nil
		}
	}
}

// A pruneRequest asks for a step of what [Client.Prune] does.
type pruneRequest struct {
	BeforeMS int64 `cbor:"1,keyasint"` // milliseconds since 1970
}

// A pruneAnswer says what the step did; More says that there is another one.
type pruneAnswer struct {
	Mark    *Mark `cbor:"1,keyasint,omitempty"` // the last one, if there is one
	Removed int   `cbor:"2,keyasint,omitempty"` // records
	More    bool  `cbor:"3,keyasint,omitempty"`
}

func (*pruneRequest) Op() wire.Opcode { return wire.OpPrune }

// Do goes on removing what is marked, or marks more.
func (q *pruneRequest) Do(ctx context.Context, l *Log) (*pruneAnswer, error) {
	if l.opt.SealMark == nil {
		return nil, fmt.Errorf("%w: %w, and who removes records must sign for it", wire.ErrUnavailable, ErrNoSeal)
	}
	select {
	case l.ingesting <- struct{}{}:
		defer func() { <-l.ingesting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.quit:
		return nil, wire.ErrClosed
	}
	until := time.Now().Add(db.VerifyStep)
	r := &pruneAnswer{}
	under, err := l.pruning(func(txn *badger.Txn) (err error) {
		r.Mark, err = l.lastMark(txn)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !under {
		m, all, err := l.pruner.markMore(ctx, q.BeforeMS, until)
		if err != nil {
			return r, err
		}
		if m == nil {
			return r, l.pruner.giveBack(true)
		}
		r.Mark, r.More = m, !all
	}
	n, done, err := l.pruner.removePruned(ctx, until)
	r.Removed, r.More = n, r.More || under || !done
	if err == nil && !r.More {
		err = l.pruner.giveBack(true)
	}
	return r, err
}

// pruning reports whether what is marked is not gone altogether.
func (l *Log) pruning(also func(txn *badger.Txn) error) (under bool, err error) {
	err = l.db.View(func(txn *badger.Txn) error {
		p, err := db.Get(txn, keyPruning())
		under = p != nil
		return errors.Join(err, also(txn))
	})
	return under, err
}

// A cutter finds how much of the beginning of the log may go.
type cutter struct {
	*Log
	txn    *badger.Txn
	before int64
	leafer *leafer
	glance audit.Glance
	seen   map[string]uint64 // the last number of each run that goes
	ends   map[string]uint64 // and of each that has ended, in the whole log
}

// markMore puts a mark into the database that says what is pruned from now on;
// all: there is nothing behind it that might go too. nil: there is nothing.
func (p *pruner) markMore(ctx context.Context, before int64, until time.Time) (m *Mark, all bool, err error) {
	err = p.db.Update(func(txn *badger.Txn) error {
		leafer, err := newLeafer()
		if err != nil {
			return err
		}
		was, err := p.lastMark(txn)
		if err != nil {
			return err
		}
		if was == nil {
			was = &Mark{}
		}
		c := &cutter{
			Log: p.Log, txn: txn, before: before, leafer: leafer,
			seen: map[string]uint64{}, ends: map[string]uint64{},
		}
		var upTo uint64
		if upTo, all, err = c.cut(ctx, was.Pruned, until); err != nil || upTo == was.Pruned {
			return err
		}
		m = &Mark{Pruned: upTo, UnixMS: p.opt.Now().UnixMilli(), Cut: c.cuts(was)}
		if m.Head, err = storedHead(txn); err != nil {
			return err
		}
		if err := p.extended(txn, m.Head); err != nil {
			return err
		}
		p.removed = was.Pruned
		return p.putMark(txn, m)
	})
	return m, all, err
}

// putMark signs and stores a mark, from when on nobody is shown what it is about.
func (p *pruner) putMark(txn *badger.Txn, m *Mark) (err error) {
	m.Note, err = p.opt.SealMark(m.Head.Size, m.Head.Root, m.lines())
	if err == nil && (len(m.Note) == 0 || len(m.Note) > maxNote) {
		err = fmt.Errorf("a note of %d bytes", len(m.Note))
	}
	if err != nil {
		return fmt.Errorf("signing what is pruned: %w", err)
	}
	text, err := p.codec.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(txn.Set(keyMark(m.Pruned), text), txn.Set(keyPruned(), db.Number(nil, m.Pruned)),
		txn.Set(keyPruning(), nil))
}

// cut finds the last record that may go, after those that are gone. It ends at
// the first that may not, or when time is up.
func (c *cutter) cut(ctx context.Context, gone uint64, until time.Time) (upTo uint64, all bool, err error) {
	upTo = gone
	it := c.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceRecord}})
	defer it.Close()
	var leaves []byte
	for it.Seek(keyRecord(gone + 1)); it.Valid(); it.Next() {
		seq := upTo + 1
		if seq%tileWidth == 0 && (ctx.Err() != nil || time.Now().After(until)) {
			return upTo, false, ctx.Err()
		}
		if leaves == nil || upTo%tileWidth == 0 {
			if leaves, err = db.Get(c.txn, keyTile(0, upTo/tileWidth)); err != nil {
				return upTo, false, err
			}
		}
		at := int(upTo%tileWidth) * tlog.HashSize
		var may bool
		err := it.Item().Value(func(p []byte) (err error) {
			may, err = c.may(db.TailNumber(it.Item().Key()), seq, p, leaves[min(at, len(leaves)):])
			return err
		})
		if err != nil || !may {
			return upTo, true, err
		}
		upTo = seq
	}
	return upTo, true, nil
}

// may reports whether a record may go.
func (c *cutter) may(at, seq uint64, p, leaves []byte) (bool, error) {
	if at != seq {
		return false, wire.Damagedf("record %d is missing from the log", seq)
	}
	leaf, _, err := c.leafer.leaf(p)
	if err == nil {
		err = c.glance.Read(p)
	}
	if err != nil {
		return false, fmt.Errorf("%w: record %d: %w", wire.ErrDamaged, seq, err)
	}
	if len(leaves) < tlog.HashSize || tlog.Hash(leaves) != leaf || c.glance.Seq != seq {
		return false, wire.Damagedf("record %d is not the one that entered the log; it stays, and rlp audit verify says more",
			seq)
	}
	if c.glance.UnixMS >= c.before {
		return false, nil
	}
	run := string(c.glance.Run)
	if c.ends[run] == 0 {
		if c.ends[run], err = c.endOf(run); err != nil || c.ends[run] == 0 {
			return false, err
		}
	}
	c.seen[run] = c.glance.RunSeq
	return true, nil
}

// endOf is the number of the record that ends a run, in the run; 0: it goes on.
func (c *cutter) endOf(run string) (uint64, error) {
	prefix := db.Named(spaceRun, run)
	it := c.txn.NewIterator(badger.IteratorOptions{Prefix: prefix, Reverse: true})
	defer it.Close()
	it.Seek(db.Number(prefix[:len(prefix):len(prefix)], ^uint64(0)))
	if !it.Valid() {
		return 0, wire.Damagedf("nothing leads to run %s", run)
	}
	p, err := it.Item().ValueCopy(nil)
	if err == nil {
		p, err = db.Get(c.txn, keyRecord(db.TailNumber(p)))
	}
	var g audit.Glance
	if err == nil {
		err = g.Read(p)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: the last record of run %s: %w", wire.ErrDamaged, run, err)
	}
	if g.Decided || !audit.Ends(string(g.Kind)) || string(g.Run) != run {
		return 0, nil
	}
	return g.RunSeq, nil
}

// cuts are the runs that have records on both sides.
func (c *cutter) cuts(was *Mark) map[string]uint64 {
	cut := map[string]uint64{}
	for run, n := range was.Cut {
		if _, seen := c.seen[run]; !seen {
			cut[run] = n
		}
	}
	for run, n := range c.seen {
		if n < c.ends[run] {
			cut[run] = n
		}
	}
	return cut
}

// removePruned removes what is marked, until time is up.
func (p *pruner) removePruned(ctx context.Context, until time.Time) (n int, done bool, err error) {
	for !done && err == nil && ctx.Err() == nil && (n == 0 || time.Now().Before(until)) {
		var some int
		var last uint64
		err = p.db.Update(func(txn *badger.Txn) (err error) {
			some, last, err = p.removeSome(txn)
			done = some < intakeItems
			if err == nil && done {
				err = txn.Delete(keyPruning())
			}
			return err
		})
		if err == nil {
			n, p.removed, p.unfreed = n+some, last, p.unfreed+some
			err = p.giveBack(false)
		}
	}
	return n, done, errors.Join(err, ctx.Err())
}

const (
	fewRemoved  = 50_000 // records that are not worth a merge
	recordBytes = 300    // what a record takes with what leads to it, about
)

// giveBack gives the room of removed records back to the system once they may be a
// fifth of the database, or the last are gone. To remove is to write: badger frees
// nothing before it has merged what says so with what it is said of, table by table,
// which it would do by itself when as much new has come. Where one level has all
// tables there is nothing to merge: what says so is in memory still, and the records
// count until it is written.
func (p *pruner) giveBack(last bool) error {
	if p.unfreed < fewRemoved {
		return nil
	}
	var size uint64
	written, levels := false, map[int]bool{}
	for _, t := range p.db.Tables() {
		size += uint64(t.OnDiskSize)
		written, levels[t.Level] = written || t.Level == 0, true
	}
	// At the end badger may have merged some of it, into a level between.
	if len(levels) < 2 || !last && (!written || uint64(p.unfreed)*recordBytes < size/5) {
		return nil
	}
	if err := p.db.Room(); err != nil {
		return err
	}
	p.unfreed = 0
	return p.db.Flatten(1)
}

// removeSome removes the first records that are marked, with what leads to them. It
// begins behind those that it removed last: what is removed is passed over one by
// one until the database has cleared it away, which would cost more with each step.
func (p *pruner) removeSome(txn *badger.Txn) (n int, last uint64, err error) {
	pruned, err := db.GetNumber(txn, keyPruned())
	if err != nil {
		return 0, 0, err
	}
	last = p.removed
	var keys [][]byte
	var x indexWalk
	var g audit.Glance
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceRecord}})
	for it.Seek(keyRecord(p.removed + 1)); it.Valid() && n < intakeItems &&
		db.TailNumber(it.Item().Key()) <= pruned; it.Next() {
		keys = append(keys, it.Item().KeyCopy(nil))
		n, last = n+1, db.TailNumber(it.Item().Key())
		if err = it.Item().Value(g.Read); err != nil {
			break
		}
		x.entries(&g, func(_ int, entry []byte, key int) { keys = append(keys, append([]byte(nil), entry[:key]...)) })
	}
	it.Close()
	for _, k := range keys {
		if err == nil {
			err = txn.Delete(k)
		}
	}
	return n, last, err
}
