package kb

import (
	"errors"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/record/audit"
)

// prunedLeaves is what a backup holds of a tile: leaves of records that were
// pruned, which nothing else says; nil: there are none.
func prunedLeaves(p pair, pruned uint64) []byte {
	first := tailNumber(p.Key) * tileWidth
	if len(p.Key) != 10 || p.Key[1] != 0 || first >= pruned {
		return nil
	}
	return p.Value[:min(int(min(pruned-first, tileWidth))*tlog.HashSize, len(p.Value))]
}

// parseLog checks a pair of the log's tree. It trusts nothing; whether the log is
// the one that was signed is for who verifies it.
func (r *restorable) parseLog(codec *audit.Codec, key []byte) error {
	at := tailNumber(key)
	switch r.space {
	case spaceTile:
		if len(key) != 10 || key[1] != 0 || at > maxRevision/tileWidth || len(r.stored) == 0 || len(r.stored) > tileBytes ||
			len(r.stored)%tlog.HashSize != 0 {
			return invalidf("leaves of the log make no sense")
		}
	case spaceCheckpoint:
		if _, err := decodeCheckpoint(codec, at, r.stored); err != nil || len(key) != 9 {
			return invalidf("the checkpoint of %d records makes no sense", at)
		}
	case spaceMark:
		if _, err := decodeMark(codec, at, r.stored); err != nil || len(key) != 9 || at == 0 {
			return invalidf("the mark that records up to %d were pruned makes no sense", at)
		}
	}
	return nil
}

// A regrowth is the log as far as it was restored within one transaction.
type regrowth struct {
	*engine
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

// end stores the log's head and tree.
func (g *regrowth) end() error {
	if g.tree == nil {
		return nil
	}
	return errors.Join(g.txn.Set(keySeq(), number(nil, g.tree.size)), g.tree.save(g.txn))
}

// leaves restores those of records that were pruned; they come in their order.
func (g *regrowth) leaves(key, p []byte) error {
	if err := g.begin(); err != nil {
		return err
	}
	pruned, err := getNumber(g.txn, keyPruned())
	if err != nil {
		return err
	}
	first := tailNumber(key) * tileWidth
	if g.tree.size > first {
		return nil // the page is asked for again
	}
	if g.tree.size < first || first+uint64(len(p)/tlog.HashSize) > pruned {
		return invalidf("leaf %d of the log follows leaf %d, and up to %d they are of records that were pruned", first,
			g.tree.size, pruned)
	}
	for ; len(p) > 0; p = p[tlog.HashSize:] {
		g.tree.add(tlog.Hash(p))
	}
	return nil
}

// record puts a record of the log in its place; they come in their order.
func (g *regrowth) record(r *restorable) error {
	if err := g.begin(); err != nil {
		return err
	}
	seq := r.record.Seq
	if seq <= g.tree.size {
		return nil // the page is asked for again
	}
	if seq != g.tree.size+1 {
		return invalidf("record %d of the log follows record %d", seq, g.tree.size)
	}
	p := slices.Clone(r.stored)
	leaf, _, err := g.leafer.leaf(p)
	if err != nil {
		return invalidf("a record of the log: %v", err)
	}
	g.tree.add(leaf)
	return setRecord(g.txn, &r.record, p)
}

// boundMarks takes away what says that more was pruned than was ever there: it
// would hide what is recorded from now on.
func boundMarks(txn *badger.Txn) error {
	head, err := storedHead(txn)
	if err != nil {
		return err
	}
	pruned, err := getNumber(txn, keyPruned())
	if err != nil || pruned <= head.Size {
		return err
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceMark}})
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
	if there, err := get(g.txn, keyMark(at)); err != nil || there != nil {
		return err // the page is asked for again
	}
	if g.tree.size > 0 {
		return invalidf("the mark that records up to %d were pruned comes too late", at)
	}
	was, err := getNumber(g.txn, keyPruned())
	return errors.Join(err, g.txn.Set(keyMark(at), slices.Clone(p)), g.txn.Set(keyPruned(), number(nil, max(was, at))))
}
