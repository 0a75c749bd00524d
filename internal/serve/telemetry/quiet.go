package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// sayEvery is how often the log is told that a collector does not take what it is
// sent.
const sayEvery = time.Minute

// lost returns what logs, once in a while, that a collector is away, and why. The
// library itself would print each failure.
func (t *Telemetry) lost() func(signal string, err error) {
	var said atomic.Int64
	return func(signal string, err error) {
		now, last := t.opt.Now().UnixNano(), said.Load()
		if err == nil || now-last < int64(sayEvery) || !said.CompareAndSwap(last, now) {
			return
		}
		t.opt.Log.Warn("the collector does not take what it is sent; runs go on, and what does not fit the queue is dropped",
			slog.String("signal", signal), slog.String("error", err.Error()))
	}
}

// quietSpans is an exporter whose failures are told by lost alone.
type quietSpans struct {
	sdktrace.SpanExporter
	lost func(string, error)
}

func (q quietSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	q.lost("traces", q.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// quietMetrics is the same for metrics.
type quietMetrics struct {
	sdkmetric.Exporter
	lost func(string, error)
}

func (q quietMetrics) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	q.lost("metrics", q.Exporter.Export(ctx, m))
	return nil
}
