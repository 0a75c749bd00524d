package telemetry

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"runloop.dev/rlp/internal/serve/service"
)

// A metricFamily is one metric as Prometheus reads it (text format 0.0.4).
type metricFamily struct {
	name, about, kind string
	series            []series
}

// A series is the lines of one set of labels.
type series struct {
	labels string
	lines  string
}

// Metrics serves the metrics as Prometheus reads them: to the operator of every
// tenant all of them, to another caller what is of its tenant or of nobody.
func (t *Telemetry) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var all metricdata.ResourceMetrics
		if err := t.reader.Collect(r.Context(), &all); err != nil {
			http.Error(w, "reading the metrics: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(exposition(t.families(service.CallerOf(r.Context()), &all)))
	})
}

// families are those of all metrics that a caller may know, by name.
func (t *Telemetry) families(who *service.Caller, all *metricdata.ResourceMetrics) []metricFamily {
	if who == nil {
		return nil
	}
	may := func(set attribute.Set) bool {
		tenant, is := set.Value(tenantLabel)
		return who.EveryTenant || !is || tenant.AsString() == who.Tenant
	}
	var list []metricFamily
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			f := familyOf(m, may)
			ofAnother := !who.EveryTenant && who.Tenant != t.opt.Tenant && slices.Contains(ofOneTenant(), f.name)
			if len(f.series) > 0 && !ofAnother {
				list = append(list, f)
			}
		}
	}
	slices.SortFunc(list, func(a, b metricFamily) int { return cmp.Compare(a.name, b.name) })
	return list
}

// ofOneTenant are the metrics that are about the log of Options.Tenant.
func ofOneTenant() []string {
	return []string{"rlp_log_records", "rlp_log_unsealed_records", "rlp_journals_waiting"}
}

// familyOf is a metric of the kinds that [metrics] has, with the series that may be
// known. A name has underscores for dots, then its unit, and _total where it counts.
func familyOf(m metricdata.Metrics, may func(attribute.Set) bool) metricFamily {
	f := metricFamily{name: strings.ReplaceAll(m.Name, ".", "_"), about: m.Description, kind: "gauge"}
	if m.Unit == "s" {
		f.name += "_seconds"
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		f.kind = "counter"
		f.name += "_total"
		for _, p := range data.DataPoints {
			f.add(p.Attributes, may, func(labels string) string {
				return fmt.Sprintf("%s%s %d\n", f.name, labels, p.Value)
			})
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			f.add(p.Attributes, may, func(labels string) string {
				return fmt.Sprintf("%s%s %s\n", f.name, labels, decimal(p.Value))
			})
		}
	case metricdata.Histogram[float64]:
		f.kind = "histogram"
		for _, p := range data.DataPoints {
			f.add(p.Attributes, may, func(labels string) string { return buckets(f.name, labels, p) })
		}
	}
	slices.SortFunc(f.series, func(a, b series) int { return cmp.Compare(a.labels, b.labels) })
	return f
}

// add adds a series, if it may be known.
func (f *metricFamily) add(set attribute.Set, may func(attribute.Set) bool, lines func(labels string) string) {
	if may(set) {
		labels := labelled(set)
		f.series = append(f.series, series{labels, lines(labels)})
	}
}

// buckets are the lines of a histogram: each bucket counts what the ones before it do.
func buckets(name, labels string, p metricdata.HistogramDataPoint[float64]) string {
	var b strings.Builder
	open := "{"
	if labels != "" {
		open = strings.TrimSuffix(labels, "}") + ","
	}
	sum := uint64(0)
	for i, n := range p.BucketCounts {
		bound := math.Inf(1)
		if i < len(p.Bounds) {
			bound = p.Bounds[i]
		}
		sum += n
		fmt.Fprintf(&b, "%s_bucket%sle=%q} %d\n", name, open, decimal(bound), sum)
	}
	fmt.Fprintf(&b, "%s_sum%s %s\n%s_count%s %d\n", name, labels, decimal(p.Sum), name, labels, p.Count)
	return b.String()
}

// decimal is a float as Prometheus writes it.
func decimal(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

var escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// labelled are the labels of a series in braces, "" where there are none.
func labelled(set attribute.Set) string {
	var pairs []string
	for _, kv := range set.ToSlice() {
		pairs = append(pairs, strings.ReplaceAll(string(kv.Key), ".", "_")+`="`+escapeLabel.Replace(kv.Value.String())+`"`)
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// exposition is what is served.
func exposition(list []metricFamily) []byte {
	var b bytes.Buffer
	for _, f := range list {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.about, f.name, f.kind)
		for _, s := range f.series {
			b.WriteString(s.lines)
		}
	}
	return b.Bytes()
}
