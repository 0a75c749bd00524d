package log

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// blameReach is how far away the place of a record is looked for.
const blameReach = 64

// A suspect is the record at seq, whose stored form is p, which does not make its leaf.
type suspect struct {
	*walk
	seq uint64
	p   []byte
}

// blame says what is wrong with record seq, whose stored form p makes leaf, where
// the tree has want: whether it is the tree that was changed, by the signed heads
// that are known; and if the record was, whether it is one of another place that
// was given another number.
func (w *walk) blame(seq uint64, p []byte, leaf, want tlog.Hash) error {
	s := &suspect{w, seq, p}
	if leaf == want {
		return &Error{FaultChanged, seq, 0, "it was given a time at which it will be gone"}
	}
	if s.inTree(leaf) {
		return &Error{FaultTree, seq, 0, "its leaf is another one; the record is the one that was signed"}
	}
	stands := s.placeOf() // where the record that is here belongs
	lies := s.recordOf()  // where the record that belongs here is
	switch {
	case stands != 0 && lies != 0:
		return &Error{
			FaultReordered, seq, 0,
			fmt.Sprintf("record %d stands in its place with its number, and it in that of %d", stands, lies),
		}
	case stands > seq:
		return &Error{FaultRemoved, seq, stands - 1, fmt.Sprintf("what stands in its place is record %d, with its number",
			stands)}
	case lies > seq:
		return &Error{FaultInserted, seq, 0, fmt.Sprintf("the record that belongs here stands in the place of %d", lies)}
	}
	return &Error{FaultChanged, seq, 0, "it is not the record that its leaf was made of"}
}

// inTree reports whether a leaf is at its place in a log that was signed.
func (s *suspect) inTree(leaf tlog.Hash) bool {
	r, err := s.checkpointsOf(s.txn, s.seq-1)
	if err != nil || len(r.Checkpoints) == 0 || r.Checkpoints[0].Head.Size > s.head.Size {
		return false
	}
	head := r.Checkpoints[0].Head
	proof, err := tlog.ProveRecord(int64(head.Size), int64(s.seq-1), hashes{s.txn})
	return err == nil && tlog.CheckRecord(proof, int64(head.Size), head.Root, int64(s.seq-1), leaf) == nil
}

// placeOf finds a place near by that the record belongs to: the leaf there is its own
// with the number of the place.
func (s *suspect) placeOf() uint64 {
	return s.near(func(at uint64) bool { return s.leafAs(s.p, at) == s.leafAt(at) })
}

// recordOf finds a record near by that belongs in its place.
func (s *suspect) recordOf() uint64 {
	want := s.leafAt(s.seq)
	return s.near(func(at uint64) bool {
		p, err := db.Get(s.txn, keyRecord(at))
		return err == nil && p != nil && s.leafAs(p, s.seq) == want
	})
}

func (s *suspect) near(is func(at uint64) bool) uint64 {
	for d := uint64(1); d <= blameReach; d++ {
		if at := s.seq + d; at <= s.head.Size && is(at) {
			return at
		}
		if at := s.seq - d; d < s.seq && at > s.report.Pruned && is(at) {
			return at
		}
	}
	return 0
}

// leafAt is the leaf of a place as it is stored; that of none is no leaf.
func (s *suspect) leafAt(seq uint64) tlog.Hash {
	h, err := hashes{s.txn}.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(seq-1))})
	if err != nil {
		return tlog.Hash{}
	}
	return h[0]
}

// leafAs is the leaf that a record would have with another number.
func (s *suspect) leafAs(p []byte, seq uint64) tlog.Hash {
	rec, err := s.codec.Decode(p)
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

func isDamage(err error) bool { return errors.Is(err, wire.ErrDamaged) }

// asError is the fault that an error is.
func asError(err error) (fault *Error, is bool) {
	return fault, errors.As(err, &fault)
}

// asFault is what could not be read of a record, as a fault.
func asFault(seq uint64, err error) error {
	if _, is := asError(err); is {
		return err
	}
	return &Error{FaultChanged, seq, 0, plain(err)}
}

// plain is the text of an error without the words that every fault has.
func plain(err error) string {
	return strings.ReplaceAll(err.Error(), wire.ErrDamaged.Error()+": ", "")
}
