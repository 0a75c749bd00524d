package auditlog

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
	"runloop.dev/rlp/launcher/compose"
)

// settle decides what is exported where, before anything is opened.
func (x *Exporting) settle() error {
	f := &x.q
	format, err := export.ParseFormat(f.Format)
	if err != nil {
		return compose.Usagef("%w", err)
	}
	x.Format, x.To = format, f.Output
	if x.To == "" && format == export.OTLP {
		x.To, err = f.collector()
	}
	if x.To == "" && err == nil {
		x.To = "-"
	}
	switch {
	case err != nil:
		return err
	case isURL(x.To) && format != export.OTLP:
		return compose.Usagef("--output %s: only spans (--format otlp) are sent to a URL; write to stdout and give that to what "+
			"carries logs", x.To)
	case f.Cursor != "" && f.Limit > 0:
		return compose.Usagef("--limit leaves out what a --cursor would never come back to; give one of them")
	case isURL(x.To):
		if x.To, err = export.TracesURL(x.To); err != nil {
			return compose.Usagef("%w", err)
		}
	case x.To != "-":
		err = x.reader.OwnPaths(x.To)
	}
	if err == nil && f.Cursor != "" {
		err = x.reader.OwnPaths(f.Cursor)
	}
	return err
}

func isURL(s string) bool { return strings.Contains(s, "://") }

// collector is where OpenTelemetry's own settings send spans; "": nowhere.
func (q *ExportQuery) collector() (string, error) {
	if s := q.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); s != "" {
		return s, nil
	}
	s := q.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "", compose.Usagef("OTEL_EXPORTER_OTLP_ENDPOINT: no http or https URL, such as http://localhost:4318")
	}
	return u.JoinPath("v1/traces").String(), nil
}

// encode opens the encoder.
func (x *Exporting) encode() (err error) {
	o := export.Options{Tenant: x.reader.Tenant, Version: x.q.Version, Binary: isURL(x.To), Past: x.past}
	if f := (kb.Filter{Cap: x.filter.Cap, Decision: x.filter.Decision}); f != (kb.Filter{}) {
		o.Only = f.Match
	}
	x.Encoder, err = export.New(x.Format, o)
	return err
}

func (x *Exporting) openCursor() error {
	if x.q.Cursor == "" {
		return nil
	}
	q := x.filter
	c, err := export.OpenCursor(x.q.Cursor, export.Cursor{Format: x.Format, Tenant: x.reader.Tenant, Filter: export.Filter{
		Run: q.Run, Agent: q.Agent, Cap: q.Cap, Decision: q.Decision, Since: x.q.Since, SinceMS: q.SinceMS,
	}})
	if err != nil {
		return err
	}
	x.Cursor = c
	x.filter.SinceMS = c.Filter.SinceMS // an age is meant from the first export on
	return nil
}

func (x *Exporting) closeCursor() error {
	if x.Cursor == nil {
		return nil
	}
	return x.Cursor.Close()
}

func (x *Exporting) openOutput() (err error) {
	resumed := x.Cursor != nil && !x.Cursor.Fresh
	switch {
	case x.To == "-":
		x.Output = export.NewStream(x.q.Stdout, resumed)
	case isURL(x.To):
		x.Output, err = x.openCollector()
		x.Every = 1
	case x.Cursor != nil:
		x.Output, err = export.ResumeFile(x.To, x.Cursor.Output)
	case x.q.Follow:
		x.Output, err = export.ResumeFile(x.To, nil)
	default:
		x.Output, err = export.NewFile(x.To)
	}
	return err
}

// unopened says which flag named a file that cannot be opened, by the name that
// was written and not by that of a file which would have taken its place.
func unopened(flag, name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) && !errors.Is(err, export.ErrOutput) && !errors.Is(err, export.ErrCursor) {
		return compose.InputErr(fmt.Errorf("%s %s: %w", flag, name, p.Err))
	}
	return err
}

func (x *Exporting) openCollector() (export.Output, error) {
	name := "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
	text := x.q.Getenv(name)
	if text == "" {
		name = "OTEL_EXPORTER_OTLP_HEADERS"
		text = x.q.Getenv(name)
	}
	header, err := otlp.ParseHeaders(text)
	if err != nil {
		return nil, compose.Usagef("%s: %w", name, err)
	}
	c := export.NewCollector(x.To, header)
	c.Told = x.reader.Say
	if x.q.Follow {
		c.Tries = 0
	}
	return c, nil
}

// past are the records of a run.
func (x *Exporting) past(run string) iter.Seq2[*audit.Glance, error] {
	return x.store.Glances(context.Background(), kb.Filter{Run: run})
}
