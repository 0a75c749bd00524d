package log

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// askRuns is how many runs one request looks for.
const askRuns = 1000

// GoesOn is the outcome of a run of which the log has no end.
const GoesOn = "goes on"

// Outcomes returns what the log says of each of runs: how it ended, or [GoesOn],
// or "" where the log has no record of it.
func (s *Client) Outcomes(ctx context.Context, runs []string) ([]string, error) {
	var all []string
	for len(runs) > 0 {
		n := min(len(runs), askRuns)
		r, err := wire.Ask(ctx, s.asker, &outcomesRequest{runs[:n]})
		if err == nil && len(r.Outcomes) != n {
			err = fmt.Errorf("%w: %d answers to %d questions", wire.ErrDamaged, len(r.Outcomes), n)
		}
		if err != nil {
			return nil, fmt.Errorf("looking for runs in the log: %w", err)
		}
		all, runs = append(all, r.Outcomes...), runs[n:]
	}
	return all, nil
}

// An outcomesRequest asks how each of Runs ended.
type outcomesRequest struct {
	Runs []string `cbor:"1,keyasint,omitempty"`
}

type outcomesAnswer struct {
	Outcomes []string `cbor:"1,keyasint,omitempty"`
}

func (*outcomesRequest) Op() wire.Opcode { return wire.OpOutcomes }

func (q *outcomesRequest) Do(_ context.Context, l *Log) (*outcomesAnswer, error) {
	if len(q.Runs) > askRuns {
		return nil, wire.Invalidf("%d runs are looked for at once, and %d may be", len(q.Runs), askRuns)
	}
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	r := &outcomesAnswer{Outcomes: make([]string, len(q.Runs))}
	for i, run := range q.Runs {
		end, err := l.lastRecord(txn, run)
		if err != nil {
			return nil, err
		}
		switch {
		case end == nil:
		case end.Event == nil || !audit.Ends(end.Event.Kind):
			r.Outcomes[i] = GoesOn
		default:
			r.Outcomes[i] = end.Event.Outcome
		}
	}
	return r, nil
}

// lastRecord is the last record that the log has of a run; nil: it has none.
func (l *Log) lastRecord(txn *badger.Txn, run string) (*audit.Record, error) {
	prefix := db.Named(spaceRun, run)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix, Reverse: true})
	defer it.Close()
	if it.Seek(db.Number(prefix[:len(prefix):len(prefix)], ^uint64(0))); !it.Valid() {
		return nil, nil
	}
	p, seq, err := recordAt(txn, it.Item())
	if err != nil || p == nil {
		return nil, err
	}
	rec, err := l.codec.Decode(p)
	if err != nil {
		return nil, fmt.Errorf("%w: record %d: %w", wire.ErrDamaged, seq, err)
	}
	return &rec, nil
}
