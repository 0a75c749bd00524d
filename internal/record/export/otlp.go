package export

import (
	"maps"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/internal/record/audit"
)

const (
	maxSpans   = 512 // in one request
	maxPending = 64  // calls of a run that may still be answered
)

// A tracer makes a span of each call when it is over, and of each run when it
// is. A record alone decides what it makes over, given those of the same run
// before it; so it does not matter where an export began.
type tracer struct {
	codec *audit.Codec
	opt   Options
	runs  map[string]*tracedRun
	spans []span
}

// A tracedRun is what is known of a run that has not ended.
type tracedRun struct {
	span    span
	pending []span // calls whose end has not come
}

func (t *tracer) Head() []byte { return nil }
func (t *tracer) Full() bool   { return len(t.spans) >= maxSpans }

func (t *tracer) Append(dst []byte, g *audit.Glance) ([]byte, error) {
	r, err := t.codec.Decode(g.Stored)
	if err != nil {
		return dst, err
	}
	run := t.runs[r.Head.RunID]
	if run == nil {
		if run, err = t.begin(&r); err != nil {
			return dst, err
		}
	}
	t.take(run, &r, t.emit)
	return dst, nil
}

// begin makes what is known of r's run before r.
func (t *tracer) begin(r *audit.Record) (*tracedRun, error) {
	run := newRun(r)
	t.runs[r.Head.RunID] = run
	if r.RunSeq <= 1 || t.opt.Past == nil {
		return run, nil
	}
	for g, err := range t.opt.Past(r.Head.RunID) {
		if err != nil {
			return nil, err
		}
		if g.RunSeq >= r.RunSeq {
			break
		}
		was, err := t.codec.Decode(g.Stored)
		if err != nil {
			return nil, err
		}
		if was.RunSeq == 1 {
			*run = *newRun(&was)
		}
		t.take(run, &was, func(span) {}) // what it made over was sent then
	}
	t.runs[r.Head.RunID] = run
	return run, nil
}

func newRun(r *audit.Record) *tracedRun {
	run := &tracedRun{}
	s := &run.span
	s.trace, s.id, s.kind = traceID(&r.Head), spanID(r.Head.RunID, 0), kindInternal
	if r.Head.ParentRun != "" {
		s.parent = spanID(r.Head.ParentRun, 0)
	}
	s.name, s.start = strings.TrimSpace("invoke_agent "+validText(r.Head.Agent)), nanos(r.Time)
	s.add("gen_ai.operation.name", "invoke_agent")
	s.add("gen_ai.agent.name", r.Head.Agent)
	s.add("rlp.run_id", r.Head.RunID)
	s.add("rlp.parent_run", r.Head.ParentRun)
	s.add("rlp.tenant", r.Head.Tenant)
	s.add("rlp.bundle_digest", r.Head.BundleDigest)
	return run
}

func (t *tracer) take(run *tracedRun, r *audit.Record, emit func(span)) {
	if r.Decision != nil {
		t.decided(run, r, emit)
		return
	}
	switch e := r.Event; {
	case e.Kind == audit.KindRunStart:
		run.span.start = nanos(r.Time)
		run.span.add("rlp.effective_digest", r.Head.EffectiveDigest)
	case e.Kind == audit.KindCallDone:
		t.done(run, r, emit)
	case e.Kind == audit.KindCapsSwap:
		ev := event{at: nanos(r.Time), name: "caps.swap"}
		ev.attrs = attrs("rlp.source", e.Source, "rlp.label", e.Label, "rlp.before", e.Before, "rlp.after", e.After)
		run.span.event(ev)
	case audit.Ends(e.Kind):
		run.end(r, emit)
		delete(t.runs, r.Head.RunID)
	}
}

// attrs are names and their texts, without those that are empty.
func attrs(pairs ...string) []attr {
	var s span
	for i := 0; i < len(pairs); i += 2 {
		s.add(pairs[i], pairs[i+1])
	}
	return s.attrs
}

func (t *tracer) decided(run *tracedRun, r *audit.Record, emit func(span)) {
	d := r.Decision
	s := t.call(run, r, d.Op)
	s.end = s.start
	if d.Deny {
		ev := event{at: s.start, name: "denied"}
		ev.attrs = attrs("rlp.capability", d.Cap, "rlp.op", d.Op, "rlp.target", d.Target, "rlp.reason", d.Reason, "rlp.layer",
			d.Layer)
		run.span.event(ev)
		s.fail(d.Reason, "denied: "+d.Reason)
		emit(s)
		return
	}
	if instant(d.Cap) {
		emit(s)
		return
	}
	if len(run.pending) == maxPending {
		emit(run.pending[0])
		run.pending = slices.Delete(run.pending, 0, 1)
	}
	run.pending = append(run.pending, s)
}

// instant reports whether calls under a capability have no record of their end.
func instant(capability string) bool {
	family, _, _ := strings.Cut(capability, ".")
	return family == "fs" || family == "time" || family == "env" || family == "caps"
}

// call is the span of a decision, which begins with it.
func (t *tracer) call(run *tracedRun, r *audit.Record, op string) span {
	s := span{
		trace: run.span.trace, id: spanID(r.Head.RunID, r.RunSeq), parent: run.span.id,
		op: op, name: validText(op), kind: kindInternal, start: nanos(r.Time), skip: t.opt.Only != nil && !t.opt.Only(r),
	}
	s.add("rlp.op", op)
	s.add("rlp.run_id", r.Head.RunID)
	s.add("rlp.run_seq", int64(r.RunSeq))
	s.add("rlp.seq", int64(r.Seq))
	d := r.Decision
	if d == nil {
		return s
	}
	s.add("rlp.capability", d.Cap)
	s.add("rlp.decision", verdict(d.Deny))
	s.add("rlp.reason", d.Reason)
	s.add("rlp.target", d.Target)
	s.add("rlp.layer", d.Layer)
	s.add("rlp.tool", d.Tool)
	s.add("rlp.label", d.Label)
	s.conventions(d)
	return s
}

// done ends the newest call of its name; others of that name that are open
// have no end of their own.
func (t *tracer) done(run *tracedRun, r *audit.Record, emit func(span)) {
	e := r.Event
	var s span
	found := false
	for i := len(run.pending) - 1; i >= 0; i-- {
		if run.pending[i].op != e.Verb {
			continue
		}
		if !found {
			s, found = run.pending[i], true
		} else {
			emit(run.pending[i])
		}
		run.pending = slices.Delete(run.pending, i, i+1)
	}
	took := max(0, int64(e.DurationMS*float64(time.Millisecond)))
	if !found { // its decision was not kept
		s = t.call(run, r, e.Verb)
		s.start -= took
	}
	s.end = s.start + took
	s.add("rlp.bytes", e.Bytes)
	s.status = statusOK
	if e.Status != "ok" {
		s.fail(e.Status, e.ErrorSummary)
	}
	emit(s)
}

// end ends what is still open, then the run.
func (run *tracedRun) end(r *audit.Record, emit func(span)) {
	e := r.Event
	for _, s := range run.pending {
		emit(s)
	}
	run.pending = nil
	s := &run.span
	s.end = max(nanos(r.Time), s.start)
	s.add("rlp.outcome", e.Outcome)
	s.add("rlp.exit_code", int64(e.ExitCode))
	s.add("rlp.reason", e.Reason)
	for _, name := range slices.Sorted(maps.Keys(e.Usage)) {
		s.add("rlp.usage."+name, e.Usage[name])
	}
	if len(e.Violations) > 0 {
		list := make([]string, len(e.Violations))
		for i, v := range e.Violations {
			list[i] = validText(v)
		}
		s.add("rlp.violations", list)
	}
	s.status = statusOK
	if e.Kind != audit.KindRunComplete {
		s.fail(e.Outcome, e.Message)
	}
	emit(*s)
}

func (t *tracer) emit(s span) {
	if !s.skip {
		t.spans = append(t.spans, s)
	}
}
