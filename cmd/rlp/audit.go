package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/runs"
)

func auditCommand(a *app) *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Read what agents did", Args: cobra.NoArgs, RunE: showHelp}
	c.AddCommand(auditVerifyCommand(a), auditProofCommand(a), auditCheckpointCommand(a), auditKeyCommand(a),
		auditPruneCommand(a))
	c.AddCommand(auditListCommand(a), auditShowCommand(a), auditTailCommand(a), auditScanCommand(a),
		auditExportCommand(a))
	for _, sub := range c.Commands() {
		refuseEmpty(sub)
	}
	return c
}

func auditListCommand(a *app) *cobra.Command {
	var f auditlog.Filter
	var tree bool
	c := &cobra.Command{
		Use: "list", Short: "Print records, oldest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if tree && f.Run == "" {
				return usagef("--tree needs the run at its root: --run ID")
			}
			return a.withStore(c.Context(), f, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
				if tree {
					return printRecords(a, auditlog.Tree(ctx, s, filter), filter)
				}
				return printFound(ctx, a, s, filter)
			})
		},
	}
	filterFlags(&f, c.Flags())
	c.Flags().BoolVar(&tree, "tree", false, "with --run: the runs that it launched, too, and those that they did")
	return c
}

func auditShowCommand(a *app) *cobra.Command {
	var f auditlog.Filter
	c := &cobra.Command{
		Use: "show RUN", Short: "Print everything of one run", Args: exactly("a RUN"),
		Example: `  rlp audit show 6d0c3f0a
  rlp audit show 6d0c3f0a --decision deny --family fs`,
		RunE: func(c *cobra.Command, args []string) error {
			f.Run = args[0]
			return a.withStore(c.Context(), f, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
				if err := auditlog.Known(ctx, s, filter.Run); err != nil {
					return err
				}
				return printFound(ctx, a, s, filter)
			})
		},
	}
	narrowerFlags(&f, c.Flags())
	return c
}

func auditTailCommand(a *app) *cobra.Command {
	var f auditlog.Filter
	c := &cobra.Command{
		Use: "tail", Short: "Print records as they are made, until interrupted", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := f.At(time.Now())
			if err != nil {
				return err
			}
			if a.madeUp != "" { // another folder is looked into, where nothing will ever run
				return inputErr(fmt.Errorf("nothing has run in %s yet; launch something first", a.unused))
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			const whole = 36
			if f.Run != "" && len(f.Run) < whole { // as all others take it
				err = withRun(c.Context(), a, f.Run, func(_ context.Context, _ *kb.Store, id string) error {
					filter.Run = id
					return nil
				})
				if err != nil {
					return err
				}
			}
			err = printEach(a, kb.Tail(c.Context(), kb.Options{Home: h.Dir(), Tenant: h.Tenant()}, filter))
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	filterFlags(&f, c.Flags())
	return c
}

// printFound prints the records that filter asks for: with --json the very lines
// that the log's tree is made of.
func printFound(ctx context.Context, a *app, s *kb.Store, filter kb.Filter) error {
	if !a.json {
		return printRecords(a, runs.Records(ctx, s, filter), filter)
	}
	out := bufio.NewWriterSize(a.stdout, 64<<10)
	for line, err := range s.Lines(ctx, filter) {
		if err != nil {
			return errors.Join(out.Flush(), err)
		}
		_, err = out.Write(line)
		if err == nil {
			err = out.WriteByte('\n')
		}
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// printRecords prints the records that a filter asked for: on a terminal through a
// pager, in lines of a page.
func printRecords(a *app, records iter.Seq2[audit.Record, error], of kb.Filter) (err error) {
	n := 0
	all := func(yield func(audit.Record, error) bool) {
		for r, err := range records {
			if n++; !yield(r, err) {
				return
			}
		}
	}
	if a.json || !isTerminal(a.stdout) {
		err = printEach(a, all)
	} else {
		err = paged(a, func() error { return printEach(a, all) })
	}
	text := "no records yet"
	if of != (kb.Filter{}) {
		text = "no records match; rlp audit list without flags prints all"
	}
	none(a, n, text)
	return err
}

func printEach(a *app, records iter.Seq2[audit.Record, error]) error {
	for r, err := range records {
		if err != nil {
			return err
		}
		line, err := recordLine(a, &r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.stdout, line); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

func recordLine(a *app, r *audit.Record) (string, error) {
	if a.json {
		line, err := r.AppendJSON(nil)
		return string(line), err
	}
	width := 0
	if isTerminal(a.stdout) {
		width = pageWidth
	}
	return runs.RecordLine(r, width, a.color(a.stdout)), nil
}

// withRun opens the store and finds the run that text names.
func withRun(ctx context.Context, a *app, text string, do func(context.Context, *kb.Store, string) error) error {
	return a.withStore(ctx, auditlog.Filter{Run: text}, func(ctx context.Context, s *kb.Store, f kb.Filter) error {
		return do(ctx, s, f.Run)
	})
}
