// Package telemetry tells collectors what the service does: traces of runs and
// metrics over OTLP, and the same metrics as Prometheus reads them.
//
// Its law: what is told are names that the host made or parsed, numbers and times;
// never what a caller sent, what an agent said or touched, and no secret: no input,
// output, argument, target or message is looked at. Everything is bounded: the
// values of each label, the events of a span, what waits for a collector. Nothing
// here waits for a collector, and a run is none the slower for one that is down.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"runloop.dev/rlp/internal/record/otlp"
	"runloop.dev/rlp/internal/serve/service"
)

// Options are what [New] is made from. Now is needed.
type Options struct {
	// Collector is the base of an OTLP address over HTTP, as http://127.0.0.1:4318;
	// "" is what the variables OTEL_EXPORTER_OTLP_ENDPOINT and its like name, and
	// without them nothing is sent.
	Collector string
	Env       func(string) string // the environment; nil: there is none
	Version   string              // of this program
	Now       func() time.Time
	Log       *slog.Logger // nil: nothing is logged
	// Tenant is whose log LogSize, LogUnsealed and Backlog are about.
	Tenant string
	// Load, LogSize, LogUnsealed and Backlog are asked when somebody reads the
	// metrics; nil: they are not told.
	Load        func() service.Load
	LogSize     func() (records uint64, ok bool)
	LogUnsealed func() (records uint64, ok bool) // behind the newest checkpoint
	Backlog     func() (journals int64, ok bool) // that are not taken in
	// Every is how often metrics are sent; 0: 15 s.
	Every time.Duration
}

// Telemetry is a [service.Watcher].
type Telemetry struct {
	opt     Options
	reader  *sdkmetric.ManualReader  // of whoever asks for them
	traces  *sdktrace.TracerProvider // nil: nobody collects
	meters  *sdkmetric.MeterProvider
	metrics *metrics
	names   names
	senders []*otlp.Sender

	mu    sync.Mutex
	spans map[string]*span // by run
}

var _ service.Watcher = (*Telemetry)(nil)

const usualEvery = 15 * time.Second

// New begins to watch. Close ends it.
func New(o Options) (*Telemetry, error) {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if o.Every <= 0 {
		o.Every = usualEvery
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Telemetry{opt: o, reader: sdkmetric.NewManualReader(), spans: map[string]*span{}}
	about := resource.NewSchemaless(attribute.String("service.name", "rlp"), attribute.String("service.version",
		o.Version))
	meters := []sdkmetric.Option{
		sdkmetric.WithReader(t.reader), sdkmetric.WithResource(about),
		sdkmetric.WithCardinalityLimit(mostSeries),
	}
	if t.collected("TRACES") {
		if err := t.trace(about); err != nil {
			return nil, err
		}
	}
	if t.collected("METRICS") {
		e, err := t.metricExporter()
		if err != nil {
			return nil, err
		}
		meters = append(meters, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(quietMetrics{e, t.lost()},
			sdkmetric.WithInterval(o.Every))))
	}
	t.meters = sdkmetric.NewMeterProvider(meters...)
	var err error
	t.metrics, err = t.newMetrics(t.meters.Meter("runloop.dev/rlp"))
	return t, err
}

// Bounds of what waits for a collector, and of what one span or series holds.
const (
	mostWaiting = 4096 // spans; more are dropped
	mostSeries  = 2000 // of one metric
	mostEvents  = 128  // of one span
)

// trace has spans sent.
func (t *Telemetry) trace(about *resource.Resource) error {
	to, err := t.sender(otlp.Traces)
	if err != nil {
		return err
	}
	limits := sdktrace.NewSpanLimits()
	limits.EventCountLimit, limits.AttributeValueLengthLimit = mostEvents, mostText
	t.traces = sdktrace.NewTracerProvider(
		sdktrace.WithResource(about), sdktrace.WithIDGenerator(&ids{}), sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithBatcher(quietSpans{spanExporter{to}, t.lost()}, sdktrace.WithMaxQueueSize(mostWaiting)),
	)
	return nil
}

// collected reports whether anybody collects a signal.
func (t *Telemetry) collected(signal string) bool {
	if strings.EqualFold(t.opt.Env("OTEL_SDK_DISABLED"), "true") ||
		strings.EqualFold(t.opt.Env("OTEL_"+signal+"_EXPORTER"), "none") {
		return false
	}
	return t.opt.Collector != "" || t.opt.Env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || t.opt.Env("OTEL_EXPORTER_OTLP_"+
		signal+"_ENDPOINT") != ""
}

// Close sends what waits, for as long as ctx lasts, and ends all.
func (t *Telemetry) Close(ctx context.Context) error {
	defer func() { // the library would go on after ctx has ended
		for _, s := range t.senders {
			s.Stop()
		}
	}()
	var errs []error
	if t.traces != nil {
		errs = append(errs, t.traces.Shutdown(ctx))
	}
	return errors.Join(append(errs, t.meters.Shutdown(ctx))...)
}
