package auditlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/record/export"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/run"
)

// An ExportQuery says which records are written where, and as what.
type ExportQuery struct {
	Filter
	Format, Output, Cursor string
	Follow                 bool                // go on with records as they are made
	Version                string              // of rlp, which documents name
	Getenv                 func(string) string // where collectors are
	Stdout                 io.Writer
}

// An Exporting is one export of one store.
type Exporting struct {
	export.Export
	Format export.Format
	To     string // "-", a file or a URL
	q      ExportQuery
	reader *compose.Reader
	store  *kb.Store
	filter kb.Filter // of the next pass
	head   kb.Head
}

// An Exported is what was written.
type Exported struct {
	Format  export.Format `json:"format"`
	Output  string        `json:"output"`
	Records uint64        `json:"records"`
	Root    string        `json:"root"`
	Seq     uint64        `json:"seq"`
	Size    uint64        `json:"size"`
}

// NewExport decides what is exported where; nothing is opened.
func NewExport(r *compose.Reader, q ExportQuery) (*Exporting, error) {
	x := &Exporting{q: q, reader: r}
	return x, x.settle()
}

// Run exports. One that is interrupted as it follows is whole.
func (x *Exporting) Run(ctx context.Context, now time.Time) (*Exported, error) {
	err := With(ctx, x.reader, x.q.Filter, now, func(ctx context.Context, s *kb.Store, filter kb.Filter) error {
		x.store, x.filter = s, filter
		return x.export(ctx)
	})
	cancelled := ctx.Err() != nil && errors.Is(err, context.Canceled)
	switch {
	case err == nil, cancelled && x.q.Follow:
		return &Exported{
			Format: x.Format, Output: x.To, Records: x.Count(), Seq: x.Last(), Size: x.head.Size,
			Root: fmt.Sprintf("%x", x.head.Root[:]),
		}, nil
	case cancelled:
	case errors.Is(err, export.ErrCollector):
		err = &compose.Error{Status: run.StatusUnavailable, Err: err}
	case errors.Is(err, export.ErrCursor), errors.Is(err, export.ErrOutput):
		err = compose.InputErr(err)
	}
	return nil, err
}

// export opens what is written to, exports what is there, and what comes.
func (x *Exporting) export(ctx context.Context) (err error) {
	x.Gapless = x.filter == kb.Filter{}
	if err := x.openCursor(); err != nil {
		return unopened("--cursor", x.q.Cursor, err)
	}
	defer func() { err = errors.Join(err, x.closeCursor()) }()
	if err := errors.Join(x.compare(ctx), x.encode()); err != nil {
		return err // before anything is taken away from a file
	}
	if err := x.openOutput(); err != nil {
		return unopened("--output", x.To, err)
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
func (x *Exporting) compare(ctx context.Context) error {
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
func (x *Exporting) narrow(ctx context.Context) error {
	x.filter.After = x.Last()
	if x.Format != export.OTLP {
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
func (x *Exporting) passes(ctx context.Context) error {
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
		if !x.q.Follow {
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

func (x *Exporting) records(ctx context.Context) iter.Seq2[*audit.Glance, error] {
	return x.store.Glances(ctx, x.filter)
}
