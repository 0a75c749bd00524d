package db

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// EachKey calls visit with a copy of each key of a space, in steps of one
// transaction each, so that what visit does may be committed between them.
func (d *Database) EachKey(space byte, step int, visit func(txn *badger.Txn, keys [][]byte) error) error {
	from := []byte{space}
	for {
		var keys [][]byte
		err := d.View(func(txn *badger.Txn) error {
			it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
			defer it.Close()
			for it.Seek(from); it.Valid() && len(keys) < step; it.Next() {
				keys = append(keys, it.Item().KeyCopy(nil))
			}
			return nil
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := InParts(d, keys, visit); err != nil {
			return err
		}
		from = append(keys[len(keys)-1], 0)
	}
}

// InParts does visit within one transaction, or several when one cannot hold it.
func InParts[T any](d *Database, items []T, visit func(txn *badger.Txn, items []T) error) error {
	txn := d.NewTransaction(true)
	defer txn.Discard()
	err := visit(txn, items)
	if err == nil {
		err = txn.Commit()
	}
	if errors.Is(err, badger.ErrTxnTooBig) && len(items) > 1 {
		txn.Discard()
		half := len(items) / 2
		if err := InParts(d, items[:half], visit); err != nil {
			return err
		}
		return InParts(d, items[half:], visit)
	}
	return err
}

// Drop empties spaces. It may be ended at any point: who calls it has said in
// the database what is to be done again.
func (d *Database) Drop(spaces ...byte) error {
	for _, s := range spaces {
		var empty bool
		err := d.View(func(txn *badger.Txn) error {
			empty = IsEmpty(txn, s)
			return nil
		})
		if err == nil && !empty {
			err = d.DropPrefix([]byte{s})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// IsEmpty reports whether a space has no keys.
func IsEmpty(txn *badger.Txn, space byte) bool {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}})
	defer it.Close()
	it.Rewind()
	return !it.Valid()
}
