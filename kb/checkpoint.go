package kb

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
)

// defaultEvery is how many records there are at most between two checkpoints.
const defaultEvery = 10_000

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
func (s *Store) Head(ctx context.Context) (Head, error) {
	head, err := ask(ctx, s, &headRequest{})
	if err != nil {
		return Head{}, fmt.Errorf("reading the head of the log: %w", err)
	}
	return *head, nil
}

// Room says why the store would write nothing now, whatever is asked of it: its disk
// is nearly full.
func (s *Store) Room() error { return roomLeft(s.layout.kb) }

// Checkpoint takes in journals and returns a checkpoint of the whole log, made
// now unless there is one of that size.
func (s *Store) Checkpoint(ctx context.Context) (Checkpoint, error) {
	_, err := s.Ingest(ctx)
	var c *Checkpoint
	if err == nil {
		c, err = ask(ctx, s, &sealRequest{})
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("making a checkpoint of the log: %w", err)
	}
	return *c, nil
}

// Checkpoints returns the checkpoints of the log that are larger than after, by
// size. It ends after the first error.
func (s *Store) Checkpoints(ctx context.Context, after uint64) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		q := &checkpointsRequest{After: after}
		for {
			r, err := ask(ctx, s, q)
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

func (*headRequest) op() opcode { return opHead }

func (*headRequest) do(_ context.Context, e *engine) (head *Head, err error) {
	head = new(Head)
	err = e.db.View(func(txn *badger.Txn) (err error) {
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

func (*checkpointsRequest) op() opcode { return opCheckpoints }

func (q *checkpointsRequest) do(_ context.Context, e *engine) (*checkpointsAnswer, error) {
	txn := e.db.NewTransaction(false)
	defer txn.Discard()
	return e.checkpointsOf(txn, q.After)
}

// checkpointsOf returns those larger than after, as many as fit.
func (e *engine) checkpointsOf(txn *badger.Txn, after uint64) (*checkpointsAnswer, error) {
	r, size := &checkpointsAnswer{}, 0
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceCheckpoint}})
	defer it.Close()
	for it.Seek(keyCheckpoint(after + 1)); it.Valid() && after+1 != 0; it.Next() {
		if r.More = len(r.Checkpoints) >= pageItems || size > pageBytes; r.More {
			return r, nil
		}
		c, err := e.checkpoint(it.Item())
		if err != nil {
			return r, err
		}
		r.Checkpoints = append(r.Checkpoints, c)
		size += len(c.Note) + 64
	}
	return r, nil
}

func (e *engine) checkpoint(item *badger.Item) (c Checkpoint, err error) {
	at := tailNumber(item.Key())
	if len(item.Key()) != 9 || item.ExpiresAt() != 0 {
		return c, damagedf("there is a checkpoint at no size (%q)", item.Key())
	}
	err = item.Value(func(p []byte) (err error) {
		c, err = decodeCheckpoint(e.codec, at, p)
		return err
	})
	if err != nil && !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return c, err
}

// decodeCheckpoint reads the checkpoint that is stored for a size.
func decodeCheckpoint(codec *audit.Codec, at uint64, p []byte) (c Checkpoint, err error) {
	if err := codec.Unmarshal(p, &c); err != nil || c.Head.Size != at || len(c.Note) == 0 || len(c.Note) > maxNote {
		return c, damagedf("the checkpoint of %d records makes no sense", at)
	}
	return c, nil
}

// A sealRequest asks for a checkpoint of the whole log.
type sealRequest struct{}

func (*sealRequest) op() opcode { return opSeal }

func (*sealRequest) do(ctx context.Context, e *engine) (*Checkpoint, error) {
	select {
	case e.ingesting <- struct{}{}:
		defer func() { <-e.ingesting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.quit:
		return nil, ErrClosed
	}
	if err := e.inspect(ctx); err != nil { // or what is signed now takes the place of what is gone
		return nil, err
	}
	var c Checkpoint
	err := e.update(func(txn *badger.Txn) error {
		head, err := storedHead(txn)
		if err != nil {
			return err
		}
		c, err = e.sealAt(txn, head)
		return err
	})
	return &c, err
}

// sealAt puts a checkpoint of head, which txn leaves behind, into the database.
// What is signed goes on from what was signed last: whoever has changed the tree
// behind the store's back gets no signature for it.
func (e *engine) sealAt(txn *badger.Txn, head Head) (Checkpoint, error) {
	if e.opt.Seal == nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrUnavailable, ErrNoSeal)
	}
	if there, err := get(txn, keyCheckpoint(head.Size)); err != nil || there != nil {
		c, bad := decodeCheckpoint(e.codec, head.Size, there)
		if bad == nil && c.Head != head {
			bad = damagedf("the log is not the one that its checkpoint of %d records was made of", head.Size)
		}
		return c, errors.Join(err, bad)
	}
	if err := e.extended(txn, head); err != nil {
		return Checkpoint{}, err
	}
	note, err := e.opt.Seal(head.Size, head.Root)
	if err == nil && (len(note) == 0 || len(note) > maxNote) {
		err = fmt.Errorf("a note of %d bytes", len(note))
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("signing a checkpoint: %w", err)
	}
	c := Checkpoint{head, note}
	p, err := e.codec.Marshal(c)
	if err != nil {
		return c, err
	}
	owed, err := get(txn, keyOwed())
	if err == nil && owed != nil {
		err = txn.Delete(keyOwed())
	}
	return c, errors.Join(err, txn.Set(keyCheckpoint(head.Size), p))
}

// unsealedEnd is the first record behind the last checkpoint that ends a run, though
// none was due and could not be made: a checkpoint entered the log with it, and was
// removed. 0: there is no such record.
func unsealedEnd(e *engine, txn *badger.Txn) (uint64, error) {
	owed, err := get(txn, keyOwed())
	if err != nil || owed != nil || e.opt.Seal == nil {
		return 0, err
	}
	last, err := e.lastCheckpoint(txn)
	if err != nil {
		return 0, nil //nolint:nilerr // one that makes no sense is not gone, and is told by who verifies
	}
	pruned, err := getNumber(txn, keyPruned())
	if err != nil {
		return 0, err
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceRecord}})
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
// if that one was made here, of what e.edge has grown from since.
func (e *engine) extended(txn *badger.Txn, head Head) error {
	if e.edge != nil && e.lastSealed.Size > 0 {
		return nil
	}
	last, err := e.lastCheckpoint(txn)
	if err != nil || last.Note == nil {
		return err
	}
	if last.Head.Size > head.Size {
		return damagedf("there is a checkpoint of %d records, and the log has %d", last.Head.Size, head.Size)
	}
	root, err := rootAt(txn, last.Head.Size)
	if err == nil && root != last.Head.Root {
		err = damagedf("the log is not the one that its checkpoint of %d records was made of", last.Head.Size)
	}
	return err
}

// lastCheckpoint is the largest; its note is nil when there is none.
func (e *engine) lastCheckpoint(txn *badger.Txn) (c Checkpoint, err error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceCheckpoint}, Reverse: true})
	defer it.Close()
	it.Seek(append(keyCheckpoint(^uint64(0)), 0xff))
	if !it.Valid() {
		return c, nil
	}
	return e.checkpoint(it.Item())
}
