package log

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// A Mark says that records were pruned, and is signed.
type Mark struct {
	Head   Head   `cbor:"1,keyasint"` // of the log when they were
	Pruned uint64 `cbor:"2,keyasint"` // the last one that was
	UnixMS int64  `cbor:"3,keyasint"` // when
	// Cut are the runs that have records on both sides, and the RunSeq of the
	// last one that was pruned.
	Cut  map[string]uint64 `cbor:"4,keyasint,omitempty"`
	Note []byte            `cbor:"5,keyasint"` // as [Options.SealMark] made it
}

// lines are what is signed of a mark beside its head.
func (m *Mark) lines() []string {
	lines := []string{fmt.Sprintf("pruned %d", m.Pruned), fmt.Sprintf("at %d", m.UnixMS)}
	for _, run := range slices.Sorted(maps.Keys(m.Cut)) {
		lines = append(lines, fmt.Sprintf("cut %d %q", m.Cut[run], run))
	}
	return lines
}

func sameLines(a, b []string) bool { return slices.Equal(a, b) }

// lastMark is what was pruned last; nil: nothing.
func (l *Log) lastMark(txn *badger.Txn) (*Mark, error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceMark}, Reverse: true})
	defer it.Close()
	it.Seek(append(keyMark(^uint64(0)), 0xff))
	if !it.Valid() {
		return nil, nil
	}
	return l.markOf(it.Item())
}

func (l *Log) markOf(item *badger.Item) (m *Mark, err error) {
	at := db.TailNumber(item.Key())
	if len(item.Key()) != 9 || item.ExpiresAt() != 0 {
		return nil, wire.Damagedf("there is a mark at no record (%q)", item.Key())
	}
	err = item.Value(func(p []byte) error {
		m, err = decodeMark(l.codec, at, p)
		return err
	})
	if err != nil && !errors.Is(err, wire.ErrDamaged) {
		err = fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	return m, err
}

// decodeMark reads the mark that is stored for a record.
func decodeMark(codec *audit.Codec, at uint64, p []byte) (*Mark, error) {
	m := new(Mark)
	if err := codec.Unmarshal(p, m); err != nil || m.Pruned != at || m.Pruned > m.Head.Size || len(m.Note) == 0 ||
		len(m.Note) > maxNote {
		return nil, wire.Damagedf("the mark that records up to %d were pruned makes no sense", at)
	}
	return m, nil
}

// Marks returns what is on record about pruning, oldest first.
func (s *Client) Marks(ctx context.Context) ([]Mark, error) {
	var all []Mark
	q := &marksRequest{}
	for {
		r, err := wire.Ask(ctx, s.asker, q)
		if err != nil {
			return nil, fmt.Errorf("reading what was pruned of the log: %w", err)
		}
		all = append(all, r.Marks...)
		if !r.More || len(r.Marks) == 0 {
			return all, nil
		}
		q.After = r.Marks[len(r.Marks)-1].Pruned
	}
}

// A marksRequest asks for the marks behind record After.
type marksRequest struct {
	After uint64 `cbor:"1,keyasint,omitempty"`
}

// A marksAnswer is as many as fit; More says that there are others.
type marksAnswer struct {
	Marks []Mark `cbor:"1,keyasint,omitempty"`
	More  bool   `cbor:"2,keyasint,omitempty"`
}

func (*marksRequest) Op() wire.Opcode { return wire.OpMarks }

func (q *marksRequest) Do(_ context.Context, l *Log) (*marksAnswer, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	r, size := &marksAnswer{}, 0
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceMark}})
	defer it.Close()
	for it.Seek(keyMark(q.After + 1)); it.Valid() && q.After+1 != 0; it.Next() {
		if r.More = size > db.PageBytes; r.More {
			return r, nil
		}
		m, err := l.markOf(it.Item())
		if err != nil {
			return r, err
		}
		r.Marks = append(r.Marks, *m)
		size += 2*len(m.Note) + 256
	}
	return r, nil
}
