package kb

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/kb/db"
)

// schema is the version of the database's layout that this program writes.
//
//	1  meta and value apart, no index, no chain; it does not say so itself
//	2  no value has the bit that says that it is trusted
//	3  the log has no tree
//	4  as keys.go has it
const schema = 4

// ErrSchema says that the store was written by a newer version of rlp.
var ErrSchema = errors.New("store was written by a newer version of rlp")

// migrate brings the database to the layout of this program, and the indexes
// to the rules of who opens it. It may be ended at any point and begun again.
func (e *engine) migrate() error {
	var at uint64
	var indexed bool
	err := e.db.View(func(txn *badger.Txn) (err error) {
		if at, err = schemaOf(txn); err != nil {
			return err
		}
		indexed, err = e.values.IsIndexed(txn)
		return err
	})
	if err != nil {
		return err
	}
	if at > schema {
		return fmt.Errorf("%w: its schema is %d, and this version knows %d; use the newer one, or its rlp kb backup",
			ErrSchema, at, schema)
	}
	if at == 1 {
		if err := e.values.FromSchema1(); err != nil {
			return fmt.Errorf("migrating the store from schema 1: %w", err)
		}
	}
	if at != 0 && at < 4 {
		if err := e.log.AddLeaves(); err != nil {
			return fmt.Errorf("making the tree of the audit log: %w", err)
		}
	}
	if at != schema {
		if err := e.db.Update(func(txn *badger.Txn) error {
			return txn.Set(keySchema(), db.Number(nil, schema))
		}); err != nil {
			return fmt.Errorf("migrating the store: %w", err)
		}
	}
	if indexed {
		return nil
	}
	if err := e.values.Reindex(); err != nil {
		return fmt.Errorf("making the index of the store: %w", err)
	}
	return nil
}

// schemaOf is the version of the layout; 0: there is nothing yet.
func schemaOf(txn *badger.Txn) (uint64, error) {
	at, err := db.GetNumber(txn, keySchema())
	if err != nil || at != 0 {
		return at, err
	}
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	it.Rewind()
	if it.Valid() {
		return 1, nil
	}
	return 0, nil
}

// The keys of the store itself.
//
//	m schema                  the version of all this
//	m restore                 a restore is under way
func keySchema() []byte  { return []byte("mschema") }
func keyRestore() []byte { return []byte("mrestore") }
