package kb

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

// A snapshot is the store of one moment that a backup reads from, and where it is.
type snapshot struct {
	txn   *badger.Txn
	space int    // index into backedUp
	from  []byte // the next key there; nil: the first
}

// Discard gives it up.
func (s *snapshot) Discard() { s.txn.Discard() }

// backedUp are the spaces that a backup holds; all others follow from them.
// Of the log's tree there are the leaves of what was pruned.
var backedUp = [...]byte{
	values.SpaceData, values.SpaceChain, log.SpaceMark, log.SpaceTile, log.SpaceRecord, log.SpaceCheckpoint,
	log.SpaceState,
}

// A backupRequest asks for a page of a snapshot.
type backupRequest struct {
	Snapshot uint64 `cbor:"1,keyasint,omitempty"` // 0: a new one
	Page     uint64 `cbor:"2,keyasint,omitempty"`
}

// A backupAnswer is the page; More says that there is another one.
type backupAnswer struct {
	Snapshot uint64 `cbor:"1,keyasint"`
	Pairs    []pair `cbor:"2,keyasint,omitempty"`
	More     bool   `cbor:"3,keyasint,omitempty"`
}

func (*backupRequest) Op() wire.Opcode { return wire.OpBackup }

func (q *backupRequest) Do(ctx context.Context, e *engine) (*backupAnswer, error) {
	snap, err := e.snapshot(q)
	if err != nil {
		return nil, err
	}
	r := &backupAnswer{Snapshot: q.Snapshot}
	if err = snap.read(ctx, r); err != nil || !r.More {
		snap.Discard()
	} else {
		e.snapshots.Put(q.Snapshot, q.Page, snap)
	}
	return r, err
}

// snapshot is the one that q asks for, or a new one. Nobody else has it then.
func (e *engine) snapshot(q *backupRequest) (snap *snapshot, err error) {
	if q.Snapshot == 0 {
		if q.Snapshot, err = e.snapshots.Begin("backups"); err != nil {
			return nil, err
		}
		return &snapshot{txn: e.db.NewTransaction(false)}, nil
	}
	v, there := e.snapshots.Take(q.Snapshot, q.Page)
	if !there {
		return nil, fmt.Errorf("%w: what was backed up is out of reach; begin again", wire.ErrUnavailable)
	}
	return v.(*snapshot), nil
}

// read puts the next page into r.
func (s *snapshot) read(ctx context.Context, r *backupAnswer) error {
	size := 0
	for ; s.space < len(backedUp); s.space++ {
		full, err := s.readSpace(ctx, r, &size)
		if err != nil {
			return err
		}
		if full {
			r.More = true
			return nil
		}
		s.from = nil
	}
	return nil
}

func (s *snapshot) readSpace(ctx context.Context, r *backupAnswer, size *int) (full bool, err error) {
	space := backedUp[s.space]
	it := s.txn.NewIterator(badger.IteratorOptions{Prefix: []byte{space}, PrefetchValues: true, PrefetchSize: 100})
	defer it.Close()
	of, err := log.BackupOf(s.txn)
	if err != nil {
		return false, err
	}
	if s.from == nil {
		s.from = of.From(space)
	}
	for it.Seek(s.from); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		p := pair{Key: it.Item().KeyCopy(nil)}
		if len(r.Pairs) >= db.PageItems || *size > db.PageBytes {
			s.from = p.Key
			return true, nil
		}
		stored, err := it.Item().ValueCopy([]byte{})
		if err != nil {
			return false, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
		}
		if p.Value = of.Value(p.Key, stored); p.Value == nil {
			return false, nil
		}
		r.Pairs = append(r.Pairs, p)
		*size += len(p.Key) + len(p.Value)
	}
	return false, nil
}
