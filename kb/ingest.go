package kb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/audit"
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
type journalState struct {
	State journal.State `cbor:"1,keyasint"`
	Done  bool          `cbor:"2,keyasint,omitempty"` // nothing more will come from it
}

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
	if err := e.begun(ctx); err != nil {
		return done, fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if err := e.complete(ctx, &done); err != nil {
		return done, err
	}
	files, err := journal.List(e.journal)
	if err != nil {
		return done, err
	}
	for i, f := range files {
		if i > 0 && ctx.Err() != nil {
			done.Left = len(files) - i
			return done, nil
		}
		if err := e.ingestFile(ctx, f, &done); err != nil {
			if errors.Is(err, errInterrupted) {
				done.Left = len(files) - i
				return done, nil
			}
			if errors.Is(err, errStoreWrite) {
				return done, err
			}
			if err := e.damaged(ctx, f.Run, err, &done); err != nil {
				return done, err
			}
		}
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

// ingestFile takes in one journal. An error is about that journal alone,
// unless it is errStoreWrite.
func (e *engine) ingestFile(ctx context.Context, f journal.File, done *Ingested) error {
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
	b := &intake{engine: e, ctx: ctx, run: f.Run}
	defer func() {
		done.Records += b.taken
		b.sealed(done)
	}()
	damage := b.all(r)
	if errors.Is(damage, errForeign) && gone {
		_, err := journal.Quarantine(e.journal, f.Run)
		return errors.Join(damage, err)
	}
	if damage != nil && !errors.Is(damage, journal.ErrDamaged) {
		return damage
	}
	state := r.State()
	if gone {
		damage = b.finish(r, damage)
		state.Names, state.Last = nil, nil // nobody will go on from here
	}
	if err := b.flush(journalState{state, gone}); err != nil || !gone {
		return errors.Join(err, damage)
	}
	done.Runs++
	return e.putAway(f, damage)
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

// An intake carries the records of one journal into the log, a transaction at
// a time, each with the state of the journal after it.
type intake struct {
	*engine
	ctx   context.Context
	run   string
	batch []*audit.Record
	size  int
	taken int
	drop  [][]byte // keys that go with the batch
	mark  []byte   // a key that comes with it

	unsealed error // why the last batch has no checkpoint, though one was due
	fresh    Head  // its checkpoint
}

// all takes in everything that the journal holds now.
func (b *intake) all(r *journal.Reader) error {
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
			if err := b.flush(journalState{State: r.State()}); err != nil {
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
	end := &audit.Event{Kind: audit.KindRunFailed, Severity: audit.Error, Outcome: reasonKilled, ExitCode: 1, Reason: reasonKilled}
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
	if err := b.room(); err != nil { // they are safe where they are
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	if len(b.batch) > 0 {
		if err := b.inspect(b.ctx); err != nil {
			return fmt.Errorf("%w: %w", errStoreWrite, err)
		}
	}
	txn := b.db.NewTransaction(true)
	defer txn.Discard()
	t, err := b.write(txn, s)
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
	b.batch, b.size = b.batch[:0], 0
	return nil
}

// write puts the batch and the state into txn, and returns the log's tree as it
// is then; nil: as it was.
func (b *intake) write(txn *badger.Txn, s journalState) (t *tree, err error) {
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
	p, err := b.codec.Marshal(s)
	if err != nil {
		return nil, err
	}
	return t, setState(txn, b.run, p, s.Done)
}

// setState puts the state of a journal, whose stored form is p, in place.
func setState(txn *badger.Txn, run string, p []byte, done bool) error {
	open := txn.Delete(keyOpen(run))
	if !done {
		open = txn.Set(keyOpen(run), nil)
	}
	return errors.Join(open, txn.Set(keyState(run), p))
}

// setRecord puts a record of run, whose stored form is p, in place with what leads to it.
func setRecord(txn *badger.Txn, run string, rec *audit.Record, p []byte) error {
	errs := []error{
		txn.Set(keyRecord(rec.Seq), p),
		txn.Set(keyRun(run, rec.RunSeq), number(nil, rec.Seq)),
		txn.Set(keyAgent(rec.Head.Agent, rec.Seq), nil),
	}
	if !rec.Allowed() {
		errs = append(errs, txn.Set(keyOther(rec.Seq), nil))
	}
	return errors.Join(errs...)
}
