package kb

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
)

// reads keeps one view of the database for the next who reads a value: to make
// one costs as much as to read. It is that of the newest commit or is not used,
// so that whoever was told of a change sees it.
type reads struct {
	commits atomic.Uint64
	idle    atomic.Pointer[reader]
}

type reader struct {
	txn *badger.Txn
	at  uint64 // commits when it was made
}

// reader returns a view that nobody else uses.
func (e *engine) reader() *reader {
	at := e.reads.commits.Load() // before the view is made: it may be newer, never older
	if r := e.reads.idle.Swap(nil); r != nil {
		if r.at == at {
			return r
		}
		r.txn.Discard()
	}
	return &reader{e.db.NewTransaction(false), at}
}

// release keeps a view for the next, if it is still good.
func (e *engine) release(r *reader) {
	if r.at != e.reads.commits.Load() || !e.reads.idle.CompareAndSwap(nil, r) {
		r.txn.Discard()
	}
}

// changed says that values have changed; who is told of it is told later.
func (r *reads) changed() {
	r.commits.Add(1)
	if old := r.idle.Swap(nil); old != nil {
		old.txn.Discard()
	}
}

// content reads a value and what decides how it may be shown, nothing else.
func (e *engine) content(domain, key string) (c Content, err error) {
	if err := e.mayServe(); err != nil {
		return c, err
	}
	if err := checkKey(key); err != nil {
		return c, err
	}
	r := e.reader()
	defer e.release(r)
	item, err := r.txn.Get(keyData(domain, key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return c, absent(domain, key)
	}
	if err == nil {
		err = item.Value(func(p []byte) error {
			_, head, v, err := splitData(p)
			if err != nil {
				return err
			}
			c.Bytes, c.Plain = append(make([]byte, 0, len(v)), v...), isPlain(p)
			c.Trusted, err = e.isTrusted(p, head)
			return err
		})
	}
	if err != nil {
		return Content{}, fmt.Errorf("%w: reading %s/%s: %w", ErrDamaged, domain, key, err)
	}
	return c, nil
}

// local is the engine, counted in using, if this process owns the store; else nil.
func (s *Store) local() *engine {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.backend.(*owned)
	if !ok || s.closed {
		return nil
	}
	s.using.Add(1)
	return o.engine
}
