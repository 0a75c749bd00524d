package service

import (
	"context"
	"iter"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb"
)

// TellLog is log as c may know it: each record is one of [TellRecord].
func TellLog(c *Caller, log Log) Log {
	if c.Can(Operate) {
		return log
	}
	if tailer, can := log.(Tailer); can {
		return toldTail{toldLog{log}, tailer}
	}
	return toldLog{log}
}

// TellRecord is a record as c may know it: who does not operate is told neither
// which paths of the host are protected, nor that one is.
func TellRecord(c *Caller, r *audit.Record) *audit.Record {
	if c.Can(Operate) {
		return r
	}
	return toldRecord(r)
}

func toldRecord(r *audit.Record) *audit.Record {
	told := *r
	switch d, e := r.Decision, r.Event; {
	case d != nil && d.Layer == caps.ProtectedLayer:
		of := *d
		of.Layer, told.Decision = caps.HostLayer, &of
	case e != nil && len(e.Except)+len(e.Layers)+len(e.Violations) > 0:
		of := *e
		of.Except = nil
		of.Violations = slices.DeleteFunc(slices.Clone(e.Violations), func(v string) bool {
			return strings.Contains(v, "by "+caps.ProtectedLayer)
		})
		var spared []string
		of.Layers = slices.DeleteFunc(slices.Clone(e.Layers), func(l audit.Layer) bool {
			if l.Name != caps.ProtectedLayer {
				return false
			}
			for _, x := range l.Spare {
				spared = append(spared, x.Scope)
			}
			return true
		})
		of.Effective = Unspared(e.Effective, e.Base, spared)
		told.Event = &of
	default:
		return r
	}
	return &told
}

// Unspared are the capabilities that are left, but those of the folders that are
// spared within what is protected: these say where that is. What was asked for
// itself stays.
func Unspared(left, asked, spared []string) []string {
	return slices.DeleteFunc(slices.Clone(left), func(capability string) bool {
		return !slices.Contains(asked, capability) && slices.ContainsFunc(spared, func(dir string) bool {
			return strings.HasSuffix(capability, ":"+dir)
		})
	})
}

// A toldLog is a log for who does not operate.
type toldLog struct{ log Log }

// Audit implements [Log].
func (l toldLog) Audit(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return toldRecords(l.log.Audit(ctx, f))
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
	return l.log.Runs(ctx, q)
}

// A toldTail is one that tells of records before they have entered it.
type toldTail struct {
	toldLog
	tailer Tailer
}

// Tail implements [Tailer].
func (l toldTail) Tail(ctx context.Context, f kb.Filter) iter.Seq2[audit.Record, error] {
	return toldRecords(l.tailer.Tail(ctx, f))
}

func toldRecords(records iter.Seq2[audit.Record, error]) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		for r, err := range records {
			if err == nil {
				r = *toldRecord(&r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
