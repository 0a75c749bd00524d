package log

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// An index is a stretch of keys that end in a number and lead to records in
// the order of the log.
type index struct {
	prefix []byte
	// seq finds the record number of an entry; nil: the key's number is it.
	seq func(*badger.Item) (uint64, error)
}

// indexFor picks the narrowest index for a filter.
func indexFor(f *Filter) index {
	switch {
	case f.Run != "":
		return index{db.Named(spaceRun, f.Run), func(it *badger.Item) (uint64, error) {
			v, err := it.ValueCopy(nil)
			return db.TailNumber(v), err
		}}
	case f.Agent != "":
		return index{prefix: db.Named(spaceAgent, f.Agent)}
	case f.Decision == "deny":
		return index{prefix: []byte{spaceOther}}
	}
	return index{prefix: []byte{SpaceRecord}}
}

// stepItems is how many entries one request looks at, so that it is answered
// soon; the asker goes on from there.
const stepItems = 20000

// A seekRequest asks where an answer begins: at the Limit-th match from the end, or
// at the first record.
type seekRequest struct {
	Filter Filter `cbor:"1,keyasint"`
	From   uint64 `cbor:"2,keyasint,omitempty"` // back from here; 0: the end
	UpTo   uint64 `cbor:"3,keyasint,omitempty"` // the last record of the answer, once From is known
}

// A seekAnswer says where, as far as is known. More says that Next is where to go
// on, for what is left of the limit.
type seekAnswer struct {
	From uint64 `cbor:"1,keyasint,omitempty"`
	UpTo uint64 `cbor:"2,keyasint,omitempty"`
	Next uint64 `cbor:"3,keyasint,omitempty"`
	Left int    `cbor:"4,keyasint,omitempty"`
	More bool   `cbor:"5,keyasint,omitempty"`
}

func (*seekRequest) Op() wire.Opcode { return wire.OpSeek }

func (q *seekRequest) Check() error { return q.Filter.Check() }

func (q *seekRequest) Do(ctx context.Context, l *Log) (*seekAnswer, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	last, err := db.GetNumber(txn, keySeq())
	if err != nil {
		return nil, err
	}
	r := &seekAnswer{From: 1, UpTo: last}
	if q.Filter.Limit == 0 {
		switch r.From, err = l.first(txn, &q.Filter); {
		case err != nil:
		case q.Filter.Run != "": // the entries of a run are numbered by the run
			r.From = max(r.From, 1+q.Filter.AfterOfRun)
		default:
			r.From = max(r.From, 1+q.Filter.After)
		}
		return r, err
	}
	s := span{from: q.From, upTo: last, back: true}
	if s.from == 0 {
		s.from = math.MaxUint64
	} else {
		r.UpTo = q.UpTo
	}
	r.From = 0
	left := q.Filter.Limit
	r.Next, r.More, err = l.walk(ctx, txn, &q.Filter, s, func(at uint64, _ []byte) bool {
		r.From = at
		left--
		return left > 0
	})
	if left == 0 {
		r.More = false
	}
	r.Left = left
	return r, err
}

// first is the number of the first entry of an answer that was not pruned, where
// entries follow each other without gaps.
func (l *Log) first(txn *badger.Txn, f *Filter) (uint64, error) {
	m, err := l.lastMark(txn)
	if err != nil || m == nil {
		return 1, err
	}
	switch indexFor(f).prefix[0] {
	case spaceRun:
		return m.Cut[f.Run] + 1, nil
	case SpaceRecord:
		return m.Pruned + 1, nil
	}
	return 1, nil
}

// A pageRequest asks for matching records.
type pageRequest struct {
	Filter Filter `cbor:"1,keyasint"`
	From   uint64 `cbor:"2,keyasint,omitempty"` // where the page begins
	UpTo   uint64 `cbor:"3,keyasint,omitempty"` // and the last record number of all pages
	Bare   bool   `cbor:"4,keyasint,omitempty"` // they are not decoded whole
}

// A pageAnswer is as many as fit, in their stored form. More says that Next is where
// the next page begins.
type pageAnswer struct {
	Records [][]byte `cbor:"1,keyasint,omitempty"`
	Next    uint64   `cbor:"2,keyasint,omitempty"`
	More    bool     `cbor:"3,keyasint,omitempty"`
}

func (*pageRequest) Op() wire.Opcode { return wire.OpPage }

func (q *pageRequest) Check() error { return q.Filter.Check() }

func (q *pageRequest) Do(ctx context.Context, l *Log) (*pageAnswer, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	r, size, most := &pageAnswer{}, 0, db.PageBytes
	if q.Filter.Page > 0 {
		most = min(most, q.Filter.Page)
	}
	var err error
	r.Next, r.More, err = l.walk(ctx, txn, &q.Filter, span{from: q.From, upTo: q.UpTo, glance: q.Bare},
		func(_ uint64, p []byte) bool {
			r.Records = append(r.Records, p)
			size += len(p)
			return len(r.Records) < db.PageItems && size < most
		})
	return r, err
}

// A span is where a walk begins in its index, the last record number that it
// may show, and its direction.
type span struct {
	from, upTo uint64
	back       bool
	glance     bool // records are not decoded whole
}

// walk visits the matching records of a span until visit says no or it has
// looked at stepItems; more says that there may be others, from next on. A
// number that leads to no record, or one left out, is damage.
func (l *Log) walk(ctx context.Context, txn *badger.Txn, f *Filter, s span,
	visit func(at uint64, p []byte) bool,
) (next uint64, more bool, err error) {
	ix := indexFor(f)
	pruned, err := db.GetNumber(txn, keyPruned())
	if err != nil {
		return 0, false, err
	}
	whole := ix.prefix[0] == SpaceRecord
	gaps := gapless{on: whole || f.Run != "", back: s.back}
	if gaps.on && s.from != math.MaxUint64 {
		gaps.want = s.from
	}
	it := txn.NewIterator(badger.IteratorOptions{
		Prefix: ix.prefix, PrefetchValues: whole, PrefetchSize: 100,
		Reverse: s.back,
	})
	defer it.Close()
	steps := 0
	for it.Seek(db.Number(ix.prefix[:len(ix.prefix):len(ix.prefix)], s.from)); it.Valid(); it.Next() {
		at := db.TailNumber(it.Item().Key())
		if more {
			return at, true, nil
		}
		seq, err := ix.number(it.Item(), at)
		if err != nil {
			return 0, false, err
		}
		if seq-1 < pruned {
			continue // it is about to be gone
		}
		if err := errors.Join(ctx.Err(), gaps.check(at)); err != nil {
			return 0, false, err
		}
		if seq > s.upTo && !s.back {
			return 0, false, nil
		}
		if seq > s.upTo {
			continue
		}
		if seq <= f.After { // not worth reading
			steps++
			more = steps >= stepItems
			continue
		}
		p, match, err := l.record(txn, it.Item(), seq, f, s.glance)
		if err != nil {
			return 0, false, err
		}
		steps++
		more = match && !visit(at, p) || steps >= stepItems
	}
	if whole && !s.back && gaps.want != 0 && gaps.want <= s.upTo {
		return 0, false, fmt.Errorf("%w: record %d is missing from the log", wire.ErrDamaged, gaps.want)
	}
	return 0, false, nil
}

// number finds the record number of an entry.
func (ix *index) number(item *badger.Item, at uint64) (uint64, error) {
	if ix.seq == nil {
		return at, nil
	}
	seq, err := ix.seq(item)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	return seq, nil
}

// gapless checks numbers that must follow each other.
type gapless struct {
	on, back bool
	want     uint64 // 0: any
}

func (g *gapless) check(at uint64) error {
	if !g.on {
		return nil
	}
	if g.want != 0 && at != g.want {
		return fmt.Errorf("%w: record %d is missing from the log", wire.ErrDamaged, g.want)
	}
	g.want = at + 1
	if g.back {
		g.want = at - 1
	}
	return nil
}

// record reads one record in its stored form and says whether f asks for it.
func (l *Log) record(txn *badger.Txn, item *badger.Item, seq uint64, f *Filter, glance bool) ([]byte, bool, error) {
	var p []byte
	var err error
	if item.Key()[0] == SpaceRecord {
		p, err = item.ValueCopy(nil)
	} else {
		p, err = db.Get(txn, keyRecord(seq))
	}
	if err == nil && p == nil {
		err = fmt.Errorf("record %d is missing from the log", seq)
	}
	is, match := uint64(0), false
	switch {
	case err != nil:
	case glance:
		var g audit.Glance
		err = g.Read(p)
		is, match = g.Seq, f.glance(&g)
	default:
		var rec audit.Record
		rec, err = l.codec.Decode(p)
		is, match = rec.Seq, f.Match(&rec)
	}
	if err == nil && is != seq {
		err = fmt.Errorf("record %d stands where record %d belongs", is, seq)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	return p, match, nil
}
