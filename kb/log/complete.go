package log

import (
	"context"
	"fmt"

	"runloop.dev/rlp/kb/journal"
)

// complete gives journals what group files have of them, before any is taken
// for ended. A run that the log is done with needs no journal.
func (l *Log) complete(ctx context.Context, done *Ingested) error {
	damage, err := journal.Replay(l.opt.Journal, func(run string) (bool, error) {
		s, err := l.journalState(run)
		return s.Done, err
	})
	for _, d := range damage {
		done.Damaged = append(done.Damaged, d.Error())
		if err := l.recordFinding(ctx, d.Error(), nil); err != nil {
			return fmt.Errorf("taking in journals: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("taking in journals: %w", err)
	}
	return nil
}
