package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/auditlog"
)

func auditExportCommand(a *app) *cobra.Command {
	f := auditlog.ExportQuery{Version: version, Getenv: a.getenv, Stdout: a.stdout}
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
		RunE: func(c *cobra.Command, _ []string) error { return auditExport(c.Context(), a, f) },
	}
	filterFlags(&f.Filter, c.Flags())
	c.Flags().StringVar(&f.Format, "format", "jsonl", "`jsonl|ocsf|otlp|csv`")
	c.Flags().StringVar(&f.Output, "output", "", "a `FILE`, - for stdout, or for otlp the URL of a collector")
	c.Flags().StringVar(&f.Cursor, "cursor", "", "remember in this `FILE` how far the export came, and go on from there")
	c.Flags().BoolVar(&f.Follow, "follow", false, "go on with records as they are made, until interrupted")
	return c
}

func auditExport(ctx context.Context, a *app, q auditlog.ExportQuery) error {
	x, err := auditlog.NewExport(a.reader(), q)
	if err != nil {
		return err
	}
	if x.To == "-" {
		a.json = false // stdout is the export, and what is wrong with it no part of that
	}
	d, err := x.Run(ctx, time.Now())
	switch {
	case err != nil:
		return interrupted(ctx, err)
	case x.To == "-":
	case a.json:
		return a.printJSON(d)
	case !a.quiet:
		fmt.Fprintf(a.stdout, "exported %s up to record %d to %s\n", counted(d.Records, "record"), d.Seq, d.Output)
	}
	return nil
}
