package log

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// A journalState is how far the log is with one journal.
type journalState = journal.Taken

// Reasons of the end record that the store gives a run which has none.
const (
	reasonKilled  = "killed"
	reasonDamaged = "journal_damaged"
)

var (
	// errStoreWrite says that the log, not the journal, is the trouble.
	errStoreWrite = errors.New("writing to the log")
	// errInterrupted says that time did not suffice for a journal.
	errInterrupted = errors.New("taking in a journal was interrupted")
	// errForeign says that a journal lies among those of another tenant: what it
	// holds is not for this log.
	errForeign = errors.New("journal of another tenant")
)

func (l *Log) journalState(run string) (journalState, error) {
	txn := l.db.NewTransaction(false)
	defer txn.Discard()
	var s journalState
	p, err := db.Get(txn, keyState(run))
	if err != nil || p == nil {
		return s, err
	}
	if err := l.codec.Unmarshal(p, &s); err != nil {
		return s, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	return s, nil
}

// hasJournal reports whether the journal of run may still be taken in.
func (l *Log) hasJournal(run string) bool {
	_, err := os.Lstat(filepath.Join(l.opt.Journal, run))
	return !errors.Is(err, fs.ErrNotExist)
}

// putAway deletes a journal whose records are durable in the log, or puts it
// aside when there is something wrong with it.
func (l *Log) putAway(f journal.File, damage error) error {
	if damage != nil {
		_, err := journal.Quarantine(l.opt.Journal, f.Run)
		return errors.Join(damage, err)
	}
	if l.young(f) {
		return nil
	}
	return journal.Remove(l.opt.Journal, f.Run)
}

// young reports whether a journal stays for whoever follows it.
func (l *Log) young(f journal.File) bool { return l.opt.Now().Sub(f.Time) < keepJournal }

// keepJournal is how long a journal stays after its last change, though all of
// it is in the log, so that whoever follows journals has time to see it.
const keepJournal = 2 * time.Second

// afterDone treats a journal that was finished with before.
func (l *Log) afterDone(f journal.File, r *journal.Reader, gone bool) error {
	if !gone {
		return fmt.Errorf("journal of run %s: someone writes to it after its end", f.Run)
	}
	if f.Bytes < r.State().Offset {
		return l.putAway(f, nil) // the power was lost before it was synced, and the log has all of it
	}
	_, err := r.Tail()
	return l.putAway(f, err)
}

// setState puts the state of a journal, whose stored form is p, in place.
func setState(txn *badger.Txn, run string, p []byte, done bool) error {
	open := txn.Delete(keyOpen(run))
	if !done {
		open = txn.Set(keyOpen(run), nil)
	}
	return errors.Join(open, txn.Set(keyState(run), p))
}

// setRecord puts a record, whose stored form is p, in place with what leads to it.
func setRecord(txn *badger.Txn, rec *audit.Record, p []byte) error {
	errs := []error{
		txn.Set(keyRecord(rec.Seq), p),
		txn.Set(keyRun(rec.Head.RunID, rec.RunSeq), db.Number(nil, rec.Seq)),
		txn.Set(keyAgent(rec.Head.Agent, rec.Seq), nil),
	}
	if !rec.Allowed() {
		errs = append(errs, txn.Set(keyOther(rec.Seq), nil))
	}
	return errors.Join(errs...)
}
