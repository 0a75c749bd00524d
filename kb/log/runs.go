package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// A RunQuery asks for runs, the newest first.
type RunQuery struct {
	Before string `cbor:"1,keyasint,omitempty"` // only runs that began before the run of this id; "": from the newest
	Agent  string `cbor:"2,keyasint,omitempty"`
	Limit  int    `cbor:"3,keyasint,omitempty"` // 0: all
	Names  bool   `cbor:"4,keyasint,omitempty"` // only RunID of each, of every agent: no record is read
}

// A RunSummary is a run as its first and its last record tell it.
type RunSummary struct {
	RunID        string `cbor:"1,keyasint"`
	TraceID      string `cbor:"2,keyasint,omitempty"`
	Agent        string `cbor:"3,keyasint"`
	ParentRun    string `cbor:"4,keyasint,omitempty"`
	BundleDigest string `cbor:"5,keyasint,omitempty"`
	BeganMS      int64  `cbor:"6,keyasint"`           // since 1970
	EndedMS      int64  `cbor:"7,keyasint,omitempty"` // 0: it has not ended
	End          string `cbor:"8,keyasint,omitempty"` // the kind of its last record, if that is an end
	Outcome      string `cbor:"9,keyasint,omitempty"`
	ExitCode     int    `cbor:"10,keyasint,omitempty"`
	Message      string `cbor:"11,keyasint,omitempty"`
	First        uint64 `cbor:"12,keyasint"` // Seq of its first record
	Records      uint64 `cbor:"13,keyasint"` // that are in the log, by the RunSeq of the last one
	Allowed      int64  `cbor:"14,keyasint,omitempty"`
	Denied       int64  `cbor:"15,keyasint,omitempty"`
}

// Bounds of one answer: how many runs are looked at, and how many are in it.
const (
	stepRuns = 2000
	pageRuns = 256
)

// Runs returns the runs in the log that q asks for. Their ids are in the order
// in which they began, so the newest is found without looking at the others; a
// run that began before records were pruned begins with the first that is left.
func (s *Client) Runs(ctx context.Context, q RunQuery) iter.Seq2[RunSummary, error] {
	return func(yield func(RunSummary, error) bool) {
		left, limited := q.Limit, q.Limit > 0
		for {
			r, err := wire.Ask(ctx, s.asker, &runsRequest{Before: q.Before, Agent: q.Agent, Limit: left, Names: q.Names})
			if err != nil {
				yield(RunSummary{}, fmt.Errorf("reading the runs of the log: %w", err))
				return
			}
			for _, run := range r.Runs {
				if !yield(run, nil) {
					return
				}
				if limited {
					left--
				}
			}
			if !r.More || limited && left <= 0 {
				return
			}
			q.Before = r.Next
		}
	}
}

type runsRequest RunQuery

// A runsAnswer is a page of runs; More says that others came before the run Next.
type runsAnswer struct {
	Runs []RunSummary `cbor:"1,keyasint,omitempty"`
	Next string       `cbor:"2,keyasint,omitempty"`
	More bool         `cbor:"3,keyasint,omitempty"`
}

func (*runsRequest) Op() wire.Opcode { return wire.OpRuns }

func (q *runsRequest) Do(ctx context.Context, l *Log) (*runsAnswer, error) {
	if q.Limit < 0 {
		return nil, wire.Invalidf("a limit of %d", q.Limit)
	}
	most := pageRuns
	if q.Names {
		most = stepRuns
	}
	if q.Limit > 0 {
		most = min(most, q.Limit)
	}
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	pruned, err := db.GetNumber(txn, keyPruned())
	if err != nil {
		return nil, err
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceRun}, Reverse: true})
	defer it.Close()
	at := bytes.Repeat([]byte{0xff}, 64) // behind every id
	at[0] = spaceRun
	if q.Before != "" {
		at = db.Named(spaceRun, q.Before)
	}
	r, size := &runsAnswer{}, 0
	for steps := 0; ; steps++ {
		it.Seek(at)
		if !it.Valid() {
			return r, nil
		}
		run, _, ok := db.SplitNamed(it.Item().Key())
		if !ok {
			return nil, fmt.Errorf("%w: an entry of the runs of the log has no name", wire.ErrDamaged)
		}
		if steps >= stepRuns || len(r.Runs) >= most || size >= db.PageBytes {
			r.More = true
			return r, ctx.Err()
		}
		at = db.Named(spaceRun, run) // before all of its entries
		r.Next = run
		if q.Names {
			r.Runs = append(r.Runs, RunSummary{RunID: run})
			continue
		}
		s, found, err := l.summary(txn, it.Item(), run, q.Agent, pruned)
		if err != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
		if found {
			r.Runs = append(r.Runs, s)
			size += len(s.Message) + len(s.RunID) + 256
		}
	}
}

// summary is the run whose last entry is given, if it is one of the agent.
func (l *Log) summary(txn *badger.Txn, last *badger.Item, run, agent string, pruned uint64) (s RunSummary,
	found bool, err error,
) {
	s = RunSummary{RunID: run, Records: db.TailNumber(last.Key())}
	p, seq, err := recordAt(txn, last)
	switch {
	case err != nil, p == nil && seq <= pruned: // which is about to be gone
		return s, false, err
	case p == nil:
		return s, false, fmt.Errorf("%w: record %d is missing from the log", wire.ErrDamaged, seq)
	}
	var g audit.Glance
	if err := g.Read(p); err != nil {
		return s, false, fmt.Errorf("%w: record %d: %w", wire.ErrDamaged, seq, err)
	}
	if agent != "" && string(g.Agent) != agent {
		return s, false, nil
	}
	end, err := l.codec.Decode(p)
	if err != nil {
		return s, false, fmt.Errorf("%w: record %d: %w", wire.ErrDamaged, seq, err)
	}
	h := end.Head
	s.Agent, s.TraceID, s.ParentRun, s.BundleDigest = h.Agent, h.TraceID, h.ParentRun, h.BundleDigest
	if ev := end.Event; ev != nil && audit.Ends(ev.Kind) {
		s.EndedMS, s.End, s.Outcome, s.ExitCode, s.Message = end.Time.UnixMilli(), ev.Kind, ev.Outcome, ev.ExitCode,
			ev.Message
		s.Allowed, s.Denied = ev.Usage["allowed"], ev.Usage["denied"]
	}
	s.First, s.BeganMS = seq, end.Time.UnixMilli()
	return s, true, l.began(txn, &s)
}

// began completes a summary by the first record of the run that is left.
func (l *Log) began(txn *badger.Txn, s *RunSummary) error {
	item, err := txn.Get(keyRun(s.RunID, 1))
	if errors.Is(err, badger.ErrKeyNotFound) { // pruned: a later one is the first
		prefix := db.Named(spaceRun, s.RunID)
		it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
		defer it.Close()
		if it.Seek(prefix); !it.Valid() {
			return nil
		}
		item, err = it.Item(), nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	p, seq, err := recordAt(txn, item)
	if err != nil || p == nil {
		return err
	}
	var g audit.Glance
	if err := g.Read(p); err != nil {
		return fmt.Errorf("%w: record %d: %w", wire.ErrDamaged, seq, err)
	}
	s.First, s.BeganMS = seq, g.UnixMS
	return nil
}

// recordAt is the record that an entry of the runs leads to; nil if it is not
// there, which pruning may have brought about.
func recordAt(txn *badger.Txn, item *badger.Item) (p []byte, seq uint64, err error) {
	v, err := item.ValueCopy(nil)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	seq = db.TailNumber(v)
	if p, err = db.Get(txn, keyRecord(seq)); err != nil {
		return nil, seq, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	return p, seq, nil
}
