package log

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// maxNote bounds the note of a checkpoint, in bytes.
const maxNote = 1 << 20

// A Checkpoint is a head of the log that was signed when it had that size.
type Checkpoint struct {
	Head Head   `cbor:"1,keyasint"`
	Note []byte `cbor:"2,keyasint"` // as [Options.Seal] made it
}

// ErrNoSeal says that there is no key to sign checkpoints with.
var ErrNoSeal = errors.New("the log's checkpoints are signed by nobody")

// Head returns the size of the log and the root of its tree.
func (s *Client) Head(ctx context.Context) (Head, error) {
	head, err := wire.Ask(ctx, s.asker, &headRequest{})
	if err != nil {
		return Head{}, fmt.Errorf("reading the head of the log: %w", err)
	}
	return *head, nil
}

// Checkpoints returns the checkpoints of the log that are larger than after, by
// size. It ends after the first error.
func (s *Client) Checkpoints(ctx context.Context, after uint64) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		q := &checkpointsRequest{After: after}
		for {
			r, err := wire.Ask(ctx, s.asker, q)
			if err != nil {
				yield(Checkpoint{}, fmt.Errorf("reading the checkpoints of the log: %w", err))
				return
			}
			for _, c := range r.Checkpoints {
				if !yield(c, nil) {
					return
				}
				q.After = c.Head.Size
			}
			if !r.More || len(r.Checkpoints) == 0 {
				return
			}
		}
	}
}

// A headRequest asks for the head of the log.
type headRequest struct{}

func (*headRequest) Op() wire.Opcode { return wire.OpHead }

func (*headRequest) Do(_ context.Context, l *Log) (head *Head, err error) {
	head = new(Head)
	err = l.db.View(func(txn *badger.Txn) (err error) {
		*head, err = storedHead(txn)
		return err
	})
	return head, err
}

// A checkpointsRequest asks for checkpoints that are larger than After.
type checkpointsRequest struct {
	After uint64 `cbor:"1,keyasint,omitempty"`
}

// A checkpointsAnswer is as many as fit; More says that there are others.
type checkpointsAnswer struct {
	Checkpoints []Checkpoint `cbor:"1,keyasint,omitempty"`
	More        bool         `cbor:"2,keyasint,omitempty"`
}

func (*checkpointsRequest) Op() wire.Opcode { return wire.OpCheckpoints }

func (q *checkpointsRequest) Do(_ context.Context, l *Log) (*checkpointsAnswer, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	return l.checkpointsOf(txn, q.After)
}

// checkpointsOf returns those larger than after, as many as fit.
func (l *Log) checkpointsOf(txn *badger.Txn, after uint64) (*checkpointsAnswer, error) {
	r, size := &checkpointsAnswer{}, 0
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceCheckpoint}})
	defer it.Close()
	for it.Seek(keyCheckpoint(after + 1)); it.Valid() && after+1 != 0; it.Next() {
		if r.More = len(r.Checkpoints) >= db.PageItems || size > db.PageBytes; r.More {
			return r, nil
		}
		c, err := l.checkpoint(it.Item())
		if err != nil {
			return r, err
		}
		r.Checkpoints = append(r.Checkpoints, c)
		size += len(c.Note) + 64
	}
	return r, nil
}

func (l *Log) checkpoint(item *badger.Item) (c Checkpoint, err error) {
	at := db.TailNumber(item.Key())
	if len(item.Key()) != 9 || item.ExpiresAt() != 0 {
		return c, wire.Damagedf("there is a checkpoint at no size (%q)", item.Key())
	}
	err = item.Value(func(p []byte) (err error) {
		c, err = decodeCheckpoint(l.codec, at, p)
		return err
	})
	if err != nil && !errors.Is(err, wire.ErrDamaged) {
		err = fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	return c, err
}

// decodeCheckpoint reads the checkpoint that is stored for a size.
func decodeCheckpoint(codec *audit.Codec, at uint64, p []byte) (c Checkpoint, err error) {
	if err := codec.Unmarshal(p, &c); err != nil || c.Head.Size != at || len(c.Note) == 0 || len(c.Note) > maxNote {
		return c, wire.Damagedf("the checkpoint of %d records makes no sense", at)
	}
	return c, nil
}

// sealAt puts a checkpoint of head, which txn leaves behind, into the database.
// What is signed goes on from what was signed last: whoever has changed the tree
// behind the store's back gets no signature for it.
func (l *Log) sealAt(txn *badger.Txn, head Head) (Checkpoint, error) {
	if l.opt.Seal == nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", wire.ErrUnavailable, ErrNoSeal)
	}
	if there, err := db.Get(txn, keyCheckpoint(head.Size)); err != nil || there != nil {
		c, bad := decodeCheckpoint(l.codec, head.Size, there)
		if bad == nil && c.Head != head {
			bad = wire.Damagedf("the log is not the one that its checkpoint of %d records was made of", head.Size)
		}
		return c, errors.Join(err, bad)
	}
	if err := l.extended(txn, head); err != nil {
		return Checkpoint{}, err
	}
	note, err := l.opt.Seal(head.Size, head.Root)
	if err == nil && (len(note) == 0 || len(note) > maxNote) {
		err = fmt.Errorf("a note of %d bytes", len(note))
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("signing a checkpoint: %w", err)
	}
	c := Checkpoint{head, note}
	p, err := l.codec.Marshal(c)
	if err != nil {
		return c, err
	}
	owed, err := db.Get(txn, keyOwed())
	if err == nil && owed != nil {
		err = txn.Delete(keyOwed())
	}
	return c, errors.Join(err, txn.Set(keyCheckpoint(head.Size), p))
}

// unsealedEnd is the first record behind the last checkpoint that ends a run, though
// none was due and could not be made: a checkpoint entered the log with it, and was
// removed. 0: there is no such record.
func unsealedEnd(l *Log, txn *badger.Txn) (uint64, error) {
	owed, err := db.Get(txn, keyOwed())
	if err != nil || owed != nil || l.opt.Seal == nil {
		return 0, err
	}
	last, err := l.lastCheckpoint(txn)
	if err != nil {
		return 0, nil //nolint:nilerr // one that makes no sense is not gone, and is told by who verifies
	}
	pruned, err := db.GetNumber(txn, keyPruned())
	if err != nil {
		return 0, err
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceRecord}})
	defer it.Close()
	var g audit.Glance
	for it.Seek(keyRecord(max(last.Head.Size, pruned) + 1)); it.Valid(); it.Next() {
		if err := it.Item().Value(g.Read); err != nil {
			return 0, nil //nolint:nilerr // the same
		}
		if !g.Decided && audit.Ends(string(g.Kind)) {
			return g.Seq, nil
		}
	}
	return 0, nil
}

// extended checks that the log of head goes on from its last checkpoint. It does
// if that one was made here, of what l.edge has grown from since.
func (l *Log) extended(txn *badger.Txn, head Head) error {
	if l.edge != nil && l.lastSealed.Size > 0 {
		return nil
	}
	last, err := l.lastCheckpoint(txn)
	if err != nil || last.Note == nil {
		return err
	}
	if last.Head.Size > head.Size {
		return wire.Damagedf("there is a checkpoint of %d records, and the log has %d", last.Head.Size, head.Size)
	}
	root, err := rootAt(txn, last.Head.Size)
	if err == nil && root != last.Head.Root {
		err = wire.Damagedf("the log is not the one that its checkpoint of %d records was made of", last.Head.Size)
	}
	return err
}

// lastCheckpoint is the largest; its note is nil when there is none.
func (l *Log) lastCheckpoint(txn *badger.Txn) (c Checkpoint, err error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{SpaceCheckpoint}, Reverse: true})
	defer it.Close()
	it.Seek(append(keyCheckpoint(^uint64(0)), 0xff))
	if !it.Valid() {
		return c, nil
	}
	return l.checkpoint(it.Item())
}
