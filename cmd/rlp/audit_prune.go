package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/kb"
)

type pruneFlags struct {
	before, keep string
	dryRun       bool
}

func (a *app) auditPruneCommand() *cobra.Command {
	var f pruneFlags
	c := &cobra.Command{
		Use: "prune (--before TIME | --keep AGE)", Short: "Remove old records, and leave a log that still verifies",
		Args: cobra.NoArgs,
		Long: `Removes the records from the beginning of the log that are older, up to the first that
is not, or that is of a run which has not ended. What each of them was the hash of stays
in the tree, and what was removed is on record, signed: checkpoints and proofs of before
hold, and the log verifies. Export first what must be kept.`,
		Example: `  rlp audit prune --keep 90d --dry-run
  rlp audit prune --before 2026-01-01T00:00:00Z`,
		RunE: func(c *cobra.Command, _ []string) error {
			before, err := f.time(time.Now())
			if err != nil {
				return err
			}
			return a.withLog(c.Context(), func(ctx context.Context, l *openedLog) error {
				return a.prune(ctx, l, before, f.dryRun)
			})
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.before, "before", "", "remove what is older than this `TIME` (2026-01-02T15:04:05Z)")
	fs.StringVar(&f.keep, "keep", "", "remove what is older than this `AGE` (90d, 24h)")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	return c
}

// time is the moment before which records go. A command that removes evidence
// guesses at nothing.
func (f *pruneFlags) time(now time.Time) (time.Time, error) {
	if (f.before == "") == (f.keep == "") {
		return time.Time{}, usagef("rlp audit prune takes --before TIME or --keep AGE, one of the two")
	}
	if f.before != "" {
		t, err := time.Parse(time.RFC3339, f.before)
		if err != nil {
			return t, usagef("--before %s: a time such as 2026-01-02T15:04:05Z", f.before)
		}
		return t, nil
	}
	if _, err := time.Parse(time.RFC3339, f.keep); err == nil {
		return time.Time{}, usagef("--keep %s: an age such as 90d or 24h; a time is --before", f.keep)
	}
	ms, err := parseSince(f.keep, now)
	if err != nil {
		return time.Time{}, usagef("--keep %s: an age such as 90d or 24h", f.keep)
	}
	return time.UnixMilli(ms), nil
}

// A pruning is what rlp audit prune prints.
type pruning struct {
	Before  time.Time `json:"before"`
	DryRun  bool      `json:"dry_run"`
	Removed int       `json:"removed"` // records, now or, in a dry run, if it were done
	UpTo    uint64    `json:"up_to"`   // records up to this one are gone
	Left    uint64    `json:"left"`    // records that are there
	Size    uint64    `json:"size"`    // leaves of the tree, which stay
}

func (a *app) prune(ctx context.Context, l *openedLog, before time.Time, dryRun bool) error {
	if l.intake != nil {
		return l.intake
	}
	if err := l.keyed(ctx); err != nil {
		return err
	}
	head, err := l.Head(ctx)
	if err != nil {
		return err
	}
	p := pruning{Before: before.UTC(), DryRun: dryRun, Size: head.Size}
	if dryRun {
		p.Removed, p.UpTo, err = l.wouldPrune(ctx, before)
	} else {
		var mark kb.Mark
		mark, p.Removed, err = l.Prune(ctx, before)
		p.UpTo = mark.Pruned
	}
	if err != nil {
		return err
	}
	p.Left = head.Size - p.UpTo
	if a.json {
		return a.printJSON(p)
	}
	word := "removed"
	if dryRun {
		word = "would be removed"
	}
	fmt.Fprintf(a.stdout, "%s %s; %d left, %d leaves in the tree\n", counted(p.Removed, "record"), word, p.Left, p.Size)
	return nil
}

// keyed refuses a log whose newest checkpoint another key signed: what is
// removed would be vouched for by nobody who vouched for it before.
func (l *openedLog) keyed(ctx context.Context) error {
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
	if err := signs(l.home, *newest); err != nil {
		return inputErr(fmt.Errorf("nothing is removed, as the key that signed the log is not here: bring %s from where "+
			"the log was made: %w", evidence.KeyFile, err))
	}
	return nil
}

// wouldPrune counts what [kb.Store.Prune] would remove, and finds the last of it.
func (l *openedLog) wouldPrune(ctx context.Context, before time.Time) (n int, upTo uint64, err error) {
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
