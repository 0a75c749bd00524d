package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"strings"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/record/export"
	"runloop.dev/rlp/internal/record/otlp"
	"runloop.dev/rlp/kb"
)

// settle decides what is exported where, before anything is opened.
func (x *exporting) settle() error {
	f := x.flags
	format, err := export.ParseFormat(f.format)
	if err != nil {
		return usagef("%w", err)
	}
	x.format, x.to = format, f.output
	if x.to == "" && format == export.OTLP {
		x.to, err = x.app.collector()
	}
	if x.to == "" && err == nil {
		x.to = "-"
	}
	switch {
	case err != nil:
		return err
	case isURL(x.to) && format != export.OTLP:
		return usagef("--output %s: only spans (--format otlp) are sent to a URL; write to stdout and give that to what "+
			"carries logs", x.to)
	case f.cursor != "" && f.limit > 0:
		return usagef("--limit leaves out what a --cursor would never come back to; give one of them")
	case isURL(x.to):
		if x.to, err = export.TracesURL(x.to); err != nil {
			return usagef("%w", err)
		}
	case x.to != "-":
		err = x.app.reader().OwnPaths(x.to)
	}
	if err == nil && f.cursor != "" {
		err = x.app.reader().OwnPaths(f.cursor)
	}
	return err
}

func isURL(s string) bool { return strings.Contains(s, "://") }

// collector is where OpenTelemetry's own settings send spans; "": nowhere.
func (a *app) collector() (string, error) {
	if s := a.getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); s != "" {
		return s, nil
	}
	s := a.getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "", usagef("OTEL_EXPORTER_OTLP_ENDPOINT: no http or https URL, such as http://localhost:4318")
	}
	return u.JoinPath("v1/traces").String(), nil
}

// encode opens the encoder.
func (x *exporting) encode() (err error) {
	o := export.Options{Tenant: x.tenant, Version: version, Binary: isURL(x.to), Past: x.past}
	if f := (kb.Filter{Cap: x.filter.Cap, Decision: x.filter.Decision}); f != (kb.Filter{}) {
		o.Only = f.Match
	}
	x.Encoder, err = export.New(x.format, o)
	return err
}

func (x *exporting) openCursor() error {
	h, err := x.app.home()
	if err != nil {
		return err
	}
	x.tenant = h.Tenant()
	if x.flags.cursor == "" {
		return nil
	}
	q := x.filter
	c, err := export.OpenCursor(x.flags.cursor, export.Cursor{Format: x.format, Tenant: x.tenant, Filter: export.Filter{
		Run: q.Run, Agent: q.Agent, Cap: q.Cap, Decision: q.Decision, Since: x.flags.since, SinceMS: q.SinceMS,
	}})
	if err != nil {
		return err
	}
	x.Cursor = c
	x.filter.SinceMS = c.Filter.SinceMS // an age is meant from the first export on
	return nil
}

func (x *exporting) closeCursor() error {
	if x.Cursor == nil {
		return nil
	}
	return x.Cursor.Close()
}

func (x *exporting) openOutput() (err error) {
	resumed := x.Cursor != nil && !x.Cursor.Fresh
	switch {
	case x.to == "-":
		x.Output = export.NewStream(x.app.stdout, resumed)
	case isURL(x.to):
		x.Output, err = x.openCollector()
		x.Every = 1
	case x.Cursor != nil:
		x.Output, err = export.ResumeFile(x.to, x.Cursor.Output)
	case x.flags.follow:
		x.Output, err = export.ResumeFile(x.to, nil)
	default:
		x.Output, err = export.NewFile(x.to)
	}
	return err
}

// unopened says which flag named a file that cannot be opened, by the name that
// was written and not by that of a file which would have taken its place.
func unopened(flag, name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) && !errors.Is(err, export.ErrOutput) && !errors.Is(err, export.ErrCursor) {
		return inputErr(fmt.Errorf("%s %s: %w", flag, name, p.Err))
	}
	return err
}

func (x *exporting) openCollector() (export.Output, error) {
	name := "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
	text := x.app.getenv(name)
	if text == "" {
		name = "OTEL_EXPORTER_OTLP_HEADERS"
		text = x.app.getenv(name)
	}
	header, err := otlp.ParseHeaders(text)
	if err != nil {
		return nil, usagef("%s: %w", name, err)
	}
	c := export.NewCollector(x.to, header)
	c.Told = func(s string) { fmt.Fprintf(x.app.stderr, "rlp: %s\n", printable(s)) }
	if x.flags.follow {
		c.Tries = 0
	}
	return c, nil
}

// past are the records of a run.
func (x *exporting) past(run string) iter.Seq2[*audit.Glance, error] {
	return x.store.Glances(context.Background(), kb.Filter{Run: run})
}
