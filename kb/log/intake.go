package log

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
)

// An intake carries the records of journals into the log, a transaction at a
// time: as many journals as fit into it, each with its state after them.
type intake struct {
	*Log
	ctx    context.Context
	run    string // whose journal is being read
	batch  []*audit.Record
	states []queuedState
	over   []finished // to be put away once that is committed
	size   int
	taken  int
	before struct{ items, size int } // of the batch, without the journal that is being read
	drop   [][]byte                  // keys that go with the batch
	mark   []byte                    // a key that comes with it
	heap   db.HeapWatch

	unsealed error // why the last batch has no checkpoint, though one was due
	fresh    Head  // its checkpoint
}

// A queuedState is the state of a journal, in its stored form.
type queuedState struct {
	run  string
	p    []byte
	done bool
}

// A finished journal was read to its end.
type finished struct {
	file   journal.File
	damage error
}

// What one transaction carries, of what badger takes at once.
const (
	intakeBytes = 400 << 10 // of records, and one more record
	intakeItems = 1000
)

// mostStates bounds the journals that one transaction finishes with.
const mostStates = 256

// halfFull reports whether the next journal is not to be begun in this transaction.
func (b *intake) halfFull() bool {
	return len(b.batch) >= intakeItems/2 || b.size >= intakeBytes/2 || len(b.states) >= mostStates
}

// queue has the state of the journal that was read committed with its records.
func (b *intake) queue(s journalState) error {
	p, err := s.Encode(b.codec, b.run)
	if err != nil {
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	b.states = append(b.states, queuedState{b.run, p, s.Done})
	b.size += len(p)
	return nil
}

// reading says that what is added from here on is of the journal of run.
func (b *intake) reading(run string) {
	b.run, b.before.items, b.before.size = run, len(b.batch), b.size
}

// undo takes the records of that journal, whose state was not queued, out again.
func (b *intake) undo() { b.batch, b.size = b.batch[:b.before.items], b.before.size }

// settle commits what there is, and puts the journals away that are finished with.
func (b *intake) settle(done *Ingested) error {
	if len(b.states) == 0 {
		return nil
	}
	if err := b.store(); err != nil {
		return err
	}
	done.Records += b.taken
	b.taken = 0
	b.sealed(done)
	over := b.over
	b.over = b.over[:0]
	for _, f := range over {
		done.Runs++
		if err := b.putAway(f.file, f.damage); err != nil {
			if err := b.damaged(b.ctx, f.file.Run, err, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// all takes in everything that the journal holds now.
func (b *intake) all(r *journal.Reader, done *Ingested) error {
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Head.Tenant != b.opt.Tenant {
			return fmt.Errorf("%w: run %s is one of %q", errForeign, b.run, rec.Head.Tenant)
		}
		if !rec.Kept {
			continue
		}
		b.add(rec)
		if len(b.batch) >= intakeItems || b.size >= intakeBytes {
			if err := b.queue(journalState{State: r.State()}); err != nil {
				return err
			}
			if err := b.settle(done); err != nil {
				return err
			}
			if b.ctx.Err() != nil {
				return errInterrupted
			}
		}
	}
}

func (b *intake) add(rec *audit.Record) {
	b.batch = append(b.batch, rec)
	b.size += 400
	if d := rec.Decision; d != nil {
		b.size += len(d.Target)
		return
	}
	if p, err := b.codec.Marshal(rec.Event); err == nil {
		b.size += len(p) // a large one makes its transaction the last that it is added to
	}
}

// finish judges the end of a journal that will not grow any more, and gives
// its run an end record if it has none. found is what kept the reader from
// going on. It returns what is wrong with the journal; a last record that its
// writer died in is not.
func (b *intake) finish(r *journal.Reader, found error) error {
	torn, damage := r.Tail()
	s := r.State()
	// A journal gets its name when its head is in it: one without is damaged.
	if found != nil && (damage != nil || s.Frame == 0) {
		damage = found
	}
	if s.Ended {
		return damage
	}
	end := &audit.Event{
		Kind: audit.KindRunFailed, Severity: audit.Error, Outcome: reasonKilled, ExitCode: 1,
		Reason: reasonKilled,
	}
	switch {
	case damage != nil:
		end.Outcome, end.Reason, end.Message = reasonDamaged, reasonDamaged, damage.Error()
	case s.RunSeq == 0:
		end.Message = "the process ended before it had recorded the beginning of the run: nothing was decided in it"
	case torn:
		end.Message = "the process ended while it wrote a record, which is not kept"
	default:
		end.Message = "the process ended without a last record"
	}
	head := s.Head
	head.RunID = b.run
	b.add(&audit.Record{Time: b.opt.Now().UTC(), Head: head, Kept: true, RunSeq: s.RunSeq + 1, Event: end})
	return damage
}

// flush commits the batch and the state together.
func (b *intake) flush(s journalState) error {
	if err := b.queue(s); err != nil {
		return err
	}
	return b.store()
}

// store commits the batch and the states together.
func (b *intake) store() error {
	if err := b.db.Room(); err != nil { // they are safe where they are
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if len(b.batch) > 0 {
		if err := b.inspect(b.ctx); err != nil {
			return fmt.Errorf("%w: %w", errStoreWrite, err)
		}
	}
	txn := b.db.NewTransaction(true)
	defer txn.Discard()
	t, err := b.write(txn)
	if err != nil {
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if t != nil {
		b.grown(t)
	}
	b.taken += len(b.batch)
	b.heap.Tidy(b.db.DB)
	clear(b.batch)
	b.batch, b.states, b.size = b.batch[:0], b.states[:0], 0
	b.before.items, b.before.size = 0, 0
	return nil
}

// write puts the batch and the states into txn, and returns the log's tree as it
// is then; nil: as it was.
func (b *intake) write(txn *badger.Txn) (t *tree, err error) {
	for _, k := range b.drop {
		if err := txn.Delete(k); err != nil {
			return nil, err
		}
	}
	if b.mark != nil {
		if err := txn.Set(b.mark, []byte{}); err != nil {
			return nil, err
		}
	}
	if len(b.batch) > 0 {
		if t, err = b.appendRecords(txn); err != nil {
			return nil, err
		}
	}
	for _, s := range b.states {
		if err := setState(txn, s.run, s.p, s.done); err != nil {
			return nil, err
		}
	}
	return t, nil
}
