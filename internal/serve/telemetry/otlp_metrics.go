package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"runloop.dev/rlp/internal/record/otlp"
)

// A metricExporter sends metrics. The library collects them.
type metricExporter struct {
	to          *otlp.Sender
	temporality sdkmetric.TemporalitySelector
	aggregation sdkmetric.AggregationSelector
}

// metricExporter makes one, as OpenTelemetry's variables have it.
func (t *Telemetry) metricExporter() (*metricExporter, error) {
	e := &metricExporter{
		temporality: sdkmetric.CumulativeTemporalitySelector,
		aggregation: sdkmetric.DefaultAggregationSelector,
	}
	const temporality, histograms = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
		"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
	switch strings.ToLower(strings.TrimSpace(t.opt.Env(temporality))) {
	case "", "cumulative":
	case "delta":
		e.temporality = sdkmetric.DeltaTemporalitySelector
	case "lowmemory":
		e.temporality = sdkmetric.LowMemoryTemporalitySelector
	default:
		return nil, fmt.Errorf("sending metrics: %s: must be cumulative, delta or lowmemory", temporality)
	}
	switch strings.ToLower(strings.TrimSpace(t.opt.Env(histograms))) {
	case "", "explicit_bucket_histogram":
	case "base2_exponential_bucket_histogram":
		e.aggregation = exponential
	default:
		return nil, fmt.Errorf("sending metrics: %s: must be explicit_bucket_histogram or base2_exponential_bucket_histogram",
			histograms)
	}
	var err error
	e.to, err = t.sender(otlp.Metrics)
	return e, err
}

// exponential has histograms with buckets of their own, in the size of OpenTelemetry.
func exponential(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	if k == sdkmetric.InstrumentKindHistogram {
		return sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}
	}
	return sdkmetric.DefaultAggregationSelector(k)
}

// Temporality implements [sdkmetric.Exporter].
func (e *metricExporter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return e.temporality(k)
}

// Aggregation implements [sdkmetric.Exporter].
func (e *metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return e.aggregation(k)
}

// Export implements [sdkmetric.Exporter].
func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	body, err := appendMetrics(nil, m)
	return errors.Join(e.to.Send(ctx, body), err)
}

// ForceFlush implements [sdkmetric.Exporter]: nothing waits here.
func (e *metricExporter) ForceFlush(ctx context.Context) error { return ctx.Err() }

// Shutdown implements [sdkmetric.Exporter].
func (e *metricExporter) Shutdown(context.Context) error {
	e.to.Stop()
	return nil
}

// appendMetrics appends an ExportMetricsServiceRequest. A metric of a kind that it
// does not know is left out, and told.
func appendMetrics(dst []byte, m *metricdata.ResourceMetrics) ([]byte, error) {
	w := otlp.Wire(dst)
	var errs []error
	w.Message(1, func(w *otlp.Wire) { // ResourceMetrics
		writeResource(w, m.Resource)
		for _, s := range m.ScopeMetrics {
			w.Message(2, func(w *otlp.Wire) { // ScopeMetrics
				writeScope(w, s.Scope)
				for _, one := range s.Metrics {
					errs = append(errs, writeMetric(w, one))
				}
				w.Text(3, s.Scope.SchemaURL)
			})
		}
		w.Text(3, m.Resource.SchemaURL())
	})
	return w, errors.Join(errs...)
}

// writeMetric writes the field 2 of ScopeMetrics.
func writeMetric(w *otlp.Wire, m metricdata.Metrics) error {
	field, data := dataOf(m.Data)
	if data == nil {
		return fmt.Errorf("%s: a metric of the kind %T is not sent", m.Name, m.Data)
	}
	w.Message(2, func(w *otlp.Wire) {
		w.Text(1, m.Name)
		w.Text(2, m.Description)
		w.Text(3, m.Unit)
		w.Message(field, data)
	})
	return nil
}

// dataOf is the field of a metric that its data is in, and what writes it.
func dataOf(data metricdata.Aggregation) (uint64, func(*otlp.Wire)) {
	switch d := data.(type) {
	case metricdata.Gauge[int64]:
		return 5, func(w *otlp.Wire) { writePoints(w, d.DataPoints) }
	case metricdata.Gauge[float64]:
		return 5, func(w *otlp.Wire) { writePoints(w, d.DataPoints) }
	case metricdata.Sum[int64]:
		return 7, sum(d)
	case metricdata.Sum[float64]:
		return 7, sum(d)
	case metricdata.Histogram[int64]:
		return 9, histogram(d)
	case metricdata.Histogram[float64]:
		return 9, histogram(d)
	case metricdata.ExponentialHistogram[int64]:
		return 10, exponentialHistogram(d)
	case metricdata.ExponentialHistogram[float64]:
		return 10, exponentialHistogram(d)
	}
	return 0, nil
}
