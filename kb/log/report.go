package log

import (
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

// A Finding is a record by which the log says that it lacks something, or that
// something was in it that does not belong there.
type Finding struct {
	Seq     uint64 `cbor:"1,keyasint" json:"seq"`
	Run     string `cbor:"2,keyasint" json:"run_id"`
	Reason  string `cbor:"3,keyasint" json:"reason"`
	Message string `cbor:"4,keyasint" json:"message"`
}
