package auditlog

import (
	"context"
	"fmt"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/compose"
)

// A Pruning is what was removed of a log, or would be.
type Pruning struct {
	Before  time.Time `json:"before"`
	DryRun  bool      `json:"dry_run"`
	Removed int       `json:"removed"` // records, now or, in a dry run, if it were done
	UpTo    uint64    `json:"up_to"`   // records up to this one are gone
	Left    uint64    `json:"left"`    // records that are there
	Size    uint64    `json:"size"`    // leaves of the tree, which stay
}

// keyed refuses a log whose newest checkpoint another key signed: what is
// removed would be vouched for by nobody who vouched for it before.
func (l *Log) keyed(ctx context.Context) error {
	var newest *kb.Checkpoint
	for c, err := range l.Checkpoints(ctx, 0) {
		if err != nil {
			return err
		}
		newest = &c
	}
	if newest == nil {
		return nil
	}
	if err := Signs(l.home, *newest); err != nil {
		return compose.InputErr(fmt.Errorf("nothing is removed, as the key that signed the log is not here: bring %s from where "+
			"the log was made: %w", evidence.KeyFile, err))
	}
	return nil
}

// wouldPrune counts what [kb.Store.Prune] would remove, and finds the last of it.
func (l *Log) wouldPrune(ctx context.Context, before time.Time) (n int, upTo uint64, err error) {
	ended := map[string]bool{}
	for g, err := range l.Glances(ctx, kb.Filter{}) {
		if err != nil {
			return 0, 0, err
		}
		if run := string(g.Run); !g.Decided && audit.Ends(string(g.Kind)) || !ended[run] {
			ended[run] = !g.Decided && audit.Ends(string(g.Kind))
		}
	}
	marks, err := l.Marks(ctx)
	if err != nil {
		return 0, 0, err
	}
	if len(marks) > 0 {
		upTo = marks[len(marks)-1].Pruned
	}
	for g, err := range l.Glances(ctx, kb.Filter{}) {
		if err != nil {
			return 0, 0, err
		}
		if g.UnixMS >= before.UnixMilli() || !ended[string(g.Run)] {
			break
		}
		n, upTo = n+1, g.Seq
	}
	return n, upTo, nil
}

// PruneBefore removes old records, or says what would be removed.
func (l *Log) PruneBefore(ctx context.Context, before time.Time, dryRun bool) (*Pruning, error) {
	if l.intake != nil {
		return nil, l.intake
	}
	if err := l.keyed(ctx); err != nil {
		return nil, err
	}
	head, err := l.Head(ctx)
	if err != nil {
		return nil, err
	}
	p := &Pruning{Before: before.UTC(), DryRun: dryRun, Size: head.Size}
	if dryRun {
		p.Removed, p.UpTo, err = l.wouldPrune(ctx, before)
	} else {
		var mark kb.Mark
		mark, p.Removed, err = l.Prune(ctx, before)
		p.UpTo = mark.Pruned
	}
	if err != nil {
		return nil, err
	}
	p.Left = head.Size - p.UpTo
	return p, nil
}
