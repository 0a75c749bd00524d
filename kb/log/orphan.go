package log

import (
	"context"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"runloop.dev/rlp/internal/record/audit"
)

// orphans gives an end to each run of which the log has the beginning and whose
// journal is gone: a journal whose name was not on the disk yet when the power
// was lost, or one that somebody removed. Nobody else ever would.
func (l *Log) orphans(ctx context.Context, done *Ingested) error {
	var runs []string
	err := l.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{spaceOpen}})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			runs = append(runs, string(it.Item().Key()[1:]))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	for _, run := range runs {
		if l.hasJournal(run) {
			continue
		}
		if err := l.endOrphan(ctx, run, done); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) endOrphan(ctx context.Context, run string, done *Ingested) error {
	was, err := l.journalState(run)
	if err != nil {
		return fmt.Errorf("%w: %w", errStoreWrite, err)
	}
	b := &intake{Log: l, ctx: ctx, run: run}
	defer func() { b.sealed(done) }()
	if !was.Done && !was.State.Ended {
		why := fmt.Sprintf("its journal is gone; what the run did after its first %d records is not in the log", was.State.RunSeq)
		head := was.State.Head
		head.RunID = run
		b.add(&audit.Record{
			Time: l.opt.Now().UTC(), Head: head, Kept: true, RunSeq: was.State.RunSeq + 1,
			Event: &audit.Event{
				Kind: audit.KindRunFailed, Severity: audit.Error, Outcome: reasonDamaged, ExitCode: 1, Reason: reasonDamaged,
				Message: why,
			},
		})
		done.Damaged = append(done.Damaged, fmt.Sprintf("run %s: %s", run, why))
	}
	was.State.Names, was.State.Last = nil, nil
	if err := b.flush(journalState{State: was.State, Done: true}); err != nil {
		return err
	}
	done.Records += b.taken
	done.Runs++
	return nil
}
