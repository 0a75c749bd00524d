package telemetry

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collectmetrics "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	metricsv1 "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	resources "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	tracesv1 "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	cumulative = metricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	delta      = metricsv1.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
)

// every is one attribute of each kind, empty values among them, and the same as
// collectors have it.
func every() ([]attribute.KeyValue, []*common.KeyValue) {
	text := func(s string) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
	}
	truth := func(b bool) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: b}}
	}
	whole := func(n int64) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
	}
	fraction := func(f float64) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: f}}
	}
	list := func(v ...*common.AnyValue) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: v}}}
	}
	pairs := []*common.KeyValue{{Key: "k", Value: text("v")}}
	given := []attribute.KeyValue{
		attribute.String("text", "x"), attribute.String("empty", ""), attribute.String("torn", "a\xffb"),
		attribute.Bool("true", true), attribute.Bool("false", false),
		attribute.Int64("minus", -5), attribute.Int64("zero", 0), attribute.Float64("fraction", 1.5),
		attribute.Float64("naught", 0),
		attribute.StringSlice("texts", []string{"a", ""}), attribute.BoolSlice("truths", []bool{true, false}),
		attribute.Int64Slice("numbers", []int64{0, -1}), attribute.Float64Slice("fractions", []float64{0, 2}),
		{Key: "bytes", Value: attribute.ByteSliceValue([]byte{0xff, 0})},
		{Key: "map", Value: attribute.MapValue(attribute.String("k", "v"))},
		{Key: "mixed", Value: attribute.SliceValue(attribute.StringValue("v"), attribute.Int64Value(1))},
		{Key: "none"},
	}
	want := []*common.KeyValue{
		{Key: "text", Value: text("x")},
		{Key: "empty", Value: text("")},
		{Key: "torn", Value: text("a\uFFFDb")},
		{Key: "true", Value: truth(true)},
		{Key: "false", Value: truth(false)},
		{Key: "minus", Value: whole(-5)},
		{Key: "zero", Value: whole(0)},
		{Key: "fraction", Value: fraction(1.5)},
		{Key: "naught", Value: fraction(0)},
		{Key: "texts", Value: list(text("a"), text(""))},
		{Key: "truths", Value: list(truth(true), truth(false))},
		{Key: "numbers", Value: list(whole(0), whole(-1))},
		{Key: "fractions", Value: list(fraction(0), fraction(2))},
		{Key: "bytes", Value: &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: []byte{0xff, 0}}}},
		{Key: "map", Value: &common.AnyValue{Value: &common.AnyValue_KvlistValue{
			KvlistValue: &common.KeyValueList{Values: pairs},
		}}},
		{Key: "mixed", Value: list(text("v"), whole(1))},
		{Key: "none", Value: &common.AnyValue{}},
	}
	return given, want
}

// same decodes got by OpenTelemetry's own types, and holds it against want.
func same(t *testing.T, got []byte, as, want proto.Message) {
	t.Helper()
	if err := proto.Unmarshal(got, as); err != nil || !proto.Equal(as, want) {
		t.Errorf("%v\ngot  %v\nwant %v", err, as, want)
	}
}

// Spans are what OpenTelemetry's own types read, whatever they hold.
func TestSpansAreOTLP(t *testing.T) {
	attrs, want := every()
	at := time.Unix(1_700_000_000, 123)
	nano := uint64(at.UnixNano())
	state, err := trace.ParseTraceState("a=b")
	if err != nil {
		t.Fatal(err)
	}
	ours := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
		TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	theirs := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{3},
		Remote: true,
	})
	res := resource.NewWithAttributes("of-resource", attribute.String("service.name", "rlp"))
	scope := instrumentation.Scope{
		Name: "rlp", Version: "1", SchemaURL: "of-scope",
		Attributes: attribute.NewSet(attribute.Bool("x", true)),
	}
	spans := tracetest.SpanStubs{{
		Name: "run", SpanContext: ours, Parent: theirs, SpanKind: trace.SpanKindServer, StartTime: at, EndTime: at.Add(5),
		Attributes: attrs, Resource: res, InstrumentationScope: scope,
		Events:            []sdktrace.Event{{Name: "decision", Time: at, Attributes: attrs, DroppedAttributeCount: 3}},
		Links:             []sdktrace.Link{{SpanContext: theirs, Attributes: attrs, DroppedAttributeCount: 4}},
		DroppedAttributes: 5, DroppedEvents: 6, DroppedLinks: 7, Status: sdktrace.Status{Code: codes.Error, Description: "d"},
	}, {
		Name: "other", SpanContext: theirs, SpanKind: trace.SpanKindClient, Resource: res,
		InstrumentationScope: instrumentation.Scope{Name: "other"},
	}, {
		Name: "good", SpanContext: ours, SpanKind: trace.SpanKindInternal, StartTime: at, Resource: res,
		InstrumentationScope: scope, Status: sdktrace.Status{Code: codes.Ok},
	}}
	id, span, parent := []byte{15: 0}, []byte{0: 2, 7: 0}, []byte{0: 3, 7: 0}
	id[0] = 1
	about := &resources.Resource{Attributes: []*common.KeyValue{{
		Key:   "service.name",
		Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "rlp"}},
	}}}
	same(t, appendSpans(nil, spans.Snapshots()), &collecttraces.ExportTraceServiceRequest{},
		&collecttraces.ExportTraceServiceRequest{ResourceSpans: []*tracesv1.ResourceSpans{
			{Resource: about, SchemaUrl: "of-resource", ScopeSpans: []*tracesv1.ScopeSpans{{
				Scope: &common.InstrumentationScope{
					Name: "rlp", Version: "1",
					Attributes: []*common.KeyValue{{
						Key:   "x",
						Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}},
					}},
				}, SchemaUrl: "of-scope",
				Spans: []*tracesv1.Span{{
					TraceId: id, SpanId: span, TraceState: "a=b", ParentSpanId: parent, Name: "run",
					Kind: tracesv1.Span_SPAN_KIND_SERVER, StartTimeUnixNano: nano, EndTimeUnixNano: nano + 5, Attributes: want,
					Events: []*tracesv1.Span_Event{{
						Name: "decision", TimeUnixNano: nano, Attributes: want,
						DroppedAttributesCount: 3,
					}},
					Links: []*tracesv1.Span_Link{{
						TraceId: id, SpanId: parent, Attributes: want,
						DroppedAttributesCount: 4, Flags: 0x300,
					}},
					DroppedAttributesCount: 5, DroppedEventsCount: 6, DroppedLinksCount: 7,
					Status: &tracesv1.Status{Code: tracesv1.Status_STATUS_CODE_ERROR, Message: "d"}, Flags: 0x301,
				}, {
					TraceId: id, SpanId: span, TraceState: "a=b", Name: "good", Kind: tracesv1.Span_SPAN_KIND_INTERNAL,
					StartTimeUnixNano: nano, Status: &tracesv1.Status{Code: tracesv1.Status_STATUS_CODE_OK}, Flags: 0x101,
				}},
			}}},
			{Resource: about, SchemaUrl: "of-resource", ScopeSpans: []*tracesv1.ScopeSpans{{
				Scope: &common.InstrumentationScope{Name: "other"},
				Spans: []*tracesv1.Span{{
					TraceId: id, SpanId: parent, Name: "other", Kind: tracesv1.Span_SPAN_KIND_CLIENT,
					Status: &tracesv1.Status{}, Flags: 0x100,
				}},
			}}},
		}})
}

// Metrics are what OpenTelemetry's own types read, of each kind that the library
// makes; of a kind that it does not make only the name is told.
func TestMetricsAreOTLP(t *testing.T) {
	attrs, want := every()
	set, sorted := attribute.NewSet(attrs[0]), want[:1]
	at := time.Unix(1_700_000_000, 123)
	nano := uint64(at.UnixNano())
	example := []metricdata.Exemplar[float64]{{
		FilteredAttributes: attrs, Time: at, Value: 0, SpanID: []byte{2},
		TraceID: []byte{1},
	}}
	examples := []*metricsv1.Exemplar{{
		FilteredAttributes: want, TimeUnixNano: nano, Value: &metricsv1.Exemplar_AsDouble{},
		SpanId: []byte{2}, TraceId: []byte{1},
	}}
	data := &metricdata.ResourceMetrics{
		Resource: resource.NewSchemaless(attrs[0]),
		ScopeMetrics: []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: "rlp"}, Metrics: []metricdata.Metrics{
			{
				Name: "gauge", Description: "about", Unit: "s",
				Data: metricdata.Gauge[float64]{DataPoints: []metricdata.DataPoint[float64]{{
					Attributes: set, StartTime: at,
					Time: at, Value: 0, Exemplars: example,
				}}},
			},
			{Name: "gauges", Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{
				{Time: at, Value: -2},
				{Time: at},
			}}},
			{Name: "sum", Data: metricdata.Sum[int64]{
				Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
				DataPoints: []metricdata.DataPoint[int64]{{
					Attributes: set, Time: at, Value: 7,
					Exemplars: []metricdata.Exemplar[int64]{{Time: at, Value: 7}},
				}},
			}},
			{Name: "sums", Data: metricdata.Sum[float64]{
				Temporality: metricdata.DeltaTemporality,
				DataPoints:  []metricdata.DataPoint[float64]{{Time: at, Value: -1.5}},
			}},
			{Name: "histogram", Data: metricdata.Histogram[float64]{
				Temporality: metricdata.CumulativeTemporality,
				DataPoints: []metricdata.HistogramDataPoint[float64]{
					{
						Attributes: set, StartTime: at, Time: at, Count: 3, Bounds: []float64{.5, 300}, BucketCounts: []uint64{1, 0, 2},
						Min: metricdata.NewExtrema(0.), Max: metricdata.NewExtrema(900.), Sum: 901, Exemplars: example,
					}, {Time: at},
				},
			}},
			{Name: "histograms", Data: metricdata.Histogram[int64]{
				Temporality: metricdata.DeltaTemporality,
				DataPoints:  []metricdata.HistogramDataPoint[int64]{{Time: at, Count: 1, Sum: -3, BucketCounts: []uint64{1}}},
			}},
			{Name: "exponential", Data: metricdata.ExponentialHistogram[float64]{
				Temporality: metricdata.CumulativeTemporality,
				DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{
					Attributes: set, StartTime: at, Time: at, Count: 5, Min: metricdata.NewExtrema(-4.),
					Max: metricdata.NewExtrema(1e9), Sum: -1, Scale: -3, ZeroCount: 2, ZeroThreshold: .25, Exemplars: example,
					PositiveBucket: metricdata.ExponentialBucket{Offset: -7, Counts: []uint64{1, 0, 300}},
					NegativeBucket: metricdata.ExponentialBucket{Offset: 7, Counts: []uint64{1}},
				}},
			}},
			{Name: "exponentials", Data: metricdata.ExponentialHistogram[int64]{
				Temporality: metricdata.DeltaTemporality,
				DataPoints:  []metricdata.ExponentialHistogramDataPoint[int64]{{Time: at, Sum: 9, Scale: 20}},
			}},
			{Name: "foreign", Data: metricdata.Summary{}},
		}}},
	}
	double := proto.Float64
	got, err := appendMetrics(nil, data)
	if err == nil || !strings.Contains(err.Error(), "foreign: a metric of the kind metricdata.Summary is not sent") {
		t.Error(err)
	}
	same(t, got, &collectmetrics.ExportMetricsServiceRequest{},
		&collectmetrics.ExportMetricsServiceRequest{ResourceMetrics: []*metricsv1.ResourceMetrics{{
			Resource: &resources.Resource{Attributes: sorted},
			ScopeMetrics: []*metricsv1.ScopeMetrics{{
				Scope: &common.InstrumentationScope{Name: "rlp"},
				Metrics: []*metricsv1.Metric{
					{
						Name: "gauge", Description: "about", Unit: "s",
						Data: &metricsv1.Metric_Gauge{Gauge: &metricsv1.Gauge{DataPoints: []*metricsv1.NumberDataPoint{
							{
								Attributes: sorted, StartTimeUnixNano: nano, TimeUnixNano: nano, Value: &metricsv1.NumberDataPoint_AsDouble{},
								Exemplars: examples,
							},
						}}},
					},
					{Name: "gauges", Data: &metricsv1.Metric_Gauge{Gauge: &metricsv1.Gauge{DataPoints: []*metricsv1.NumberDataPoint{
						{TimeUnixNano: nano, Value: &metricsv1.NumberDataPoint_AsInt{AsInt: -2}},
						{TimeUnixNano: nano, Value: &metricsv1.NumberDataPoint_AsInt{}},
					}}}},
					{Name: "sum", Data: &metricsv1.Metric_Sum{Sum: &metricsv1.Sum{
						AggregationTemporality: cumulative, IsMonotonic: true,
						DataPoints: []*metricsv1.NumberDataPoint{
							{
								Attributes: sorted, TimeUnixNano: nano, Value: &metricsv1.NumberDataPoint_AsInt{AsInt: 7},
								Exemplars: []*metricsv1.Exemplar{{TimeUnixNano: nano, Value: &metricsv1.Exemplar_AsInt{AsInt: 7}}},
							},
						},
					}}},
					{Name: "sums", Data: &metricsv1.Metric_Sum{Sum: &metricsv1.Sum{
						AggregationTemporality: delta,
						DataPoints: []*metricsv1.NumberDataPoint{
							{TimeUnixNano: nano, Value: &metricsv1.NumberDataPoint_AsDouble{AsDouble: -1.5}},
						},
					}}},
					{Name: "histogram", Data: &metricsv1.Metric_Histogram{Histogram: &metricsv1.Histogram{
						AggregationTemporality: cumulative,
						DataPoints: []*metricsv1.HistogramDataPoint{
							{
								Attributes: sorted, StartTimeUnixNano: nano, TimeUnixNano: nano, Count: 3, Sum: double(901),
								BucketCounts: []uint64{1, 0, 2}, ExplicitBounds: []float64{.5, 300}, Min: double(0), Max: double(900),
								Exemplars: examples,
							},
							{TimeUnixNano: nano, Sum: double(0)},
						},
					}}},
					{Name: "histograms", Data: &metricsv1.Metric_Histogram{Histogram: &metricsv1.Histogram{
						AggregationTemporality: delta,
						DataPoints: []*metricsv1.HistogramDataPoint{
							{TimeUnixNano: nano, Count: 1, Sum: double(-3), BucketCounts: []uint64{1}},
						},
					}}},
					{Name: "exponential", Data: &metricsv1.Metric_ExponentialHistogram{
						ExponentialHistogram: &metricsv1.ExponentialHistogram{
							AggregationTemporality: cumulative,
							DataPoints: []*metricsv1.ExponentialHistogramDataPoint{{
								Attributes: sorted, StartTimeUnixNano: nano, TimeUnixNano: nano, Count: 5, Sum: double(-1), Scale: -3,
								ZeroCount: 2, ZeroThreshold: .25, Min: double(-4), Max: double(1e9), Exemplars: examples,
								Positive: &metricsv1.ExponentialHistogramDataPoint_Buckets{Offset: -7, BucketCounts: []uint64{1, 0, 300}},
								Negative: &metricsv1.ExponentialHistogramDataPoint_Buckets{Offset: 7, BucketCounts: []uint64{1}},
							}},
						},
					}},
					{Name: "exponentials", Data: &metricsv1.Metric_ExponentialHistogram{
						ExponentialHistogram: &metricsv1.ExponentialHistogram{
							AggregationTemporality: delta,
							DataPoints: []*metricsv1.ExponentialHistogramDataPoint{{
								TimeUnixNano: nano, Sum: double(9), Scale: 20, Positive: &metricsv1.ExponentialHistogramDataPoint_Buckets{},
								Negative: &metricsv1.ExponentialHistogramDataPoint_Buckets{},
							}},
						},
					}},
				},
			}},
		}}})
}

// The variables for metrics choose what the library is asked for.
func TestMetricVariables(t *testing.T) {
	const temporality, histograms = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
		"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"
	exporter := func(name, value string) (*metricExporter, error) {
		t.Helper()
		o := &Telemetry{opt: Options{Collector: "http://127.0.0.1:4318", Env: func(n string) string {
			return map[string]string{name: value}[n]
		}}}
		return o.metricExporter()
	}
	const counter, both, histogram = sdkmetric.InstrumentKindCounter, sdkmetric.InstrumentKindUpDownCounter,
		sdkmetric.InstrumentKindHistogram
	for value, want := range map[string][3]metricdata.Temporality{
		"":           {metricdata.CumulativeTemporality, metricdata.CumulativeTemporality, metricdata.CumulativeTemporality},
		"Cumulative": {metricdata.CumulativeTemporality, metricdata.CumulativeTemporality, metricdata.CumulativeTemporality},
		"delta":      {metricdata.DeltaTemporality, metricdata.CumulativeTemporality, metricdata.DeltaTemporality},
		"lowmemory":  {metricdata.DeltaTemporality, metricdata.CumulativeTemporality, metricdata.DeltaTemporality},
	} {
		e, err := exporter(temporality, value)
		if err != nil || [3]metricdata.Temporality{
			e.Temporality(counter), e.Temporality(both),
			e.Temporality(histogram),
		} != want {
			t.Errorf("%s: %v", value, err)
		}
	}
	for value, want := range map[string]bool{
		"": false, "explicit_bucket_histogram": false,
		"base2_exponential_bucket_histogram": true,
	} {
		e, err := exporter(histograms, value)
		if err != nil {
			t.Fatal(err)
		}
		_, is := e.Aggregation(histogram).(sdkmetric.AggregationBase2ExponentialHistogram)
		if _, sums := e.Aggregation(counter).(sdkmetric.AggregationSum); is != want || !sums {
			t.Errorf("%s: %T", value, e.Aggregation(histogram))
		}
	}
	for _, name := range []string{temporality, histograms, "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT"} {
		if _, err := exporter(name, "sometimes"); err == nil || !strings.Contains(err.Error(), "sending metrics: "+name) ||
			strings.Contains(err.Error(), "sometimes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
