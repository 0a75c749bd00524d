package values

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// migrateStep is how many values one transaction takes at most.
const migrateStep = 64

// FromSchema1 joins meta and value, and begins the chain of each value with
// what is known of it.
func (v *Values) FromSchema1() error {
	return v.db.EachKey(spaceMeta, migrateStep, func(txn *badger.Txn, keys [][]byte) error {
		for _, k := range keys {
			domain, key, ok := db.SplitNamed(k)
			if !ok {
				return fmt.Errorf("%w: a key without a domain", wire.ErrDamaged)
			}
			if err := v.joinSchema1(txn, domain, string(key)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (v *Values) joinSchema1(txn *badger.Txn, domain, key string) error {
	old := append(db.Named(spaceData1, domain), key...)
	value, err := db.Get(txn, old)
	if err != nil || value == nil {
		return err // nil: it was joined before the last attempt ended
	}
	m, err := v.meta(txn, domain, key)
	if err != nil {
		return err
	}
	if m.Size != len(value) {
		return fmt.Errorf("%w: the value of %s/%s is not the one that was stored", wire.ErrDamaged, domain, key)
	}
	if m.Origin.Label == "" {
		m.Origin.Label = Untrusted
	}
	m.Sum = sumOf(domain, key, m.Revision, value)
	p, err := v.codec.Marshal(m)
	if err != nil {
		return err
	}
	step := Step{Revision: m.Revision, Size: m.Size, Origin: m.Origin}
	return errors.Join(
		txn.Set(keyMeta(domain, key), p),
		txn.Set(keyData(domain, key), joinData(m.Revision, p, value, false, m.Origin.Label == Trusted)),
		txn.Delete(old),
		v.addStep(txn, domain, key, step),
	)
}

// Reindex makes both indexes and the tallies from the values.
func (v *Values) Reindex() error {
	if err := v.db.Update(func(txn *badger.Txn) error { return txn.Delete(keyIndex()) }); err != nil {
		return err
	}
	if err := v.db.Drop(spaceDoc, spaceIndex, spaceTally); err != nil {
		return err
	}
	err := v.db.EachKey(SpaceData, migrateStep, func(txn *badger.Txn, keys [][]byte) error {
		for _, k := range keys {
			if err := v.reindexKey(txn, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.db.Update(v.SetIndexed)
}

// IsIndexed reports whether the indexes are made by the rules of who opens the store.
func (v *Values) IsIndexed(txn *badger.Txn) (bool, error) {
	by, err := db.Get(txn, keyIndex())
	return string(by) == v.opt.IndexVersion(), err
}

// SetIndexed notes that they are.
func (v *Values) SetIndexed(txn *badger.Txn) error {
	return txn.Set(keyIndex(), []byte(v.opt.IndexVersion()))
}

func (v *Values) reindexKey(txn *badger.Txn, k []byte) error {
	domain, key, ok := db.SplitNamed(k)
	if !ok {
		return fmt.Errorf("%w: a key without a domain", wire.ErrDamaged)
	}
	p, err := db.Get(txn, k)
	if err != nil {
		return err
	}
	revision, head, value, err := splitData(p)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", domain, key, err)
	}
	d, err := v.document(domain, value)
	if err != nil {
		return err
	}
	t, err := readTally(txn, domain)
	if err != nil {
		return err
	}
	t.add(d, len(value))
	trusted, err := v.isTrusted(p, head)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", domain, key, err)
	}
	if d.plain != isPlain(p) {
		err = txn.Set(k, joinData(revision, head, value, d.plain, trusted))
	}
	return errors.Join(err, v.addDoc(txn, domain, string(key), revision, d), txn.Set(keyTally(domain), t.encode()))
}
