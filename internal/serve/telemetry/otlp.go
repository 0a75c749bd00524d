package telemetry

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"

	"runloop.dev/rlp/internal/record/otlp"
)

// sender is what sends a signal, until t is closed.
func (t *Telemetry) sender(signal otlp.Signal) (*otlp.Sender, error) {
	set, err := otlp.ReadSettings(signal, t.opt.Collector, t.opt.Env)
	if err != nil {
		return nil, fmt.Errorf("sending %s: %w", signal, err)
	}
	if set.Header.Get("User-Agent") == "" {
		set.Header.Set("User-Agent", "rlp/"+t.opt.Version)
	}
	to := otlp.NewSender(set, t.opt.Now)
	t.senders = append(t.senders, to)
	return to, nil
}

// What traces and metrics have in common is written here. Numbers are those of the
// fields in opentelemetry-proto.

func writeResource(w *otlp.Wire, r *resource.Resource) {
	w.Message(1, func(w *otlp.Wire) { writeAttributes(w, 1, r.Attributes()) })
}

func writeScope(w *otlp.Wire, s instrumentation.Scope) {
	w.Message(1, func(w *otlp.Wire) {
		w.Text(1, s.Name)
		w.Text(2, s.Version)
		writeAttributes(w, 3, s.Attributes.ToSlice())
	})
}

func writeAttributes(w *otlp.Wire, field uint64, list []attribute.KeyValue) {
	for _, a := range list {
		w.Message(field, func(w *otlp.Wire) {
			w.Text(1, string(a.Key))
			w.Message(2, func(w *otlp.Wire) { writeValue(w, a.Value) })
		})
	}
}

// writeValue writes an AnyValue, whose fields are written though they are empty:
// that one is there says what it is.
func writeValue(w *otlp.Wire, v attribute.Value) {
	switch v.Type() {
	case attribute.STRING:
		w.String(1, v.AsString())
	case attribute.BOOL:
		w.Bool(2, v.AsBool())
	case attribute.INT64:
		w.Oneof(3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		w.Double(4, v.AsFloat64())
	case attribute.STRINGSLICE:
		writeList(w, v.AsStringSlice(), attribute.StringValue)
	case attribute.BOOLSLICE:
		writeList(w, v.AsBoolSlice(), attribute.BoolValue)
	case attribute.INT64SLICE:
		writeList(w, v.AsInt64Slice(), attribute.Int64Value)
	case attribute.FLOAT64SLICE:
		writeList(w, v.AsFloat64Slice(), attribute.Float64Value)
	case attribute.SLICE:
		writeList(w, v.AsSlice(), func(v attribute.Value) attribute.Value { return v })
	case attribute.MAP:
		w.Message(6, func(w *otlp.Wire) { writeAttributes(w, 1, v.AsMap()) })
	case attribute.BYTESLICE:
		w.Bytes(7, v.AsByteSlice())
	}
}

func writeList[T any](w *otlp.Wire, list []T, value func(T) attribute.Value) {
	w.Message(5, func(w *otlp.Wire) {
		for _, v := range list {
			w.Message(1, func(w *otlp.Wire) { writeValue(w, value(v)) })
		}
	})
}

// nanos is a time in nanoseconds since 1970; none is 0.
func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

// number is a count that may have no sign and 32 bits.
func number(n int) uint64 { return uint64(min(max(n, 0), math.MaxUint32)) }
