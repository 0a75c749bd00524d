package kb

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// blameReach is how far away the place of a record is looked for.
const blameReach = 64

// blame says what is wrong with record seq, whose stored form p makes leaf, where
// the tree has want: whether it is the tree that was changed, by the signed heads
// that are known; and if the record was, whether it is one of another place that
// was given another number.
func (w *logWalk) blame(seq uint64, p []byte, leaf, want tlog.Hash) error {
	if leaf == want {
		return &LogError{FaultChanged, seq, 0, "it was given a time at which it will be gone"}
	}
	if w.inTree(seq, leaf) {
		return &LogError{FaultTree, seq, 0, "its leaf is another one; the record is the one that was signed"}
	}
	stands := w.placeOf(seq, p) // where the record that is here belongs
	lies := w.recordOf(seq)     // where the record that belongs here is
	switch {
	case stands != 0 && lies != 0:
		return &LogError{
			FaultReordered, seq, 0,
			fmt.Sprintf("record %d stands in its place with its number, and it in that of %d", stands, lies),
		}
	case stands > seq:
		return &LogError{FaultRemoved, seq, stands - 1, fmt.Sprintf("what stands in its place is record %d, with its number",
			stands)}
	case lies > seq:
		return &LogError{FaultInserted, seq, 0, fmt.Sprintf("the record that belongs here stands in the place of %d", lies)}
	}
	return &LogError{FaultChanged, seq, 0, "it is not the record that its leaf was made of"}
}

// inTree reports whether a leaf is at its place in a log that was signed.
func (w *logWalk) inTree(seq uint64, leaf tlog.Hash) bool {
	r, err := w.checkpointsOf(w.txn, seq-1)
	if err != nil || len(r.Checkpoints) == 0 || r.Checkpoints[0].Head.Size > w.head.Size {
		return false
	}
	head := r.Checkpoints[0].Head
	proof, err := tlog.ProveRecord(int64(head.Size), int64(seq-1), hashes{w.txn})
	return err == nil && tlog.CheckRecord(proof, int64(head.Size), head.Root, int64(seq-1), leaf) == nil
}

// placeOf finds a place near seq that p belongs to: the leaf there is that of p
// with the number of the place.
func (w *logWalk) placeOf(seq uint64, p []byte) uint64 {
	return w.near(seq, func(at uint64) bool { return w.leafAs(p, at) == w.leafAt(at) })
}

// recordOf finds a record near seq that belongs to seq.
func (w *logWalk) recordOf(seq uint64) uint64 {
	want := w.leafAt(seq)
	return w.near(seq, func(at uint64) bool {
		p, err := get(w.txn, keyRecord(at))
		return err == nil && p != nil && w.leafAs(p, seq) == want
	})
}

func (w *logWalk) near(seq uint64, is func(at uint64) bool) uint64 {
	for d := uint64(1); d <= blameReach; d++ {
		if at := seq + d; at <= w.head.Size && is(at) {
			return at
		}
		if at := seq - d; d < seq && at > w.report.Pruned && is(at) {
			return at
		}
	}
	return 0
}

// leafAt is the leaf of a place as it is stored; that of none is no leaf.
func (w *logWalk) leafAt(seq uint64) tlog.Hash {
	h, err := hashes{w.txn}.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(seq-1))})
	if err != nil {
		return tlog.Hash{}
	}
	return h[0]
}

// leafAs is the leaf that a record would have with another number.
func (w *logWalk) leafAs(p []byte, seq uint64) tlog.Hash {
	rec, err := w.codec.Decode(p)
	if err != nil {
		return tlog.Hash{1}
	}
	rec.Seq = seq
	line, err := rec.AppendJSON(nil)
	if err != nil {
		return tlog.Hash{1}
	}
	return tlog.RecordHash(line)
}

func isDamage(err error) bool { return errors.Is(err, ErrDamaged) }

// asLogError is the fault that an error is.
func asLogError(err error) (fault *LogError, is bool) {
	return fault, errors.As(err, &fault)
}

// asFault is what could not be read of a record, as a fault.
func asFault(seq uint64, err error) error {
	if _, is := asLogError(err); is {
		return err
	}
	return &LogError{FaultChanged, seq, 0, plain(err)}
}

// plain is the text of an error without the words that every fault has.
func plain(err error) string { return strings.ReplaceAll(err.Error(), ErrDamaged.Error()+": ", "") }
