package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
)

type auditFlags struct {
	run, agent, family, decision, since string
	limit                               int
}

func (f *auditFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.run, "run", "", "only the run `ID`")
	fs.StringVar(&f.agent, "agent", "", "only the agent `NAME`")
	f.narrower(fs)
}

// narrower are the flags that make sense of one run, too.
func (f *auditFlags) narrower(fs *pflag.FlagSet) {
	fs.StringVar(&f.family, "family", "", "only this family or capability, such as fs or fs.write")
	fs.StringVar(&f.decision, "decision", "", "only `allow|deny`")
	fs.StringVar(&f.since, "since", "", "only from then on: a time (2026-01-02T15:04:05Z) or an age (90m, 24h, 7d)")
	fs.IntVar(&f.limit, "limit", 0, "only the last `N`; 0: all")
}

func (f *auditFlags) filter(now time.Time) (kb.Filter, error) {
	if f.decision != "" && f.decision != "allow" && f.decision != "deny" {
		return kb.Filter{}, usagef("--decision %s: allow or deny", f.decision)
	}
	if f.limit < 0 {
		return kb.Filter{}, usagef("--limit %d: a whole number from 0 on", f.limit)
	}
	since, err := parseSince(f.since, now)
	if err != nil {
		return kb.Filter{}, err
	}
	capability, err := capOf(f.family)
	if err != nil {
		return kb.Filter{}, err
	}
	return kb.Filter{Run: f.run, Agent: f.agent, Cap: capability, Decision: f.decision, SinceMS: since, Limit: f.limit},
		nil
}

// capOf is what records call a family or capability.
func capOf(family string) (string, error) {
	if family == "" {
		return "", nil
	}
	name, known, ok := caps.AuditWord(family)
	if !ok {
		return "", usagef("--family %s: a family such as fs or kb_read, or one of %s", family, strings.Join(known, ", "))
	}
	return name, nil
}

func parseSince(text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UnixMilli(), nil
	}
	unit := text
	var days time.Duration
	if n, rest, ok := strings.Cut(text, "d"); ok && rest == "" {
		unit, days = n+"h", 24
	}
	d, err := time.ParseDuration(unit)
	if err != nil || d < 0 {
		return 0, usagef("--since %s: a time such as 2026-01-02T15:04:05Z, or an age such as 90m, 24h, 7d", text)
	}
	if days > 0 {
		d *= days
	}
	return now.Add(-d).UnixMilli(), nil
}

func (a *app) auditCommand() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Read what agents did", Args: cobra.NoArgs, RunE: showHelp}
	c.AddCommand(a.auditVerifyCommand(), a.auditProofCommand(), a.auditCheckpointCommand(), a.auditKeyCommand(),
		a.auditPruneCommand())
	c.AddCommand(a.auditListCommand(), a.auditShowCommand(), a.auditTailCommand(), a.auditScanCommand(),
		a.auditExportCommand())
	for _, sub := range c.Commands() {
		refuseEmpty(sub)
	}
	return c
}

func (a *app) auditListCommand() *cobra.Command {
	var f auditFlags
	var tree bool
	c := &cobra.Command{
		Use: "list", Short: "Print records, oldest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if tree && f.run == "" {
				return usagef("--tree needs the run at its root: --run ID")
			}
			return a.withStore(c.Context(), f, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
				if tree {
					return a.printTree(ctx, s, filter)
				}
				return a.printFound(ctx, s, filter)
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&tree, "tree", false, "with --run: the runs that it launched, too, and those that they did")
	return c
}

func (a *app) auditShowCommand() *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use: "show RUN", Short: "Print everything of one run", Args: exactly("a RUN"),
		Example: `  rlp audit show 0198d2c4-7f1e
  rlp audit show 0198d2c4-7f1e --decision deny --family fs`,
		RunE: func(c *cobra.Command, args []string) error {
			f.run = args[0]
			return a.withStore(c.Context(), f, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
				if err := known(ctx, s, filter.Run); err != nil {
					return err
				}
				return a.printFound(ctx, s, filter)
			})
		},
	}
	f.narrower(c.Flags())
	return c
}

// known refuses a run that is not in the log.
func known(ctx context.Context, s *kb.Store, run string) error {
	for _, err := range s.Glances(ctx, kb.Filter{Run: run, Limit: 1}) {
		return err
	}
	return &ask.Error{Status: launcher.StatusInput, Err: fmt.Errorf("no run %s in the audit log; rlp audit list shows all",
		run)}
}

func (a *app) auditTailCommand() *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use: "tail", Short: "Print records as they are made, until interrupted", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			err = a.printRecords(kb.Tail(c.Context(), kb.Options{Home: h.Dir(), Tenant: h.Tenant()}, filter))
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	f.register(c.Flags())
	return c
}

// withStore opens the store for one question.
func (a *app) withStore(ctx context.Context, f auditFlags, ask func(context.Context, *kb.Store,
	kb.Filter) error,
) (err error) {
	filter, err := f.filter(time.Now())
	if err != nil {
		return err
	}
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	s, err := kb.Open(ctx, compose.StoreOptions(h, cfg))
	if err != nil {
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	taken, err := s.Ingest(ctx)
	if err != nil {
		return err
	}
	for _, d := range taken.Damaged {
		fmt.Fprintf(a.stderr, "rlp: taking in journals: %s\n", printable(d))
	}
	if filter.Run, err = wholeRun(ctx, s, filter.Run); err != nil {
		return err
	}
	return ask(ctx, s, filter)
}

// wholeRun finds the run that the beginning of an id means.
func wholeRun(ctx context.Context, s *kb.Store, id string) (string, error) {
	const whole = 36
	if id == "" || len(id) >= whole {
		return id, nil
	}
	found := ""
	for r, err := range s.Glances(ctx, kb.Filter{}) {
		if err != nil {
			return "", err
		}
		if string(r.Run) != found && strings.HasPrefix(string(r.Run), id) {
			run := string(r.Run)
			if found != "" {
				return "", &ask.Error{Status: launcher.StatusUsage, Err: fmt.Errorf("more than one run begins with %s: %s, %s", id,
					found, run)}
			}
			found = run
		}
	}
	if found == "" {
		return "", &ask.Error{
			Status: launcher.StatusInput,
			Err:    fmt.Errorf("no run in the audit log begins with %s; rlp audit list shows all", id),
		}
	}
	return found, nil
}

// printFound prints the records that filter asks for: with --json the very lines
// that the log's tree is made of.
func (a *app) printFound(ctx context.Context, s *kb.Store, filter kb.Filter) error {
	if !a.json {
		return a.printRecords(s.Audit(ctx, filter))
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

func (a *app) printRecords(records iter.Seq2[audit.Record, error]) error {
	for r, err := range records {
		if err != nil {
			return err
		}
		line, err := a.recordLine(&r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.stdout, line); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

func (a *app) recordLine(r *audit.Record) (string, error) {
	if a.json {
		line, err := r.AppendJSON(nil)
		return string(line), err
	}
	head := fmt.Sprintf("%6d %s %s %-12s", r.Seq, r.Time.Local().Format("15:04:05.000"), shortRun(printable(r.Head.RunID)),
		printable(r.Head.Agent))
	if d := r.Decision; d != nil {
		return head + " " + a.decisionLine(d), nil
	}
	return head + " " + printable(eventLine(r.Event)), nil
}

// shortRun is enough of a run id to tell runs of one day apart: UUIDv7 begins
// with the time.
func shortRun(id string) string {
	if len(id) < 13 {
		return id
	}
	return id[:13]
}

func (a *app) decisionLine(d *audit.DecisionRecord) string {
	word := "allow"
	if d.Deny {
		word = "deny "
		if a.color(a.stdout) {
			word = "\x1b[31m" + word + "\x1b[0m"
		}
	}
	line := fmt.Sprintf("%s %s", word, printable(fmt.Sprintf("%-10s %-22s %s", d.Cap, d.Op, d.Target)))
	if d.Deny {
		line += "  " + printable(d.Reason)
		if d.Layer != "" {
			line += " (" + printable(d.Layer) + ")"
		}
		if d.Label != "" {
			line += "  because of " + printable(d.Label)
		}
	}
	return line
}

func eventLine(e *audit.Event) string {
	switch e.Kind {
	case audit.KindRunStart:
		return fmt.Sprintf("start base=%d effective=%d layers=%d", len(e.Base), len(e.Effective), len(e.Layers))
	case audit.KindCallDone:
		line := fmt.Sprintf("done  %s %s", e.Verb, e.Status)
		if e.ErrorSummary != "" {
			line += " " + e.ErrorSummary
		}
		return line
	case audit.KindCapsSwap:
		line := "swap  " + e.Source
		if e.Label != "" {
			line += "  because of " + e.Label
		}
		return line
	}
	line := fmt.Sprintf("end   %s exit=%d", e.Outcome, e.ExitCode)
	if e.Message != "" {
		line += " " + e.Message
	}
	return line
}
