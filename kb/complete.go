package kb

import (
	"context"
	"fmt"

	"runloop.dev/rlp/kb/journal"
)

// complete gives journals what group files have of them, before any is taken
// for ended. A run that the log is done with needs no journal.
func (e *engine) complete(ctx context.Context, done *Ingested) error {
	damage, err := journal.Replay(e.journal, func(run string) (bool, error) {
		s, err := e.journalState(run)
		return s.Done, err
	})
	for _, d := range damage {
		done.Damaged = append(done.Damaged, d.Error())
		if err := e.recordFinding(ctx, d.Error(), nil); err != nil {
			return fmt.Errorf("taking in journals: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("taking in journals: %w", err)
	}
	return nil
}
