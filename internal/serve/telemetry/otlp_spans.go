package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"runloop.dev/rlp/internal/record/otlp"
)

// A spanExporter sends spans. The library batches them.
type spanExporter struct{ to *otlp.Sender }

// ExportSpans implements [sdktrace.SpanExporter].
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return e.to.Send(ctx, appendSpans(nil, spans))
}

// Shutdown implements [sdktrace.SpanExporter].
func (e spanExporter) Shutdown(context.Context) error {
	e.to.Stop()
	return nil
}

// A family of spans has its resource and scope in common.
type family struct {
	resource attribute.Distinct
	scope    instrumentation.Scope
}

// appendSpans appends an ExportTraceServiceRequest.
func appendSpans(dst []byte, spans []sdktrace.ReadOnlySpan) []byte {
	var order []family
	all := map[family][]sdktrace.ReadOnlySpan{}
	for _, s := range spans {
		f := family{s.Resource().Equivalent(), s.InstrumentationScope()}
		if all[f] == nil {
			order = append(order, f)
		}
		all[f] = append(all[f], s)
	}
	w := otlp.Wire(dst)
	for _, f := range order {
		about := all[f][0].Resource()
		w.Message(1, func(w *otlp.Wire) { // ResourceSpans
			writeResource(w, about)
			w.Message(2, func(w *otlp.Wire) { // ScopeSpans
				writeScope(w, f.scope)
				for _, s := range all[f] {
					w.Message(2, func(w *otlp.Wire) { writeSpan(w, s) })
				}
				w.Text(3, f.scope.SchemaURL)
			})
			w.Text(3, about.SchemaURL())
		})
	}
	return w
}

func writeSpan(w *otlp.Wire, s sdktrace.ReadOnlySpan) {
	at, parent := s.SpanContext(), s.Parent()
	writeIDs(w, at)
	w.Text(3, at.TraceState().String())
	if id := parent.SpanID(); id.IsValid() {
		w.Bytes(4, id[:])
	}
	w.Text(5, s.Name())
	w.Varint(6, uint64(s.SpanKind())) // the numbers are the same
	w.Fixed64(7, nanos(s.StartTime()))
	w.Fixed64(8, nanos(s.EndTime()))
	writeAttributes(w, 9, s.Attributes())
	w.Varint(10, number(s.DroppedAttributes()))
	for _, e := range s.Events() {
		w.Message(11, func(w *otlp.Wire) {
			w.Fixed64(1, nanos(e.Time))
			w.Text(2, e.Name)
			writeAttributes(w, 3, e.Attributes)
			w.Varint(4, number(e.DroppedAttributeCount))
		})
	}
	w.Varint(12, number(s.DroppedEvents()))
	for _, l := range s.Links() {
		w.Message(13, func(w *otlp.Wire) {
			writeIDs(w, l.SpanContext)
			w.Text(3, l.SpanContext.TraceState().String())
			writeAttributes(w, 4, l.Attributes)
			w.Varint(5, number(l.DroppedAttributeCount))
			w.Fixed32(6, flagsOf(l.SpanContext, l.SpanContext))
		})
	}
	w.Varint(14, number(s.DroppedLinks()))
	w.Message(15, func(w *otlp.Wire) {
		w.Text(2, s.Status().Description)
		w.Varint(3, statusOf(s.Status().Code))
	})
	w.Fixed32(16, flagsOf(at, parent))
}

func writeIDs(w *otlp.Wire, c trace.SpanContext) {
	id, span := c.TraceID(), c.SpanID()
	w.Bytes(1, id[:])
	w.Bytes(2, span[:])
}

// statusOf is the number that a collector has for a status.
func statusOf(c codes.Code) uint64 {
	switch c {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}

// flagsOf are those of the trace, that it is known whether the parent is another
// process's, and whether it is.
func flagsOf(c, parent trace.SpanContext) uint32 {
	const known, remote = 1 << 8, 1 << 9
	f := uint32(c.TraceFlags()) | known
	if parent.IsRemote() {
		f |= remote
	}
	return f
}
