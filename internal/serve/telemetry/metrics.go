package telemetry

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"runloop.dev/rlp/internal/serve/service"
)

// metrics are the instruments. docs/watching.md lists them.
type metrics struct {
	runs, decisions, denied, requests, strangers metric.Int64Counter
	waited, took                                 metric.Float64Histogram
}

// maker makes instruments and keeps what went wrong.
type maker struct {
	m    metric.Meter
	errs []error
}

func (k *maker) counter(name, about string) metric.Int64Counter {
	c, err := k.m.Int64Counter(name, metric.WithDescription(about))
	k.errs = append(k.errs, err)
	return c
}

func (k *maker) seconds(name, about string) metric.Float64Histogram {
	h, err := k.m.Float64Histogram(name, metric.WithDescription(about), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300))
	k.errs = append(k.errs, err)
	return h
}

// gauge asks value when somebody reads the metrics.
func (k *maker) gauge(name, unit, about string, value func() (float64, bool)) {
	_, err := k.m.Float64ObservableGauge(name, metric.WithDescription(about), metric.WithUnit(unit),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if v, ok := value(); ok {
				o.Observe(v)
			}
			return nil
		}))
	k.errs = append(k.errs, err)
}

func (t *Telemetry) newMetrics(m metric.Meter) (*metrics, error) {
	k := &maker{m: m}
	all := &metrics{
		runs:      k.counter("rlp.runs", "runs that ended, by tenant, agent and outcome"),
		decisions: k.counter("rlp.decisions", "decisions of the gate, by capability and decision"),
		denied:    k.counter("rlp.denied", "denials, by reason"),
		requests:  k.counter("rlp.http.requests", "requests that were answered, by route and status"),
		strangers: k.counter("rlp.auth.failures", "requests of whoever could not prove who asks"),
		waited:    k.seconds("rlp.run.wait", "time in the queue"),
		took:      k.seconds("rlp.run.duration", "time from start to end, by outcome"),
	}
	t.gauges(k)
	err := errors.Join(k.errs...)
	if err == nil {
		all.strangers.Add(context.Background(), 0) // a rate has its first step from 0
	}
	return all, err
}

func (t *Telemetry) gauges(k *maker) {
	if load := t.opt.Load; load != nil {
		for _, g := range []struct {
			name, about string
			of          func(service.Load) int
		}{
			{"rlp.runs.running", "runs that are under way", func(l service.Load) int { return l.Running }},
			{"rlp.queue.waiting", "runs that wait for a worker", func(l service.Load) int { return l.Waiting }},
			{"rlp.queue.places", "runs that may wait at most", func(l service.Load) int { return l.Queue }},
			{"rlp.workers", "runs that may be under way at most", func(l service.Load) int { return l.Workers }},
		} {
			k.gauge(g.name, "", g.about, func() (float64, bool) { return float64(g.of(load())), true })
		}
	}
	if size := t.opt.LogSize; size != nil {
		k.gauge("rlp.log.records", "", "records in the audit log", func() (float64, bool) {
			n,
				ok := size()
			return float64(n), ok
		})
	}
	if unsealed := t.opt.LogUnsealed; unsealed != nil {
		k.gauge("rlp.log.unsealed.records", "", "records in the audit log that no signed checkpoint covers yet",
			func() (float64, bool) { n, ok := unsealed(); return float64(n), ok })
	}
	if backlog := t.opt.Backlog; backlog != nil {
		k.gauge("rlp.journals.waiting", "", "journals that are not in the log yet", func() (float64, bool) {
			n,
				ok := backlog()
			return float64(n), ok
		})
	}
}

// A label's values are few: who makes up agents is counted with others.
const (
	mostNames = 200
	mostText  = 128 // bytes of one value
	other     = "other"

	tenantLabel = "tenant"
)

// names are the first pairs of a tenant and an agent that were seen.
type names struct {
	mu   sync.Mutex
	seen map[[2]string]bool
}

func (n *names) labels(tenant, agent string) (string, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seen = map[[2]string]bool{}
	}
	pair := [2]string{tenant, agent}
	switch {
	case n.seen[pair]:
	case len(n.seen) < mostNames && len(tenant) <= mostText && len(agent) <= mostText:
		n.seen[pair] = true
	default:
		return other, other
	}
	return tenant, agent
}

func labels(pairs ...string) metric.MeasurementOption {
	set := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		set = append(set, attribute.String(pairs[i], pairs[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(set...))
}
