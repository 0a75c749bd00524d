package service

import (
	"context"
	"iter"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/places"
)

// TellLog is log as c may know it: names says how what is on the host is told in records
// of a run.
func TellLog(c *Caller, log Log, names func(run *audit.Head) *places.Names) Log {
	if c.Can(Operate) {
		return log
	}
	l := toldLog{log, names}
	if tailer, can := log.(Tailer); can {
		return toldTail{l, tailer}
	}
	return l
}

// tellRecord is a record as who reads log may know it.
func tellRecord(log Log, r *audit.Record) *audit.Record {
	switch l := log.(type) {
	case toldLog:
		return l.record(r)
	case toldTail:
		return l.record(r)
	}
	return r
}

// A toldLog is a log for who does not operate.
type toldLog struct {
	log   Log
	names func(run *audit.Head) *places.Names
}

func (l toldLog) record(r *audit.Record) *audit.Record { return l.names(&r.Head).Record(r) }

// records are those of a sequence, told.
func (l toldLog) records(records iter.Seq2[audit.Record, error]) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		for r, err := range records {
			if err == nil {
				r = *l.record(&r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Audit implements [Log].
func (l toldLog) Audit(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return l.records(l.log.Audit(ctx, f))
}

// Lines implements [Log]. The line of a record that is told otherwise than it was
// stored is no leaf of the tree.
func (l toldLog) Lines(ctx context.Context, f kb.Filter) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var line []byte
		for r, err := range l.Audit(ctx, f) {
			if err == nil {
				line, err = r.AppendJSON(line[:0])
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// Head implements [Log].
func (l toldLog) Head(ctx context.Context) (kb.Head, error) { return l.log.Head(ctx) }

// Runs implements [Log].
func (l toldLog) Runs(ctx context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error] {
	return func(yield func(kb.RunSummary, error) bool) {
		for run, err := range l.log.Runs(ctx, q) {
			run.Message = places.Ended(run.Outcome, run.Message)
			if !yield(run, err) {
				return
			}
		}
	}
}

// A toldTail is one that tells of records before they have entered it.
type toldTail struct {
	toldLog
	tailer Tailer
}

// Tail implements [Tailer].
func (l toldTail) Tail(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return l.records(l.tailer.Tail(ctx, f))
}
