package log

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// An Inclusion proves that a record is in the log of a certain head.
type Inclusion struct {
	Seq   uint64
	Head  Head
	Leaf  tlog.Hash
	Proof tlog.RecordProof // of leaf Seq-1 in the tree of Head
	Line  []byte           // the record as it is exported; nil: it was pruned, and whoever kept its line can still show it
}

// Inclusion proves that record seq is among the first size of the log; size 0
// means all.
func (s *Client) Inclusion(ctx context.Context, seq, size uint64) (Inclusion, error) {
	r, err := wire.Ask(ctx, s.asker, &inclusionRequest{seq, size})
	if err != nil {
		return Inclusion{}, fmt.Errorf("proving record %d: %w", seq, err)
	}
	in := Inclusion{Seq: seq, Head: r.Head, Proof: ofHashes(r.Hashes), Line: r.Line}
	if len(in.Proof) == 0 {
		return in, fmt.Errorf("proving record %d: %w", seq, wire.ErrDamaged)
	}
	in.Leaf, in.Proof = in.Proof[0], in.Proof[1:]
	return in, nil
}

// Consistency proves that the first oldSize records of the log of newSize are
// those of the log of oldSize; newSize 0 means all.
func (s *Client) Consistency(ctx context.Context, oldSize, newSize uint64) (older, newer Head, proof tlog.TreeProof,
	err error,
) {
	r, err := wire.Ask(ctx, s.asker, &consistencyRequest{oldSize, newSize})
	if err != nil {
		return older, newer, nil, fmt.Errorf("proving that the log of %d records goes on: %w", oldSize, err)
	}
	return r.Older, r.Newer, ofHashes(r.Hashes), nil
}

func toHashes(hs []tlog.Hash) [][32]byte {
	out := make([][32]byte, len(hs))
	for i, h := range hs {
		out[i] = h
	}
	return out
}

func ofHashes(hs [][32]byte) []tlog.Hash {
	out := make([]tlog.Hash, len(hs))
	for i, h := range hs {
		out[i] = h
	}
	return out
}

// sized is the head of the log when it had size records; 0: as it is.
func sized(txn *badger.Txn, size uint64) (Head, error) {
	head, err := storedHead(txn)
	if err != nil || size == 0 || size == head.Size {
		return head, err
	}
	if size > head.Size {
		return head, wire.Invalidf("the log has %d records, not %d", head.Size, size)
	}
	root, err := rootAt(txn, size)
	return Head{size, root}, err
}

// An inclusionRequest asks for the proof that record Seq is in the log of Size
// records.
type inclusionRequest struct {
	Seq  uint64 `cbor:"1,keyasint"`
	Size uint64 `cbor:"2,keyasint,omitempty"` // 0: all
}

type inclusionAnswer struct {
	Head   Head       `cbor:"1,keyasint"`
	Line   []byte     `cbor:"2,keyasint,omitempty"` // the record as it is exported
	Hashes [][32]byte `cbor:"3,keyasint"`           // its leaf, and the proof
}

func (*inclusionRequest) Op() wire.Opcode { return wire.OpInclusion }

func (q *inclusionRequest) Do(_ context.Context, l *Log) (*inclusionAnswer, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	head, err := sized(txn, q.Size)
	if err != nil {
		return nil, err
	}
	if q.Seq == 0 || q.Seq > head.Size {
		return nil, wire.Invalidf("there is no record %d among %d", q.Seq, head.Size)
	}
	n := int64(q.Seq - 1)
	proof, err := tlog.ProveRecord(int64(head.Size), n, hashes{txn})
	if err != nil {
		return nil, err
	}
	leaf, line, err := l.leafOf(txn, q.Seq)
	if err != nil {
		return nil, err
	}
	if tlog.CheckRecord(proof, int64(head.Size), head.Root, n, leaf) != nil {
		return nil, wire.Damagedf("record %d is not the one that entered the log", q.Seq)
	}
	return &inclusionAnswer{Head: head, Line: line, Hashes: toHashes(append([]tlog.Hash{leaf}, proof...))}, nil
}

// leafOf is the leaf of a record and its line, nil if it was pruned.
func (l *Log) leafOf(txn *badger.Txn, seq uint64) (leaf tlog.Hash, line []byte, err error) {
	pruned, err := db.GetNumber(txn, keyPruned())
	if err != nil {
		return leaf, nil, err
	}
	if seq <= pruned {
		hs, err := hashes{txn}.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(seq-1))})
		if err != nil {
			return leaf, nil, err
		}
		return hs[0], nil, nil
	}
	p, err := db.Get(txn, keyRecord(seq))
	if err == nil && p == nil {
		err = wire.Damagedf("record %d is missing from the log", seq)
	}
	if err != nil {
		return leaf, nil, err
	}
	leafer, err := newLeafer()
	if err != nil {
		return leaf, nil, err
	}
	leaf, line, err = leafer.leaf(p)
	if err != nil {
		err = fmt.Errorf("%w: record %d: %w", wire.ErrDamaged, seq, err)
	}
	return leaf, line, err
}

// A consistencyRequest asks for the proof that the log of Old records became that
// of New.
type consistencyRequest struct {
	Old uint64 `cbor:"1,keyasint"`
	New uint64 `cbor:"2,keyasint,omitempty"` // 0: all
}

type consistencyAnswer struct {
	Older  Head       `cbor:"1,keyasint"`
	Newer  Head       `cbor:"2,keyasint"`
	Hashes [][32]byte `cbor:"3,keyasint,omitempty"`
}

func (*consistencyRequest) Op() wire.Opcode { return wire.OpConsistency }

func (q *consistencyRequest) Do(_ context.Context, l *Log) (*consistencyAnswer, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	newer, err := sized(txn, q.New)
	if err != nil {
		return nil, err
	}
	if q.Old == 0 || q.Old > newer.Size {
		return nil, wire.Invalidf("a log of %d records does not become one of %d", q.Old, newer.Size)
	}
	older, err := sized(txn, q.Old)
	if err != nil {
		return nil, err
	}
	proof, err := tlog.ProveTree(int64(newer.Size), int64(older.Size), hashes{txn})
	if err != nil {
		return nil, err
	}
	if tlog.CheckTree(proof, int64(newer.Size), newer.Root, int64(older.Size), older.Root) != nil {
		return nil, wire.Damagedf("the log of %d records does not go on from that of %d", newer.Size, older.Size)
	}
	return &consistencyAnswer{Newer: newer, Older: older, Hashes: toHashes(proof)}, nil
}
