package kb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"runloop.dev/rlp/kb/journal"
)

// keepJournal is how long a journal stays after its last change, though all of
// it is in the log, so that whoever follows journals has time to see it.
const keepJournal = 2 * time.Second

// ingestStep is how long one request takes in journals, so that it is answered
// soon; the asker asks again while something is left.
const ingestStep = 2 * time.Second

// Reasons of the end record that the store gives a run which has none.
const (
	reasonKilled  = "killed"
	reasonDamaged = "journal_damaged"
)

// A journalState is how far the log is with one journal.
type journalState = journal.Taken

// ingest takes what the journals hold into the log. What is wrong with one
// journal is reported and does not keep the others out.
func (e *engine) ingest(ctx context.Context) (Ingested, error) {
	var done Ingested
	select {
	case e.ingesting <- struct{}{}:
		defer func() { <-e.ingesting }()
	case <-ctx.Done():
		done.Left = 1 // at least: somebody else is still at it
		return done, nil
	case <-e.quit:
		return done, ErrClosed
	}
	if err := e.room(); err != nil { // or a journal that cannot be opened would be told as damaged
		return done, err
	}
	if err := e.begun(ctx); err != nil {
		return done, fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if ok, err := e.journalKey(ctx, &done); err != nil {
		return done, fmt.Errorf("%w: %w", errStoreWrite, err)
	} else if !ok {
		return done, nil
	}
	if err := e.complete(ctx, &done); err != nil {
		return done, err
	}
	files, err := journal.List(e.journal)
	if err != nil {
		return done, err
	}
	b := &intake{engine: e, ctx: ctx}
	for i, f := range files {
		if i > 0 && ctx.Err() != nil {
			done.Left = len(files) - i
			return done, b.settle(&done)
		}
		if err := e.ingestFile(b, f, &done); err != nil {
			if errors.Is(err, errInterrupted) {
				done.Left = len(files) - i
				return done, b.settle(&done)
			}
			if errors.Is(err, errStoreWrite) {
				return done, err
			}
			if err := b.settle(&done); err != nil {
				return done, err
			}
			if err := e.damaged(ctx, f.Run, err, &done); err != nil {
				return done, err
			}
		}
	}
	if err := b.settle(&done); err != nil {
		return done, err
	}
	if len(files) > 0 {
		err = journal.Sweep(e.journal, e.opt.Now())
	}
	return done, errors.Join(err, e.orphans(ctx, &done))
}

var (
	// errStoreWrite says that the log, not the journal, is the trouble.
	errStoreWrite = errors.New("writing to the log")
	// errInterrupted says that time did not suffice for a journal.
	errInterrupted = errors.New("taking in a journal was interrupted")
	// errForeign says that a journal lies among those of another tenant: what it
	// holds is not for this log.
	errForeign = errors.New("journal of another tenant")
)

// ingestFile reads one journal into b, which is committed when there is enough in
// it. An error is about that journal alone, unless it is errStoreWrite.
func (e *engine) ingestFile(b *intake, f journal.File, done *Ingested) error {
	was, err := e.journalState(f.Run)
	if err != nil {
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if was.Done && e.young(f) {
		return nil // its end is judged when it is put away, and not at each run's end until then
	}
	r, err := journal.OpenReader(e.journal, f.Run, was.State)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Lstat(filepath.Join(e.journal, f.Run)); errors.Is(missing, fs.ErrNotExist) {
			return nil // someone has put it away since it was listed
		}
	}
	if err != nil {
		return err
	}
	defer r.Close()
	// Asked first: a writer that is gone now has added nothing since.
	gone, err := r.WriterGone()
	if err != nil {
		return fmt.Errorf("asking for the writer of %s: %w", f.Run, err)
	}
	if was.Done {
		return e.afterDone(f, r, gone)
	}
	if b.halfFull() {
		if err := b.settle(done); err != nil {
			return err
		}
	}
	b.reading(f.Run)
	damage := b.all(r, done)
	if damage != nil && !errors.Is(damage, journal.ErrDamaged) {
		b.undo() // what was read comes again
		if errors.Is(damage, errForeign) && gone {
			_, err := journal.Quarantine(e.journal, f.Run)
			return errors.Join(damage, err)
		}
		return damage
	}
	state := r.State()
	if !gone {
		if state.Frame == was.State.Frame {
			return damage // nothing is new
		}
		return errors.Join(b.queue(journalState{State: state}), damage)
	}
	damage = b.finish(r, damage)
	state.Names, state.Last = nil, nil // nobody will go on from here
	b.over = append(b.over, finished{f, damage})
	return b.queue(journalState{State: state, Done: true})
}

// afterDone treats a journal that was finished with before.
func (e *engine) afterDone(f journal.File, r *journal.Reader, gone bool) error {
	if !gone {
		return fmt.Errorf("journal of run %s: someone writes to it after its end", f.Run)
	}
	if f.Bytes < r.State().Offset {
		return e.putAway(f, nil) // the power was lost before it was synced, and the log has all of it
	}
	_, err := r.Tail()
	return e.putAway(f, err)
}

// putAway deletes a journal whose records are durable in the log, or puts it
// aside when there is something wrong with it.
func (e *engine) putAway(f journal.File, damage error) error {
	if damage != nil {
		_, err := journal.Quarantine(e.journal, f.Run)
		return errors.Join(damage, err)
	}
	if e.young(f) {
		return nil
	}
	return journal.Remove(e.journal, f.Run)
}

// young reports whether a journal stays for whoever follows it.
func (e *engine) young(f journal.File) bool { return e.opt.Now().Sub(f.Time) < keepJournal }

func (e *engine) journalState(run string) (journalState, error) {
	txn := e.db.NewTransaction(false)
	defer txn.Discard()
	var s journalState
	p, err := get(txn, keyState(run))
	if err != nil || p == nil {
		return s, err
	}
	if err := e.codec.Unmarshal(p, &s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return s, nil
}
