package log

import (
	"bytes"
	"errors"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// LastRecord is the number of the last record that entered the log.
func LastRecord(txn *badger.Txn) (uint64, error) { return db.GetNumber(txn, keySeq()) }

// A backup is what a backup holds of a log, of the moment of a transaction.
type backup struct{ pruned uint64 }

// BackupOf is the log's part of a backup.
func BackupOf(txn *badger.Txn) (backup, error) {
	pruned, err := db.GetNumber(txn, keyPruned())
	return backup{pruned}, err
}

// From is the first key of a space that it holds.
func (b backup) From(space byte) []byte {
	if space == SpaceRecord {
		return keyRecord(b.pruned + 1)
	}
	return []byte{space}
}

// Value is what it holds at a key; nil: nothing there or behind it in the space.
func (b backup) Value(key, stored []byte) []byte {
	if key[0] == SpaceTile {
		return prunedLeaves(key, stored, b.pruned)
	}
	return stored
}

// prunedLeaves is what a backup holds of a tile: leaves of records that were
// pruned, which nothing else says; nil: there are none.
func prunedLeaves(key, stored []byte, pruned uint64) []byte {
	first := db.TailNumber(key) * tileWidth
	if len(key) != 10 || key[1] != 0 || first >= pruned {
		return nil
	}
	return stored[:min(int(min(pruned-first, tileWidth))*tlog.HashSize, len(stored))]
}

// A regrowth is the log as far as it was restored within one transaction.
type regrowth struct {
	*Log
	txn    *badger.Txn
	tree   *tree
	leafer *leafer
}

// begin reads where the log is.
func (g *regrowth) begin() (err error) {
	if g.tree != nil {
		return nil
	}
	if g.leafer, err = newLeafer(); err != nil {
		return err
	}
	g.tree, err = g.currentTree(g.txn)
	return err
}

// End stores the log's head and tree.
func (g *regrowth) End() error {
	if g.tree == nil {
		return nil
	}
	return errors.Join(g.txn.Set(keySeq(), db.Number(nil, g.tree.size)), g.tree.save(g.txn))
}

// leaves restores those of records that were pruned; they come in their order.
func (g *regrowth) leaves(key, p []byte) error {
	if err := g.begin(); err != nil {
		return err
	}
	pruned, err := db.GetNumber(g.txn, keyPruned())
	if err != nil {
		return err
	}
	first := db.TailNumber(key) * tileWidth
	if g.tree.size > first {
		return nil // the page is asked for again
	}
	if g.tree.size < first || first+uint64(len(p)/tlog.HashSize) > pruned {
		return wire.Invalidf("leaf %d of the log follows leaf %d, and up to %d they are of records that were pruned", first,
			g.tree.size, pruned)
	}
	for ; len(p) > 0; p = p[tlog.HashSize:] {
		g.tree.add(tlog.Hash(p))
	}
	return nil
}

// record puts a record of the log in its place; they come in their order.
func (g *regrowth) record(r *pair) error {
	if err := g.begin(); err != nil {
		return err
	}
	seq := r.record.Seq
	if seq <= g.tree.size {
		return nil // the page is asked for again
	}
	if seq != g.tree.size+1 {
		return wire.Invalidf("record %d of the log follows record %d", seq, g.tree.size)
	}
	p := slices.Clone(r.stored)
	leaf, _, err := g.leafer.leaf(p)
	if err != nil {
		return wire.Invalidf("a record of the log: %v", err)
	}
	g.tree.add(leaf)
	return setRecord(g.txn, &r.record, p)
}

// BoundMarks takes away what says that more was pruned than was ever there: it
// would hide what is recorded from now on.
func BoundMarks(txn *badger.Txn) error {
	head, err := storedHead(txn)
	if err != nil {
		return err
	}
	pruned, err := db.GetNumber(txn, keyPruned())
	if err != nil || pruned <= head.Size {
		return err
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceMark}})
	var marks [][]byte
	for it.Rewind(); it.Valid(); it.Next() {
		marks = append(marks, it.Item().KeyCopy(nil))
	}
	it.Close()
	for _, k := range marks {
		if err := txn.Delete(k); err != nil {
			return err
		}
	}
	return txn.Delete(keyPruned())
}

// mark restores what was pruned, before there is anything of the log.
func (g *regrowth) mark(at uint64, p []byte) error {
	if err := g.begin(); err != nil {
		return err
	}
	if there, err := db.Get(g.txn, keyMark(at)); err != nil || there != nil {
		return err // the page is asked for again
	}
	if g.tree.size > 0 {
		return wire.Invalidf("the mark that records up to %d were pruned comes too late", at)
	}
	was, err := db.GetNumber(g.txn, keyPruned())
	return errors.Join(err, g.txn.Set(keyMark(at), slices.Clone(p)), g.txn.Set(keyPruned(), db.Number(nil, max(was, at))))
}

// A pair is a pair of a backup that is of the log.
type pair struct {
	record audit.Record
	stored []byte
	done   bool // of the state of a journal: nothing more will come from it
}

// parsePair checks a pair of a backup that is of the log; nil: it is of something
// else. It trusts nothing.
func parsePair(codec *audit.Codec, key, stored []byte) (*pair, error) {
	r := &pair{stored: stored}
	if len(key) == 0 {
		return nil, nil
	}
	switch key[0] {
	case SpaceRecord:
		return r, r.parseRecord(codec, key)
	case SpaceTile, SpaceCheckpoint, SpaceMark:
		return r, r.parseTree(codec, key)
	case SpaceState:
		s, err := journal.CheckTaken(codec, string(key[1:]), stored)
		if err != nil || len(key) == 1 {
			return nil, wire.Invalidf("the state of a journal makes no sense")
		}
		r.done = s.Done
		return r, nil
	}
	return nil, nil
}

// isLogPair reports whether a pair of a backup is the log's, and an error if it is
// not as it should be.
func IsPair(codec *audit.Codec, key, stored []byte) (bool, error) {
	r, err := parsePair(codec, key, stored)
	return r != nil || err != nil, err
}

// Pair restores a pair of the log.
func (g *regrowth) Pair(key, stored []byte) error {
	r, err := parsePair(g.codec, key, stored)
	if err == nil && r == nil {
		err = wire.Invalidf("a pair of another kind")
	}
	if err != nil {
		return err
	}
	switch key[0] {
	case SpaceState:
		return setState(g.txn, string(key[1:]), slices.Clone(stored), r.done)
	case SpaceRecord:
		return g.record(r)
	case SpaceTile:
		return g.leaves(key, stored)
	case SpaceMark:
		return g.mark(db.TailNumber(key), stored)
	}
	return g.txn.Set(slices.Clone(key), slices.Clone(stored))
}

// Regrow restores a log within a transaction, pair after pair in their order.
func (l *Log) Regrow(txn *badger.Txn) *regrowth { return &regrowth{Log: l, txn: txn} }

// Spaces are the spaces of a log.
var Spaces = []byte{
	SpaceRecord, spaceRun, spaceAgent, spaceOther, SpaceState, spaceOpen, SpaceTile,
	SpaceCheckpoint, SpaceMark,
}

// parseTree checks a pair of the log's tree. It trusts nothing; whether the log is
// the one that was signed is for who verifies it.
func (r *pair) parseTree(codec *audit.Codec, key []byte) error {
	at := db.TailNumber(key)
	switch key[0] {
	case SpaceTile:
		if len(key) != 10 || key[1] != 0 || at > db.MaxNumber/tileWidth || len(r.stored) == 0 || len(r.stored) > tileBytes ||
			len(r.stored)%tlog.HashSize != 0 {
			return wire.Invalidf("leaves of the log make no sense")
		}
	case SpaceCheckpoint:
		if _, err := decodeCheckpoint(codec, at, r.stored); err != nil || len(key) != 9 {
			return wire.Invalidf("the checkpoint of %d records makes no sense", at)
		}
	case SpaceMark:
		if _, err := decodeMark(codec, at, r.stored); err != nil || len(key) != 9 || at == 0 {
			return wire.Invalidf("the mark that records up to %d were pruned makes no sense", at)
		}
	}
	return nil
}

func (r *pair) parseRecord(codec *audit.Codec, key []byte) error {
	rec, err := codec.Decode(r.stored)
	if err != nil {
		return wire.Invalidf("a record of the log: %v", err)
	}
	if !bytes.Equal(key, keyRecord(rec.Seq)) || rec.Seq == 0 || len(rec.Head.RunID) > 1024 || len(rec.Head.Agent) > 1024 {
		return wire.Invalidf("record %d of the log is in no place", rec.Seq)
	}
	r.record = rec
	return nil
}

// forgetLog takes away what is known of a log that is dropped.
func Forget(txn *badger.Txn) error {
	return errors.Join(txn.Delete(keySeq()), txn.Delete(keyHead()), txn.Delete(keyPruned()), txn.Delete(keyPruning()),
		txn.Set(keyOwed(), []byte{}))
}
