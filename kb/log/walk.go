package log

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
)

// A walkAsk is what a verification is asked for.
type walkAsk struct {
	Run     string   `cbor:"1,keyasint,omitempty"`
	Since   Head     `cbor:"2,keyasint"`
	Against []uint64 `cbor:"3,keyasint,omitempty"` // sizes whose roots are wanted
}

// A walkStep is what one step of a verification has found.
type walkStep struct {
	Gone     bool        `cbor:"1,keyasint,omitempty"` // the verification is not known here: begin again
	Report   Report      `cbor:"2,keyasint"`
	Roots    []Head      `cbor:"3,keyasint,omitempty"` // that were wanted
	Signed   []walkPoint `cbor:"4,keyasint,omitempty"` // checkpoints that were passed
	Mark     *Mark       `cbor:"5,keyasint,omitempty"` // the last one
	End      uint64      `cbor:"6,keyasint,omitempty"` // the first record behind the last of these that ends a run
	Fault    *Error      `cbor:"7,keyasint,omitempty"`
	Finished bool        `cbor:"8,keyasint,omitempty"`
}

// A walkPoint is a stored checkpoint and the root that the records make there.
type walkPoint struct {
	Checkpoint Checkpoint `cbor:"1,keyasint"`
	Root       [32]byte   `cbor:"2,keyasint"`
}

// A walk is one verification.
type walk struct {
	*Log
	txn *badger.Txn
	ask walkAsk

	stage  func(ctx context.Context, until time.Time) (done bool, err error)
	head   Head
	mark   *Mark
	report Report
	step   *walkStep
	wanted []uint64 // sizes, ascending, that are still to come
	tree   *tree    // of what was looked at
	leaves []byte   // the tile of the next leaf, as it is stored

	leavesAt uint64 // its number, where they are not looked at in order

	leafer    *leafer
	glance    audit.Glance
	isFinding bool // what glance is of
	runs      map[string]*runWalk
	current   *runWalk
	index     indexWalk

	points   []Checkpoint // the next ones
	pointsAt uint64       // the size of the last one that was read
}

// A runWalk is how far the records of a run were seen.
type runWalk struct {
	run    string
	runSeq uint64
	ended  bool
	known  bool // how far its journal was taken in
}

// Discard gives a verification up.
func (w *walk) Discard() { w.txn.Discard() }

// shortFault: the log had known records and has fewer.
func shortFault(size, known uint64) error {
	return &Error{
		FaultTruncated, size + 1, known,
		fmt.Sprintf("the log had %d records, and has %d: it was cut, or it is an older copy of itself", known, size),
	}
}

// treeFault is an error of reading the tree, as a fault.
func treeFault(seq, upTo uint64, err error) error {
	if !isDamage(err) {
		return err
	}
	return &Error{FaultTree, seq, upTo, plain(err)}
}

// found adds what a record says to the report.
func (w *walk) found(p []byte) error {
	f, err := w.finding(&w.glance, p)
	w.isFinding = f != nil
	if err != nil || f == nil {
		return err
	}
	w.report.Found++
	if len(w.report.Findings) < maxFindings {
		w.report.Findings = append(w.report.Findings, *f)
	}
	return nil
}

// finding is what the record whose stored form is p says is wrong; nil: nothing.
func (l *Log) finding(g *audit.Glance, p []byte) (*Finding, error) {
	if g.Decided || string(g.Kind) != audit.KindRunFailed {
		return nil, nil
	}
	rec, err := l.codec.Decode(p)
	if err != nil {
		return nil, err
	}
	if r := rec.Event.Reason; r != reasonDamaged && r != reasonFault {
		return nil, nil
	}
	return &Finding{g.Seq, string(g.Run), rec.Event.Reason, rec.Event.Message}, nil
}

// maxFindings is how many findings a report has; the others are counted.
const maxFindings = 100

// reasonFault is the reason of a record that says what was found wrong with the
// log itself, or with what should have entered it. Such a record is a run of its
// own, which it ends.
const reasonFault = "log_damaged"

// An indexWalk compares what leads to records with what the records say.
type indexWalk struct {
	seed maphash.Seed
	made bool
	want [len(indexSpaces)]multiset // of the records
	have [len(indexSpaces)]multiset // of what is stored
	at   int                        // the space that is looked at
	from []byte                     // the key to go on at; nil: the first
	key  []byte
}
