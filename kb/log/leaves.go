package log

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/mod/sumdb/tlog"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// leavesStep is how many records of an older store get their leaves within one
// transaction.
const leavesStep = 4096

// AddLeaves gives records that entered the log before it was a tree their
// leaves. It may be ended at any point and begun again: the head says how far
// it came. A record that is missing or cannot be read gets the leaf of the empty
// line, so that whoever verifies the log finds it, and what else is in the
// store can be used.
func (l *Log) AddLeaves() error {
	for {
		more := false
		var t *tree
		err := l.db.Update(func(txn *badger.Txn) error {
			last, err := db.GetNumber(txn, keySeq())
			if err != nil {
				return err
			}
			if t, err = l.currentTree(txn); err != nil {
				return err
			}
			for range leavesStep {
				if t.size >= last {
					return errors.Join(t.save(txn), txn.Set(keyOwed(), []byte{}))
				}
				p, err := db.Get(txn, keyRecord(t.size+1))
				if err != nil {
					return err
				}
				leaf, _, err := l.leafer.leaf(p)
				if err != nil {
					leaf = tlog.RecordHash(nil)
				}
				t.add(leaf)
			}
			more = true
			return t.save(txn)
		})
		if err != nil {
			return err
		}
		l.edge = t
		if !more {
			return l.sealLeaves(t.head())
		}
	}
}

// sealLeaves makes the first checkpoint of an older store. One that cannot be
// made is tried again with the next records.
func (l *Log) sealLeaves(head Head) error {
	if l.opt.Seal == nil || head.Size == 0 {
		return nil
	}
	err := l.db.Update(func(txn *badger.Txn) error {
		_, err := l.sealAt(txn, head)
		return err
	})
	l.owed = err != nil
	if errors.Is(err, wire.ErrDamaged) {
		return err
	}
	return nil
}
