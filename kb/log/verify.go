package log

import (
	"context"
	"fmt"

	"runloop.dev/rlp/kb/wire"
)

// A Check says what [Client.VerifyLog] looks at, and what it is compared with.
// The zero one is the whole log, of which every signature is taken on trust.
type Check struct {
	// Run: only the records of this run.
	Run string
	// Since: only the records that came after this head of the log, which the
	// caller knows from elsewhere, and that the log goes on from it.
	Since Head
	// Against are heads of the log that the caller knows from elsewhere, such as
	// those of checkpoints held outside the host.
	Against []Head
	// Open reads a checkpoint's note, or a mark's, and is an error if it is not
	// signed by a key that the caller trusts. nil: no signature is checked.
	Open func(note []byte) (Opened, error)
}

// An Opened is what a signed note says.
type Opened struct {
	Head  Head
	Lines []string // behind the root
}

// A Report says what [Client.VerifyLog] has looked at.
type Report struct {
	Head        Head   `cbor:"1,keyasint"`           // of the log at the moment that was looked at
	From        uint64 `cbor:"2,keyasint"`           // the first record that was looked at
	Records     int    `cbor:"3,keyasint"`           // that were
	Runs        int    `cbor:"4,keyasint"`           // they are of
	Open        int    `cbor:"5,keyasint"`           // runs among them that have no end yet
	Pruned      uint64 `cbor:"6,keyasint,omitempty"` // records up to this one were pruned
	PrunedMS    int64  `cbor:"7,keyasint,omitempty"` // when
	Unfinished  bool   `cbor:"8,keyasint,omitempty"` // what was pruned is not yet gone altogether
	Checkpoints int    `cbor:"-"`                    // that the log was compared with
	Sealed      uint64 `cbor:"-"`                    // the size of the last of them
	Bare        int    `cbor:"9,keyasint,omitempty"` // runs that have an end and no beginning

	Findings []Finding `cbor:"10,keyasint,omitempty"` // what records say is missing, the first ones
	Found    int       `cbor:"11,keyasint,omitempty"` // how many there are
}

// A Fault is the kind of what is wrong with a log.
type Fault string

// The faults, as far as can be known which it is.
const (
	FaultChanged    Fault = "changed"    // a record is not the one that entered the log
	FaultRemoved    Fault = "removed"    // a record is missing
	FaultInserted   Fault = "inserted"   // a record is where none belongs
	FaultReordered  Fault = "reordered"  // a record stands where another one belongs
	FaultTruncated  Fault = "truncated"  // the log ends too early, or is an older copy of itself
	FaultRewritten  Fault = "rewritten"  // records and tree agree, and are not what was signed
	FaultTree       Fault = "tree"       // the tree is not that of the records
	FaultIndex      Fault = "index"      // what leads to records does not lead to all of them, or to others
	FaultCheckpoint Fault = "checkpoint" // a checkpoint, or a mark, is not one
	FaultRun        Fault = "run"        // the records of a run do not follow each other, or its end is missing
	FaultUnsealed   Fault = "unsealed"   // a run has ended, and no checkpoint says so
)

// An Error is what is wrong with a log. It is [wire.ErrDamaged].
type Error struct {
	Fault Fault  `cbor:"1,keyasint"`
	Seq   uint64 `cbor:"2,keyasint,omitempty"` // the first record that it is about; 0: none
	UpTo  uint64 `cbor:"3,keyasint,omitempty"` // the last one that it may be about, if it cannot be said better
	Why   string `cbor:"4,keyasint"`
}

func (e *Error) Error() string {
	switch {
	case e.Seq == 0:
		return fmt.Sprintf("%s: %s", e.Fault, e.Why)
	case e.UpTo > e.Seq:
		return fmt.Sprintf("%s: records %d to %d: %s", e.Fault, e.Seq, e.UpTo, e.Why)
	}
	return fmt.Sprintf("%s: record %d: %s", e.Fault, e.Seq, e.Why)
}

func (e *Error) Unwrap() error { return wire.ErrDamaged }

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
