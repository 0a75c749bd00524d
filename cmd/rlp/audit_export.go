package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/record/export"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

type exportFlags struct {
	auditFlags
	format, output, cursor string
	follow                 bool
}

func (a *app) auditExportCommand() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use: "export", Short: "Write records for other programs: JSON lines, CSV, OCSF events, OpenTelemetry spans",
		Args: cobra.NoArgs,
		Long: `Export writes the audit log, or the part that filters leave of it.

jsonl  each record as it is exported: without its line end, a line is a leaf of the log's tree
csv    a row a record, safe to open in a spreadsheet
ocsf   an event of OCSF 1.8.0 a line, for a SIEM
otlp   a span a run and a span a call: to a collector (--output URL) or as OTLP/JSON, one request a line

With --cursor an export goes on where the one before it ended, and refuses a log
that is not the one it was made of. A file then holds every record once, whenever
the program was killed; stdout and a collector may be given the last ones twice.
Without --output spans go to $OTEL_EXPORTER_OTLP_ENDPOINT, if that is set.`,
		Example: `  rlp audit export --output log.jsonl --cursor log.cursor
  rlp audit export --format ocsf --since 24h | vector --config siem.yaml
  rlp audit export --format otlp --output http://localhost:4318 --cursor otlp.cursor --follow
  rlp audit export --format csv --decision deny --output denied.csv`,
		RunE: func(c *cobra.Command, _ []string) error { return a.auditExport(c.Context(), &f) },
	}
	f.register(c.Flags())
	c.Flags().StringVar(&f.format, "format", "jsonl", "`jsonl|ocsf|otlp|csv`")
	c.Flags().StringVar(&f.output, "output", "", "a `FILE`, - for stdout, or for otlp the URL of a collector")
	c.Flags().StringVar(&f.cursor, "cursor", "", "remember in this `FILE` how far the export came, and go on from there")
	c.Flags().BoolVar(&f.follow, "follow", false, "go on with records as they are made, until interrupted")
	return c
}

// An exporting is one export of one store.
type exporting struct {
	export.Export
	app    *app
	flags  *exportFlags
	format export.Format
	store  *kb.Store
	filter kb.Filter // of the next pass
	tenant string
	to     string // "-", a file or a URL
	head   kb.Head
}

func (a *app) auditExport(ctx context.Context, f *exportFlags) error {
	x := &exporting{app: a, flags: f}
	if err := x.settle(); err != nil {
		return err
	}
	if x.to == "-" {
		a.json = false // stdout is the export, and what is wrong with it no part of that
	}
	err := a.withStore(ctx, f.auditFlags, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
		x.store, x.filter = s, filter
		return x.run(ctx)
	})
	switch {
	case err == nil:
		return x.tell()
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		if f.follow {
			return x.tell()
		}
		return interrupted(ctx, err)
	case errors.Is(err, export.ErrCollector):
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	case errors.Is(err, export.ErrCursor), errors.Is(err, export.ErrOutput):
		return inputErr(err)
	}
	return err
}

// run opens what is written to, exports what is there, and what comes.
func (x *exporting) run(ctx context.Context) (err error) {
	x.Gapless = x.filter == kb.Filter{}
	if err := x.openCursor(); err != nil {
		return unopened("--cursor", x.flags.cursor, err)
	}
	defer func() { err = errors.Join(err, x.closeCursor()) }()
	if err := errors.Join(x.compare(ctx), x.encode()); err != nil {
		return err // before anything is taken away from a file
	}
	if err := x.openOutput(); err != nil {
		return unopened("--output", x.to, err)
	}
	done := false
	defer func() { err = errors.Join(err, x.Output.Close(done)) }()
	if err := x.Begin(ctx); err != nil {
		return err
	}
	if err := x.narrow(ctx); err != nil {
		return err
	}
	if err := x.passes(ctx); err != nil {
		return err
	}
	done = true
	return nil
}

// compare refuses a log that is not the one which the cursor speaks of.
func (x *exporting) compare(ctx context.Context) error {
	if x.Cursor == nil || x.Cursor.Size == 0 {
		return nil
	}
	head, err := x.store.Head(ctx)
	if err != nil {
		return err
	}
	if head.Size < x.Cursor.Size {
		return x.Cursor.Check(nil)
	}
	older, _, _, err := x.store.Consistency(ctx, x.Cursor.Size, head.Size)
	if err != nil {
		return err
	}
	root := [32]byte(older.Root)
	return x.Cursor.Check(&root)
}

// narrow turns a filter of decisions into one of spans: a span is made of more
// than its decision.
func (x *exporting) narrow(ctx context.Context) error {
	x.filter.After = x.Last()
	if x.format != export.OTLP {
		return nil
	}
	if x.filter.Limit > 0 {
		for g, err := range x.store.Glances(ctx, x.filter) {
			if err != nil {
				return err
			}
			x.filter.After = g.Seq - 1
			break
		}
	}
	x.filter.Cap, x.filter.Decision, x.filter.Limit = "", "", 0
	return nil
}

// passes exports what there is, and, when it follows, what comes.
func (x *exporting) passes(ctx context.Context) error {
	const soonest, latest = 50 * time.Millisecond, time.Second
	pause := soonest
	for {
		head, err := x.store.Head(ctx)
		if err != nil {
			return err
		}
		x.head = head
		if head.Size > x.Last() {
			pause = soonest
			if err := x.Pass(ctx, export.Head{Size: head.Size, Root: head.Root}, x.records(ctx)); err != nil {
				return err
			}
			x.filter.After, x.filter.Limit = x.Last(), 0
		}
		if !x.flags.follow {
			return nil
		}
		// Looking costs a listing of the journals, so it is done the less the less there is.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause = min(2*pause, latest)
		}
		if _, err := x.store.Ingest(ctx); err != nil {
			return err
		}
	}
}

func (x *exporting) records(ctx context.Context) iter.Seq2[*audit.Glance, error] {
	return x.store.Glances(ctx, x.filter)
}

// tell says what was exported, where that is not the output itself.
func (x *exporting) tell() error {
	a := x.app
	if x.to == "-" {
		return nil
	}
	if a.json {
		return a.printJSON(map[string]any{
			"format": x.format, "output": x.to, "records": x.Count(), "seq": x.Last(), "size": x.head.Size,
			"root": fmt.Sprintf("%x", x.head.Root[:]),
		})
	}
	if !a.quiet {
		fmt.Fprintf(a.stdout, "exported %d records up to seq %d to %s\n", x.Count(), x.Last(), x.to)
	}
	return nil
}
