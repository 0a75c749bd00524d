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

// bytes reads a value and whether it is plain, and nothing else.
func (e *engine) bytes(domain, key string) (value []byte, plain bool, err error) {
	if err := e.mayServe(); err != nil {
		return nil, false, err
	}
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	r := e.reader()
	defer e.release(r)
	item, err := r.txn.Get(keyData(domain, key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, false, absent(domain, key)
	}
	if err == nil {
		err = item.Value(func(p []byte) error {
			_, _, v, err := splitData(p)
			value, plain = append(make([]byte, 0, len(v)), v...), isPlain(p)
			return err
		})
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: reading %s/%s: %w", ErrDamaged, domain, key, err)
	}
	return value, plain, nil
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
