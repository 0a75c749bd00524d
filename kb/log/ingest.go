package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// ingestStep is how long one request takes in journals, so that it is answered
// soon; the asker asks again while something is left.
const ingestStep = 2 * time.Second

// ingest takes what the journals hold into the log. What is wrong with one
// journal is reported and does not keep the others out.
func (l *Log) ingest(ctx context.Context) (Ingested, error) {
	var done Ingested
	select {
	case l.ingesting <- struct{}{}:
		defer func() { <-l.ingesting }()
	case <-ctx.Done():
		done.Left = 1 // at least: somebody else is still at it
		return done, nil
	case <-l.quit:
		return done, wire.ErrClosed
	}
	if err := l.db.Room(); err != nil { // or a journal that cannot be opened would be told as damaged
		return done, err
	}
	if err := l.begun(ctx); err != nil {
		return done, fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if ok, err := l.journalKey(ctx, &done); err != nil {
		return done, fmt.Errorf("%w: %w", errStoreWrite, err)
	} else if !ok {
		return done, nil
	}
	if err := l.complete(ctx, &done); err != nil {
		return done, err
	}
	files, err := journal.List(l.opt.Journal)
	if err != nil {
		return done, err
	}
	b := &intake{Log: l, ctx: ctx}
	for i, f := range files {
		if i > 0 && ctx.Err() != nil {
			done.Left = len(files) - i
			return done, b.settle(&done)
		}
		if err := l.ingestFile(b, f, &done); err != nil {
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
			if err := l.damaged(ctx, f.Run, err, &done); err != nil {
				return done, err
			}
		}
	}
	if err := b.settle(&done); err != nil {
		return done, err
	}
	if len(files) > 0 {
		err = journal.Sweep(l.opt.Journal, l.opt.Now())
	}
	return done, errors.Join(err, l.orphans(ctx, &done))
}

// ingestFile reads one journal into b, which is committed when there is enough in
// it. An error is about that journal alone, unless it is errStoreWrite.
func (l *Log) ingestFile(b *intake, f journal.File, done *Ingested) error {
	was, err := l.journalState(f.Run)
	if err != nil {
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if was.Done && l.young(f) {
		return nil // its end is judged when it is put away, and not at each run's end until then
	}
	r, err := journal.OpenReader(l.opt.Journal, f.Run, was.State)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Lstat(filepath.Join(l.opt.Journal, f.Run)); errors.Is(missing, fs.ErrNotExist) {
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
		return l.afterDone(f, r, gone)
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
			_, err := journal.Quarantine(l.opt.Journal, f.Run)
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
