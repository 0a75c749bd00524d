package kb

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

const (
	maxSnapshots = 4
	keepSnapshot = time.Minute // that nobody reads from
)

// snapshots are the views of one moment that backups read from.
type snapshots struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*snapshot
}

// A snapshot is one of them, and where its reader is.
type snapshot struct {
	txn   *badger.Txn
	space int    // index into backedUp
	from  []byte // the next key there; nil: the first
	page  uint64
	used  time.Time
}

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
	s := &e.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for id, snap := range s.open {
		if now.Sub(snap.used) > keepSnapshot {
			s.end(id)
		}
	}
	if q.Snapshot == 0 {
		if len(s.open) >= maxSnapshots {
			return nil, fmt.Errorf("%w: %d backups are under way", wire.ErrUnavailable, len(s.open))
		}
		if s.open == nil {
			s.open = map[uint64]*snapshot{}
		}
		s.last++
		q.Snapshot = s.last
		s.open[q.Snapshot] = &snapshot{txn: e.db.NewTransaction(false)}
	}
	snap := s.open[q.Snapshot]
	if snap == nil || snap.page != q.Page {
		return nil, fmt.Errorf("%w: what was backed up is out of reach; begin again", wire.ErrUnavailable)
	}
	snap.used = now
	snap.page++
	r := &backupAnswer{Snapshot: q.Snapshot}
	err := snap.read(ctx, r)
	if err != nil || !r.More {
		s.end(q.Snapshot)
	}
	return r, err
}

// end gives a snapshot up; the caller holds s.mu.
func (s *snapshots) end(id uint64) {
	s.open[id].txn.Discard()
	delete(s.open, id)
}

// endAll gives all snapshots up.
func (s *snapshots) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.open {
		s.end(id)
	}
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
