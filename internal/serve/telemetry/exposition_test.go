package telemetry

import (
	"context"
	"math"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"runloop.dev/rlp/internal/serve/service"
)

// What Prometheus reads is its text format: buckets that count those before them,
// labels whose values end no line and no value, series that were too many by a
// label without a dot.
func TestExpositionIsPrometheusText(t *testing.T) {
	w := &Telemetry{reader: sdkmetric.NewManualReader()}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader), sdkmetric.WithCardinalityLimit(2))
	k := &maker{m: meters.Meter("m")}
	runs, took := k.counter("rlp.runs", "runs"), k.seconds("rlp.took", "time")
	k.gauge("rlp.load", "", "load", func() (float64, bool) { return math.Inf(1), true })
	for i, agent := range []string{"a\"b\\c\nd 1", "b", "c"} {
		runs.Add(context.Background(), 1000000, metric.WithAttributes(attribute.String("agent", agent),
			attribute.String("z", "")))
		took.Record(context.Background(), float64(i)*200)
	}
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &all); err != nil || k.errs[0] != nil {
		t.Fatal(err, k.errs)
	}
	const want = `# HELP rlp_load load
# TYPE rlp_load gauge
rlp_load +Inf
# HELP rlp_runs_total runs
# TYPE rlp_runs_total counter
rlp_runs_total{agent="a\"b\\c\nd 1",z=""} 1000000
rlp_runs_total{otel_metric_overflow="true"} 2000000
# HELP rlp_took_seconds time
# TYPE rlp_took_seconds histogram
rlp_took_seconds_bucket{le="0.001"} 1
rlp_took_seconds_bucket{le="0.0025"} 1
rlp_took_seconds_bucket{le="0.005"} 1
rlp_took_seconds_bucket{le="0.01"} 1
rlp_took_seconds_bucket{le="0.025"} 1
rlp_took_seconds_bucket{le="0.05"} 1
rlp_took_seconds_bucket{le="0.1"} 1
rlp_took_seconds_bucket{le="0.25"} 1
rlp_took_seconds_bucket{le="0.5"} 1
rlp_took_seconds_bucket{le="1"} 1
rlp_took_seconds_bucket{le="2.5"} 1
rlp_took_seconds_bucket{le="5"} 1
rlp_took_seconds_bucket{le="10"} 1
rlp_took_seconds_bucket{le="30"} 1
rlp_took_seconds_bucket{le="60"} 1
rlp_took_seconds_bucket{le="300"} 2
rlp_took_seconds_bucket{le="+Inf"} 3
rlp_took_seconds_sum 600
rlp_took_seconds_count 3
`
	if got := string(exposition(w.families(&service.Caller{EveryTenant: true}, &all))); got != want {
		t.Errorf("%s", got)
	}
}
