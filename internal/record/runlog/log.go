// Package runlog keeps the logs of a home: the JSON lines of runs, a file a day,
// and those of a service, which are put away when a file is full. Nothing that a
// run recorded is lost with them: that is in the audit log.
package runlog

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/record/audit"
)

// A Log is the JSON lines of one invocation: log/<day>.jsonl, shared by all
// runs of that day, and <day>.2.jsonl when that is full. Lines are gathered and
// appended whole, so that two runs never mix theirs.
type Log struct {
	*slog.Logger
	file *lineFile

	// Of observe alone, which one goroutine calls.
	last     *audit.Record // the newest decision that has a line
	repeated int64         // how often it came again since
	seen     int64
}

// Open opens the log of the tenant. The file is made at the first line.
func Open(h home.Home, bound config.Log, now func() time.Time, verbose io.Writer) *Log {
	if bound == (config.Log{}) { // nobody read any settings
		bound = config.Default().Log
	}
	f := &lineFile{dir: h.Log(), bound: bound, now: now}
	handler := Handler(f, slog.LevelDebug, verbose)
	handler = handler.WithAttrs([]slog.Attr{slog.String("surface", "launch"), slog.String("lane", "wasm")})
	return &Log{Logger: slog.New(handler), file: f}
}

// Handler writes JSON lines with times in UTC to w, and what a person should see
// to verbose; nil: nobody looks.
func Handler(w io.Writer, level slog.Level, verbose io.Writer) slog.Handler {
	lines := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: utc})
	if verbose == nil {
		return lines
	}
	return both{lines, slog.NewTextHandler(verbose, &slog.HandlerOptions{Level: slog.LevelInfo})}
}

func utc(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Value = slog.StringValue(a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return a
}

// Bounds of what one run may write into the log. The audit log is bounded by
// the journal and has what is left out here.
const (
	maxLogBytes     = 64 << 20
	maxLogDecisions = 4_000_000
)

// Observe writes a decision as cap_allow or cap_deny, whatever is kept of it in
// the knowledge base. The same decision again is counted, and its line written
// once more with the count when another comes.
func (l *Log) Observe(r *audit.Record) bool {
	d := r.Decision
	if d == nil {
		return true
	}
	l.seen++
	if l.last != nil && sameDecision(l.last.Decision, d) {
		l.repeated++
		return l.within(r)
	}
	l.flushRepeated()
	l.decision(r, 0)
	l.last = r
	return l.within(r)
}

// And is Observe, and whoever else is told of each decision; nil: nobody is.
func (l *Log) And(record func(*audit.Record)) func(*audit.Record) bool {
	if record == nil {
		return l.Observe
	}
	logging := true
	return func(r *audit.Record) bool {
		logging = logging && l.Observe(r)
		record(r)
		return true
	}
}

// within reports whether the run may go on writing, and says when it may not.
func (l *Log) within(r *audit.Record) bool {
	if l.seen < maxLogDecisions && l.file.size() < maxLogBytes {
		return true
	}
	l.flushRepeated()
	l.LogAttrs(context.Background(), slog.LevelWarn, "log_full", slog.String("run_id", r.Head.RunID),
		slog.String("message", "this run has written as much as it may; its further decisions are in the audit log"))
	return false
}

func sameDecision(a, b *audit.DecisionRecord) bool {
	return a.Deny == b.Deny && a.Cap == b.Cap && a.Op == b.Op && a.Target == b.Target && a.Reason == b.Reason &&
		a.Layer == b.Layer && a.ArgsHash == b.ArgsHash
}

func (l *Log) flushRepeated() {
	if l.repeated > 0 {
		l.decision(l.last, l.repeated)
	}
	l.repeated = 0
}

func (l *Log) decision(r *audit.Record, repeated int64) {
	d := r.Decision
	name, level, word := "cap_allow", slog.LevelDebug, "allow"
	if d.Deny {
		name, level, word = "cap_deny", slog.LevelInfo, "deny"
	}
	attrs := []slog.Attr{
		slog.String("run_id", r.Head.RunID), slog.String("tenant", r.Head.Tenant), slog.String("agent", r.Head.Agent),
		slog.String("cap", d.Cap), slog.String("op", d.Op), slog.String("target", d.Target),
		slog.String("decision", word), slog.String("reason", d.Reason), slog.String("layer", d.Layer),
	}
	if repeated > 0 {
		attrs = append(attrs, slog.Int64("repeated", repeated))
	}
	l.LogAttrs(context.Background(), level, name, attrs...)
}

// Close writes what is left.
func (l *Log) Close() error {
	l.flushRepeated()
	return l.file.flush()
}

// both hands each line to two handlers.
type both struct{ a, b slog.Handler }

func (h both) Enabled(ctx context.Context, l slog.Level) bool {
	return h.a.Enabled(ctx, l) || h.b.Enabled(ctx, l)
}

func (h both) Handle(ctx context.Context, r slog.Record) error {
	var err error
	for _, one := range []slog.Handler{h.a, h.b} {
		if one.Enabled(ctx, r.Level) {
			err = errors.Join(err, one.Handle(ctx, r.Clone()))
		}
	}
	return err
}

func (h both) WithAttrs(as []slog.Attr) slog.Handler {
	return both{h.a.WithAttrs(as), h.b.WithAttrs(as)}
}

func (h both) WithGroup(name string) slog.Handler {
	return both{h.a.WithGroup(name), h.b.WithGroup(name)}
}
