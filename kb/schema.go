package kb

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
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
	var index []byte
	err := e.db.View(func(txn *badger.Txn) (err error) {
		if at, err = schemaOf(txn); err != nil {
			return err
		}
		index, err = get(txn, keyIndex())
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
		if err := e.fromSchema1(); err != nil {
			return fmt.Errorf("migrating the store from schema 1: %w", err)
		}
	}
	if at != 0 && at < 4 {
		if err := e.addLeaves(); err != nil {
			return fmt.Errorf("making the tree of the audit log: %w", err)
		}
	}
	if at != schema {
		if err := e.update(func(txn *badger.Txn) error { return txn.Set(keySchema(), number(nil, schema)) }); err != nil {
			return fmt.Errorf("migrating the store: %w", err)
		}
	}
	if string(index) == e.opt.indexVersion() {
		return nil
	}
	if err := e.reindex(); err != nil {
		return fmt.Errorf("making the index of the store: %w", err)
	}
	return nil
}

// schemaOf is the version of the layout; 0: there is nothing yet.
func schemaOf(txn *badger.Txn) (uint64, error) {
	at, err := getNumber(txn, keySchema())
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

// eachKey calls visit with a copy of each key of a space, in steps of one
// transaction each, so that what visit does may be committed between them.
func (e *engine) eachKey(space byte, step int, visit func(txn *badger.Txn, keys [][]byte) error) error {
	from := []byte{space}
	for {
		var keys [][]byte
		err := e.db.View(func(txn *badger.Txn) error {
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
		if err := inParts(e.db, keys, visit); err != nil {
			return err
		}
		from = append(keys[len(keys)-1], 0)
	}
}

// inParts does visit within one transaction, or several when one cannot hold it.
func inParts[T any](db *badger.DB, items []T, visit func(txn *badger.Txn, items []T) error) error {
	txn := db.NewTransaction(true)
	defer txn.Discard()
	err := visit(txn, items)
	if err == nil {
		err = txn.Commit()
	}
	if errors.Is(err, badger.ErrTxnTooBig) && len(items) > 1 {
		txn.Discard()
		half := len(items) / 2
		if err := inParts(db, items[:half], visit); err != nil {
			return err
		}
		return inParts(db, items[half:], visit)
	}
	return err
}

// migrateStep is how many values one transaction takes at most.
const migrateStep = 64

// fromSchema1 joins meta and value, and begins the chain of each value with
// what is known of it.
func (e *engine) fromSchema1() error {
	return e.eachKey(spaceMeta, migrateStep, func(txn *badger.Txn, keys [][]byte) error {
		for _, k := range keys {
			domain, key, ok := splitNamed(k)
			if !ok {
				return fmt.Errorf("%w: a key without a domain", ErrDamaged)
			}
			if err := e.joinSchema1(txn, domain, string(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *engine) joinSchema1(txn *badger.Txn, domain, key string) error {
	old := append(named(spaceData1, domain), key...)
	value, err := get(txn, old)
	if err != nil || value == nil {
		return err // nil: it was joined before the last attempt ended
	}
	m, err := e.meta(txn, domain, key)
	if err != nil {
		return err
	}
	if m.Size != len(value) {
		return fmt.Errorf("%w: the value of %s/%s is not the one that was stored", ErrDamaged, domain, key)
	}
	if m.Origin.Label == "" {
		m.Origin.Label = Untrusted
	}
	m.Sum = sumOf(domain, key, m.Revision, value)
	p, err := e.codec.Marshal(m)
	if err != nil {
		return err
	}
	step := Step{Revision: m.Revision, Size: m.Size, Origin: m.Origin}
	return errors.Join(
		txn.Set(keyMeta(domain, key), p),
		txn.Set(keyData(domain, key), joinData(m.Revision, p, value, false, m.Origin.Label == Trusted)),
		txn.Delete(old),
		e.addStep(txn, domain, key, step),
	)
}

// reindex makes both indexes and the tallies from the values.
func (e *engine) reindex() error {
	if err := e.update(func(txn *badger.Txn) error { return txn.Delete(keyIndex()) }); err != nil {
		return err
	}
	if err := e.drop(spaceDoc, spaceIndex, spaceTally); err != nil {
		return err
	}
	err := e.eachKey(spaceData, migrateStep, func(txn *badger.Txn, keys [][]byte) error {
		for _, k := range keys {
			if err := e.reindexKey(txn, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.update(func(txn *badger.Txn) error { return txn.Set(keyIndex(), []byte(e.opt.indexVersion())) })
}

func (e *engine) reindexKey(txn *badger.Txn, k []byte) error {
	domain, key, ok := splitNamed(k)
	if !ok {
		return fmt.Errorf("%w: a key without a domain", ErrDamaged)
	}
	p, err := get(txn, k)
	if err != nil {
		return err
	}
	revision, head, value, err := splitData(p)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", domain, key, err)
	}
	d, err := e.document(domain, value)
	if err != nil {
		return err
	}
	t, err := readTally(txn, domain)
	if err != nil {
		return err
	}
	t.add(d, len(value))
	trusted, err := e.isTrusted(p, head)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", domain, key, err)
	}
	if d.plain != isPlain(p) {
		err = txn.Set(k, joinData(revision, head, value, d.plain, trusted))
	}
	return errors.Join(err, e.addDoc(txn, domain, string(key), revision, d), txn.Set(keyTally(domain), t.encode()))
}

// drop empties spaces. It may be ended at any point: who calls it has said in
// the database what is to be done again.
func (e *engine) drop(spaces ...byte) error {
	for _, s := range spaces {
		var empty bool
		err := e.db.View(func(txn *badger.Txn) error {
			empty = isEmpty(txn, s)
			return nil
		})
		if err == nil && !empty {
			err = e.db.DropPrefix([]byte{s})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
