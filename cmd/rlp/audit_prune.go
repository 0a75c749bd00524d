package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/auditlog"
)

type pruneFlags struct {
	before, keep string
	dryRun       bool
}

func auditPruneCommand(a *app) *cobra.Command {
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
			return auditlog.Open(c.Context(), a.reader(), func(ctx context.Context, l *auditlog.Log) error {
				p, err := l.PruneBefore(ctx, before, f.dryRun)
				if err != nil {
					return err
				}
				return printPruning(a, p)
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
			return t, usagef("--before takes a time such as 2026-01-02T15:04:05Z, not %q", f.before)
		}
		return t, nil
	}
	if _, err := time.Parse(time.RFC3339, f.keep); err == nil {
		return time.Time{}, usagef("--keep takes an age such as 90d or 24h, not %q; --before takes a time", f.keep)
	}
	ms, err := auditlog.Since(f.keep, now)
	if err != nil {
		return time.Time{}, usagef("--keep takes an age such as 90d or 24h, not %q", f.keep)
	}
	return time.UnixMilli(ms), nil
}

func printPruning(a *app, p *auditlog.Pruning) error {
	if a.json {
		return a.printJSON(p)
	}
	word := "removed"
	if p.DryRun {
		word = "would be removed"
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s; %d left, %d leaves in the tree\n", counted(p.Removed, "record"), word, p.Left,
		p.Size)
	return err
}
