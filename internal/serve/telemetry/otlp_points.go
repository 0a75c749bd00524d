package telemetry

import (
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"runloop.dev/rlp/internal/record/otlp"
)

// A numeric is what points of metrics are made of.
type numeric interface{ int64 | float64 }

// writeTemporality writes the field 2 of what has one.
func writeTemporality(w *otlp.Wire, t metricdata.Temporality) {
	switch t {
	case metricdata.DeltaTemporality:
		w.Varint(2, 1)
	case metricdata.CumulativeTemporality:
		w.Varint(2, 2)
	}
}

func sum[N numeric](s metricdata.Sum[N]) func(*otlp.Wire) {
	return func(w *otlp.Wire) {
		writePoints(w, s.DataPoints)
		writeTemporality(w, s.Temporality)
		w.Bool(3, s.IsMonotonic)
	}
}

// writePoints writes NumberDataPoints.
func writePoints[N numeric](w *otlp.Wire, list []metricdata.DataPoint[N]) {
	for _, p := range list {
		w.Message(1, func(w *otlp.Wire) {
			w.Fixed64(2, nanos(p.StartTime))
			w.Fixed64(3, nanos(p.Time))
			writeNumber(w, 4, 6, p.Value)
			writeExemplars(w, 5, p.Exemplars)
			writeAttributes(w, 7, p.Attributes.ToSlice())
		})
	}
}

// writeNumber writes a number to the field for fractions or to that for others.
func writeNumber[N numeric](w *otlp.Wire, double, integer uint64, v N) {
	switch v := any(v).(type) {
	case int64:
		w.Fixed64(integer, uint64(v))
	case float64:
		w.Double(double, v)
	}
}

func histogram[N numeric](h metricdata.Histogram[N]) func(*otlp.Wire) {
	return func(w *otlp.Wire) {
		for _, p := range h.DataPoints {
			w.Message(1, func(w *otlp.Wire) {
				w.Fixed64(2, nanos(p.StartTime))
				w.Fixed64(3, nanos(p.Time))
				w.Fixed64(4, p.Count)
				w.Double(5, float64(p.Sum))
				w.PackedFixed64(6, p.BucketCounts)
				w.PackedDouble(7, p.Bounds)
				writeExemplars(w, 8, p.Exemplars)
				writeAttributes(w, 9, p.Attributes.ToSlice())
				writeExtremum(w, 11, p.Min)
				writeExtremum(w, 12, p.Max)
			})
		}
		writeTemporality(w, h.Temporality)
	}
}

func exponentialHistogram[N numeric](h metricdata.ExponentialHistogram[N]) func(*otlp.Wire) {
	return func(w *otlp.Wire) {
		for _, p := range h.DataPoints {
			w.Message(1, func(w *otlp.Wire) {
				writeAttributes(w, 1, p.Attributes.ToSlice())
				w.Fixed64(2, nanos(p.StartTime))
				w.Fixed64(3, nanos(p.Time))
				w.Fixed64(4, p.Count)
				w.Double(5, float64(p.Sum))
				w.Zigzag(6, int64(p.Scale))
				w.Fixed64(7, p.ZeroCount)
				writeBuckets(w, 8, p.PositiveBucket)
				writeBuckets(w, 9, p.NegativeBucket)
				writeExemplars(w, 11, p.Exemplars)
				writeExtremum(w, 12, p.Min)
				writeExtremum(w, 13, p.Max)
				w.Double(14, p.ZeroThreshold)
			})
		}
		writeTemporality(w, h.Temporality)
	}
}

func writeBuckets(w *otlp.Wire, field uint64, b metricdata.ExponentialBucket) {
	w.Message(field, func(w *otlp.Wire) {
		w.Zigzag(1, int64(b.Offset))
		w.Packed(2, b.Counts)
	})
}

func writeExtremum[N numeric](w *otlp.Wire, field uint64, e metricdata.Extrema[N]) {
	if v, ok := e.Value(); ok {
		w.Double(field, float64(v))
	}
}

func writeExemplars[N numeric](w *otlp.Wire, field uint64, list []metricdata.Exemplar[N]) {
	for _, e := range list {
		w.Message(field, func(w *otlp.Wire) {
			w.Fixed64(2, nanos(e.Time))
			writeNumber(w, 3, 6, e.Value)
			if len(e.SpanID) > 0 {
				w.Bytes(4, e.SpanID)
			}
			if len(e.TraceID) > 0 {
				w.Bytes(5, e.TraceID)
			}
			writeAttributes(w, 7, e.FilteredAttributes)
		})
	}
}
