package log

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// appendRecords gives records the numbers that follow and puts them, what leads
// to them, their leaves and, when one is due, a checkpoint into the database, all
// within txn. The tree that it returns is the log's once txn is committed.
func (b *intake) appendRecords(txn *badger.Txn) (*tree, error) {
	seq, err := db.GetNumber(txn, keySeq())
	if err != nil {
		return nil, err
	}
	t, err := b.currentTree(txn)
	if err != nil {
		return nil, err
	}
	if t.size != seq {
		return nil, wire.Damagedf("the log has %d records and its tree %d leaves", seq, t.size)
	}
	due := b.owed
	for _, rec := range b.batch {
		rec.Seq = t.size + 1
		p, err := b.codec.Encode(rec)
		if err != nil {
			return nil, err
		}
		leaf, _, err := b.leafer.leaf(p)
		if err != nil {
			return nil, err
		}
		if err := setRecord(txn, rec, p); err != nil {
			return nil, err
		}
		t.add(leaf)
		due = due || rec.Event != nil && audit.Ends(rec.Event.Kind)
	}
	every := uint64(b.opt.CheckpointEvery)
	due = due || t.size/every != seq/every
	if err := errors.Join(txn.Set(keySeq(), db.Number(nil, t.size)), t.save(txn)); err != nil || !due {
		return t, err
	}
	return t, b.sealBatch(txn, t.head())
}

// sealBatch makes a checkpoint with the records that it is of. One that cannot
// be made does not keep them out: it is reported, and tried again with the next.
func (b *intake) sealBatch(txn *badger.Txn, head Head) error {
	if b.opt.Seal == nil {
		return txn.Set(keyOwed(), []byte{})
	}
	c, err := b.sealAt(txn, head)
	b.unsealed, b.fresh = err, c.Head
	if errors.Is(err, badger.ErrTxnTooBig) {
		return err
	}
	if err != nil {
		return txn.Set(keyOwed(), []byte{})
	}
	return nil
}

// grown takes over the tree of a batch that was committed.
func (b *intake) grown(t *tree) {
	b.edge, b.owed = t, b.unsealed != nil
	if b.fresh.Size > 0 && b.unsealed == nil {
		b.lastSealed = b.fresh
	}
	b.fresh = Head{}
}

// sealed says what became of the checkpoint of a batch that was committed.
func (b *intake) sealed(done *Ingested) {
	if b.unsealed != nil {
		done.Damaged = append(done.Damaged, fmt.Sprintf("the log has no checkpoint of its %d records: %v", b.edge.size,
			b.unsealed))
	}
	b.unsealed = nil
}

// currentTree is the tree of the log, with room for more. It checks that what is
// stored of it makes the root that is stored.
func (l *Log) currentTree(txn *badger.Txn) (*tree, error) {
	head, err := storedHead(txn)
	if err != nil {
		return nil, err
	}
	if t := l.edge; t != nil && t.size == head.Size && t.root() == tlog.Hash(head.Root) {
		return t.clone(), nil
	}
	t, err := loadTree(txn, head.Size)
	if err == nil && t.head() != head {
		err = wire.Damagedf("the tiles of the log's tree do not make its root")
	}
	return t, err
}
