package values

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/kb/wire"
)

// reader returns a view that nobody else uses.
func (v *Values) reader() *reader {
	at := v.reads.commits.Load() // before the view is made: it may be newer, never older
	if r := v.reads.idle.Swap(nil); r != nil {
		if r.at == at {
			return r
		}
		r.txn.Discard()
	}
	return &reader{v.db.NewTransaction(false), at}
}

// release keeps a view for the next, if it is still good.
func (v *Values) release(r *reader) {
	if r.at != v.reads.commits.Load() || !v.reads.idle.CompareAndSwap(nil, r) {
		r.txn.Discard()
	}
}

// content reads a value and what decides how it may be shown, nothing else.
func (v *Values) content(domain, key string) (c Content, err error) {
	if err := v.serves(); err != nil {
		return c, err
	}
	if err := checkKey(key); err != nil {
		return c, err
	}
	r := v.reader()
	defer v.release(r)
	item, err := r.txn.Get(keyData(domain, key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return c, absent(domain, key)
	}
	if err == nil {
		err = item.Value(func(p []byte) error {
			_, head, value, err := splitData(p)
			if err != nil {
				return err
			}
			c.Bytes, c.Plain = append(make([]byte, 0, len(value)), value...), isPlain(p)
			c.Trusted, err = v.isTrusted(p, head)
			return err
		})
	}
	if err != nil {
		return Content{}, fmt.Errorf("%w: reading %s/%s: %w", wire.ErrDamaged, domain, key, err)
	}
	return c, nil
}
