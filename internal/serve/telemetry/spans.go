package telemetry

import (
	"context"
	"crypto/rand"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// A span is that of a run which has not ended.
type span struct {
	trace.Span
	ctx     context.Context
	events  int
	dropped int64
}

// mostSpans is how many runs may have a span at a time: those that wait count.
const mostSpans = 1 << 16

// Event implements [service.Watcher].
func (t *Telemetry) Event(e service.Event) {
	ctx := context.Background()
	st := &e.State
	switch e.Name {
	case "run.queued":
		t.begin(st, st.QueuedAt.Time)
	case "run.started":
		if !st.StartedAt.IsZero() && st.ParentRun == "" {
			t.metrics.waited.Record(ctx, st.StartedAt.Sub(st.QueuedAt.Time).Seconds())
		}
		t.begin(st, st.StartedAt.Time)
		t.note(st.RunID, e.Name, st.StartedAt.Time)
	case "run.compiled", "run.running":
		t.note(st.RunID, e.Name, t.opt.Now())
	case "run.ended":
		tenant, agent := t.names.labels(st.Tenant, st.Agent)
		outcome := outcomeOf(st)
		t.metrics.runs.Add(ctx, 1, labels(tenantLabel, tenant, "agent", agent, "outcome", outcome))
		if !st.StartedAt.IsZero() {
			t.metrics.took.Record(ctx, st.EndedAt.Sub(st.StartedAt.Time).Seconds(), labels("outcome", outcome))
		}
		t.end(st, outcome)
	}
}

// outcomeOf is how a run ended, in one word of few.
func outcomeOf(st *service.State) string {
	if st.Outcome == "" {
		return st.State
	}
	return string(st.Outcome)
}

// Record implements [service.Watcher].
func (t *Telemetry) Record(r *audit.Record) {
	ctx := context.Background()
	switch {
	case r.Decision != nil:
		d, word := r.Decision, "allow"
		if d.AtStart() { // counted nowhere
			return
		}
		if d.Deny {
			word = "deny"
			t.metrics.denied.Add(ctx, 1, labels("reason", d.Reason))
		}
		t.metrics.decisions.Add(ctx, 1, labels("cap", d.Cap, "decision", word))
		t.note(r.Head.RunID, "decision", r.Time, attribute.String("rlp.cap", d.Cap), attribute.String("rlp.op", d.Op),
			attribute.String("rlp.decision", word), attribute.String("rlp.reason", d.Reason))
	case r.Event != nil && r.Event.Kind == audit.KindCallDone:
		t.note(r.Head.RunID, "call", r.Time, attribute.String("rlp.verb", r.Event.Verb), attribute.String("rlp.status",
			r.Event.Status),
			attribute.Float64("rlp.duration_ms", r.Event.DurationMS), attribute.Int64("rlp.bytes", r.Event.Bytes))
	}
}

// Report implements [service.Watcher].
func (t *Telemetry) Report(st service.State, r *launcher.Report) {
	s := t.span(st.RunID)
	if s == nil || r == nil {
		return
	}
	s.SetAttributes(attribute.Int64("rlp.fuel", r.Usage.Fuel), attribute.Int64("rlp.memory_bytes", r.Usage.MemoryBytes),
		attribute.Int64("rlp.hostcalls", r.Usage.Hostcalls),
		attribute.Int64("rlp.stdout_bytes", r.Usage.StdoutBytes), attribute.Bool("rlp.compiled", r.Usage.Compiled))
}

func (t *Telemetry) span(run string) *span {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spans[run]
}

// begin begins the span of a run that has none: below that of the run which
// launched it, or below the one that asked.
func (t *Telemetry) begin(st *service.State, at time.Time) {
	if t.traces == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spans[st.RunID] != nil || len(t.spans) >= mostSpans {
		return
	}
	ctx := context.Background()
	if up := t.spans[st.ParentRun]; up != nil {
		ctx = up.ctx
	} else if id, err := trace.TraceIDFromHex(st.TraceID); err == nil {
		if asks, err := trace.SpanIDFromHex(st.ParentSpan); err == nil {
			ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: id, SpanID: asks,
				TraceFlags: trace.FlagsSampled, Remote: true,
			}))
		} else {
			ctx = context.WithValue(ctx, wanted{}, id)
		}
	}
	ctx, s := t.traces.Tracer("runloop.dev/rlp").Start(ctx, "run", trace.WithTimestamp(at),
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("rlp.run_id", st.RunID), attribute.String("rlp.tenant", st.Tenant),
			attribute.String("rlp.door", string(st.Door))))
	t.spans[st.RunID] = &span{Span: s, ctx: ctx}
}

// note adds an event to the span of a run, as long as there is room.
func (t *Telemetry) note(run, name string, at time.Time, about ...attribute.KeyValue) {
	if t.traces == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.spans[run]
	switch {
	case s == nil:
	case s.events >= mostEvents:
		s.dropped++
	default:
		s.events++
		s.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(about...))
	}
}

// end ends the span of a run.
func (t *Telemetry) end(st *service.State, outcome string) {
	t.mu.Lock()
	s := t.spans[st.RunID]
	delete(t.spans, st.RunID)
	t.mu.Unlock()
	if s == nil {
		return
	}
	if st.Agent != "" {
		s.SetName("run " + st.Agent)
	}
	s.SetAttributes(attribute.String("rlp.agent", st.Agent), attribute.String("rlp.outcome", outcome),
		attribute.Int("rlp.exit_code", st.ExitCode),
		attribute.Int64("rlp.allowed", st.Allowed), attribute.Int64("rlp.denied", st.Denied), attribute.Int64("rlp.queue_ms",
			st.QueueMS), attribute.Int64("rlp.events_dropped", s.dropped))
	if outcome != string(launcher.OK) {
		s.SetStatus(codes.Error, outcome)
	}
	s.End(trace.WithTimestamp(st.EndedAt.Time))
}

// ids names spans, and has a trace be the run's.
type ids struct{}

type wanted struct{}

// NewIDs implements the library's IDGenerator.
func (*ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, ok := ctx.Value(wanted{}).(trace.TraceID)
	if !ok {
		rand.Read(id[:]) //nolint:errcheck // it never fails
	}
	return id, newSpan()
}

// NewSpanID implements the library's IDGenerator.
func (*ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return newSpan() }

func newSpan() (id trace.SpanID) {
	rand.Read(id[:]) //nolint:errcheck // the same
	return id
}
