package log

import (
	"context"
	"fmt"

	"runloop.dev/rlp/kb/wire"
)

// VerifyLog checks that the log is the one that entered the store, while the
// store is in use: each record against its leaf, the leaves against the tree,
// the tree against checkpoints, the records of each run against their numbers,
// and everything that leads to records against the records. It looks at what is
// in the log; [Client.Ingest] takes in what is in journals. What is wrong is a
// [wire.Error], about the first record that is.
func (s *Client) VerifyLog(ctx context.Context, c Check) (Report, error) {
	for range 3 {
		j := newJudge(&c)
		again, err := s.walkLog(ctx, j)
		if !again || err != nil {
			if err != nil {
				err = fmt.Errorf("verifying the audit log: %w", err)
			}
			return j.report, err
		}
	}
	return Report{}, fmt.Errorf("verifying the audit log: %w: its owner has changed again and again", wire.ErrUnavailable)
}

// walkLog asks for step after step, and judges each; again: its owner has
// changed, and another one begins from the beginning.
func (s *Client) walkLog(ctx context.Context, j *judge) (again bool, err error) {
	q := &verifyLogRequest{Ask: j.ask()}
	for {
		r, err := wire.Ask(ctx, s.asker, q)
		if err != nil || r.Step.Gone {
			return r != nil && r.Step.Gone, err
		}
		if err := j.judge(&r.Step); err != nil || r.Step.Finished {
			return false, err
		}
		q.Walk, q.Step, q.Ask = r.Walk, q.Step+1, walkAsk{}
	}
}
