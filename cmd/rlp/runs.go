package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/agents"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/auditlog"
	"runloop.dev/rlp/launcher/runs"
)

func runsCommand(a *app) *cobra.Command {
	list := runsListCommand(a)
	c := &cobra.Command{
		Use: "runs", Short: "List runs, show one, wait for it, cancel it, compare two", Args: cobra.NoArgs, RunE: list.RunE,
		Long: `Runs prints one line a run, the newest last: its id, its agent, how it ended, how
many calls were allowed and denied, how long it took and when it began.

A RUN is the id of a run, or the beginning or the end of one: every command takes
what any of them prints.`,
		Example: "  rlp runs\n  rlp runs show 6d0c3f0a\n  rlp runs diff 6d0c3f0a 51b2e9d4",
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list,
		&cobra.Command{
			Use: "show RUN", Short: "Print a run, what it was denied, and the command that explains it", Args: exactly("a RUN"),
			RunE: func(c *cobra.Command, args []string) error {
				return withRun(c.Context(), a, args[0], func(ctx context.Context, s *kb.Store, id string) error {
					return showRun(ctx, a, s, id)
				})
			},
		},
		&cobra.Command{
			Use: "wait RUN", Short: "Wait until a run has ended, and exit as it did", Args: exactly("a RUN"),
			RunE: func(c *cobra.Command, args []string) error { return waitRun(c.Context(), a, args[0]) },
		},
		&cobra.Command{
			Use: "cancel RUN", Short: "Cancel a run of rlp serve", Args: exactly("a RUN"),
			RunE: func(c *cobra.Command, args []string) error { return cancelRun(c.Context(), a, args[0]) },
		},
		&cobra.Command{
			Use: "diff RUN RUN", Short: "Compare two runs: how they ended and what each was answered",
			Args: exactly("a RUN", "another RUN"),
			RunE: func(c *cobra.Command, args []string) error { return diffRuns(c.Context(), a, args[0], args[1]) },
		},
	)
	return c
}

func runsListCommand(a *app) *cobra.Command {
	const usual = 20
	var agent string
	limit := usual
	c := &cobra.Command{
		Use: "list", Short: "Print one line a run, the newest last", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit %d: a whole number from 0 on", limit)
			}
			return a.withStore(c.Context(), auditlog.Filter{}, func(ctx context.Context, s *kb.Store, _ kb.Filter) error {
				list, err := runs.List(ctx, s, agent, limit, time.Now())
				if err != nil || a.json {
					return orJSON(a, err, map[string]any{"runs": list})
				}
				none(a, len(list), "no runs yet")
				fmt.Fprintf(a.stdout, runRow, "RUN", "AGENT", "OUTCOME", "ALLOWED", "DENIED", "TOOK", "BEGAN")
				for i := range list {
					printRun(a, &list[i])
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&agent, "agent", "", "only runs of the agent `NAME`")
	c.Flags().IntVar(&limit, "limit", usual, "only the last `N`; 0: all")
	return c
}

const runRow = "%-8s  %-24s  %-12s  %8s  %7s  %9s  %s\n"

func printRun(a *app, l *runs.Line) {
	allowed, denied := fmt.Sprint(l.Allowed), fmt.Sprint(l.Denied)
	if !l.Ended() {
		allowed, denied = "-", "-"
	}
	fmt.Fprintf(a.stdout, runRow, runs.Short(l.RunID), printable(l.Agent), printable(l.Outcome), allowed,
		denied, runs.Took(l.WallMS), l.Began.Local().Format("2006-01-02 15:04:05"))
}

func showRun(ctx context.Context, a *app, s *kb.Store, id string) error {
	line, err := runs.One(ctx, s, id, time.Now())
	if err != nil {
		return err
	}
	denials, empty, err := runs.Denials(ctx, s, id)
	if err != nil || a.json {
		return orJSON(a, err, struct {
			runs.Line
			Denials []runs.Denial `json:"denials"`
		}{line, denials})
	}
	for _, text := range runs.Show(&line, denials, empty, askedOf(a, line.Agent, line.BundleDigest, ""), pageWidth) {
		fmt.Fprintln(a.stdout, fitted(a.stdout, text))
	}
	return nil
}

func waitRun(ctx context.Context, a *app, text string) error {
	line, err := runs.Wait(ctx, a.reader(), text, time.Now)
	switch {
	case err != nil:
		return err
	case a.json:
		return ending(line.ExitCode, a.printJSON(line))
	}
	printRun(a, &line)
	return ending(line.ExitCode, nil)
}

func cancelRun(ctx context.Context, a *app, text string) error {
	return withRun(ctx, a, text, func(ctx context.Context, s *kb.Store, id string) error {
		line, err := runs.One(ctx, s, id, time.Now())
		switch {
		case err != nil:
			return err
		case line.Ended():
			return inputErr(fmt.Errorf("run %s has ended: %s", id, line.Outcome))
		}
		c, err := a.service(remoteFlags{})
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Cancel(ctx, id); err != nil {
			return remoteErr(ctx, fmt.Errorf("run %s is under way, and rlp serve does not have it; interrupt the rlp launch "+
				"that began it (Ctrl-C): %w", id, err))
		}
		if a.json {
			return a.printJSON(map[string]string{"run_id": id, "state": "cancelling"})
		}
		_, err = fmt.Fprintf(a.stdout, "cancelling %s\n", printable(id))
		return err
	})
}

func diffRuns(ctx context.Context, a *app, one, other string) error {
	return withRun(ctx, a, one, func(ctx context.Context, s *kb.Store, one string) error {
		other, err := ask.WholeRun(ctx, s, other)
		if err != nil {
			return err
		}
		d, err := runs.Compare(ctx, s, one, other, time.Now())
		if err != nil {
			return err
		}
		status := 0
		if !d.Same() {
			status = launcher.StatusFinding
		}
		if a.json {
			return ending(status, a.printJSON(d))
		}
		fmt.Fprintf(a.stdout, runRow, "RUN", "AGENT", "OUTCOME", "ALLOWED", "DENIED", "TOOK", "BEGAN")
		printRun(a, &d.A)
		printRun(a, &d.B)
		for i := range d.Calls {
			fmt.Fprintln(a.stdout, d.Calls[i].Text(pageWidth))
		}
		return ending(status, nil)
	})
}

// askedOf is what commands about the agent of a run name: the installed one, or else
// path, from the root, so that they can be pasted in any folder; "": nobody knows it.
func askedOf(a *app, agent, digest, path string) runs.Asked {
	if _, err := os.Lstat(path); err == nil && !filepath.IsAbs(path) {
		if dir, err := a.getwd(); err == nil {
			path = filepath.Join(dir, path)
		}
	}
	if h, err := a.home(); err == nil {
		path = cmp.Or(agents.Named(h, agent, digest), path)
	}
	path = cmp.Or(path, runs.Unknown)
	return runs.Asked{Bundle: path, Flags: runs.FlagsOf(a.homeFlag, a.tenant)}
}

// summarize says to a person how a run of the agent at path ended and what it was
// denied; where nobody looks on, what it was denied alone, in two lines.
func summarize(ctx context.Context, a *app, r *launcher.Report, path string, bare bool) {
	var denials []runs.Denial
	var empty bool
	if r.Usage.Denied > 0 {
		reader := a.reader()
		reader.Say = func(string) {} // what is wrong with the log is not about this run, and is no failure of it
		_ = auditlog.With(ctx, reader, auditlog.Filter{Run: r.RunID}, time.Now(),
			func(ctx context.Context, s *kb.Store, f kb.Filter) (err error) {
				denials, empty, err = runs.Denials(ctx, s, f.Run)
				return err
			})
	}
	nothing, named, width := "", askedOf(a, r.Agent, r.BundleDigest, path), pageWidth-len("rlp: ")
	if empty {
		nothing = named.NothingHeld(bare && len(r.Base) == 0)
	}
	lines := runs.Summary(r, denials, nothing, named, width)
	if !a.verbose && !isTerminal(a.stderr) {
		lines = runs.Brief(r, denials, named, width)
	}
	for _, line := range lines {
		fmt.Fprintln(a.stderr, fitted(a.stderr, "rlp: "+printableLines(line)))
	}
}
