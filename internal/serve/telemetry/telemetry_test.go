package telemetry_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metricsv1 "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	tracev1 "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/internal/serve/telemetry"
	"runloop.dev/rlp/launcher"
)

const (
	canary = "CANARY-7f3a"
	asked  = "0af7651916cd43dd8448eb211c80319c"
	parent = "b7ad6b7169203331"
)

// A host runs nothing, and records what a run would, with a canary wherever a
// payload or a secret may be.
type host struct {
	service.Host
	calls int
	saw   []byte
}

func (h *host) Check(context.Context, *service.Caller, *service.Request) error { return nil }

func (h *host) Launch(_ context.Context, _ *service.Caller, q *service.Request, b service.Begin) (*launcher.Report,
	error,
) {
	h.saw = append(h.saw, q.Input...)
	b.Event("run.started", map[string]any{"run_id": b.RunID, "agent": "writer", "version": "1"})
	b.Event("run.running", map[string]any{"run_id": b.RunID})
	head := audit.Head{RunID: b.RunID, TraceID: q.TraceID, Tenant: "acme", Agent: "writer"}
	for i := range h.calls {
		b.Record(&audit.Record{Head: head, Time: time.Now(), RunSeq: uint64(2*i + 1), Decision: &audit.DecisionRecord{
			Cap: "fs.read", Op: "path_open", Target: "/home/" + canary, Layer: canary, Label: canary, Deny: i == 0,
			Reason: map[bool]string{true: "path_not_permitted", false: "granted"}[i == 0],
		}})
		b.Record(&audit.Record{Head: head, Time: time.Now(), RunSeq: uint64(2*i + 2), Event: &audit.Event{
			Kind: audit.KindCallDone, Verb: "path_open", Status: "ok", ErrorSummary: canary, Message: canary,
		}})
	}
	kid := head
	kid.RunID, kid.ParentRun, kid.Agent = "019ab0de-79ea-74f8-9d3e-6d0c3f0a1b2c", b.RunID, "critic"
	b.Record(&audit.Record{Head: kid, Time: time.Now(), RunSeq: 1, Event: &audit.Event{Kind: audit.KindRunStart}})
	b.Record(&audit.Record{Head: kid, Time: time.Now(), RunSeq: 2, Event: &audit.Event{
		Kind:    audit.KindRunComplete,
		Outcome: "ok",
	}})
	return &launcher.Report{
		RunID: b.RunID, TraceID: q.TraceID, Tenant: "acme", Agent: "writer", Version: canary, Outcome: launcher.OK,
		Stdout: canary, Stderr: canary, Message: canary, Result: []byte(`"` + canary + `"`), Usage: launcher.Usage{Fuel: 42},
	}, nil
}

// A collector takes what exporters send.
type collector struct {
	mu     sync.Mutex
	bodies map[string][][]byte
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies[r.URL.Path] = append(c.bodies[r.URL.Path], body)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// spans are those that came, by name.
func (c *collector) spans(t *testing.T) map[string]*tracev1.Span {
	t.Helper()
	all := map[string]*tracev1.Span{}
	for _, body := range c.bodies["/v1/traces"] {
		var d tracev1.TracesData
		if err := proto.Unmarshal(body, &d); err != nil {
			t.Fatal(err)
		}
		for _, r := range d.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, sp := range s.Spans {
					all[sp.Name] = sp
				}
			}
		}
	}
	return all
}

func watch(t *testing.T, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	o.Now = time.Now
	w, err := telemetry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func run(t *testing.T, w *telemetry.Telemetry, h *host, q *service.Request) {
	t.Helper()
	s := service.New(service.Options{Host: h, Workers: 1, Queue: 8, Now: time.Now, Watch: w})
	r, err := s.Submit(t.Context(), &service.Caller{
		Name: "token:" + canary, Tenant: "acme",
		May: service.Launch | service.Read,
	}, q, "")
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, h http.Handler) string {
	t.Helper()
	return told(t, h, &service.Caller{Name: "user:1", Tenant: "default", May: service.Read, EveryTenant: true})
}

// told is what a caller is told.
func told(t *testing.T, h http.Handler, who *service.Caller) string {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil).WithContext(service.WithCaller(t.Context(), who)))
	if rec.Code != http.StatusOK {
		t.Fatal(rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// Nothing that is exported has a payload or a secret in it.
//
//rlp:holds K57
func TestWhatCollectorsAreTold(t *testing.T) {
	c := &collector{bodies: map[string][][]byte{}}
	srv := httptest.NewServer(c)
	defer srv.Close()
	w := watch(t, telemetry.Options{Collector: srv.URL, Version: "1.2.3"})
	h := &host{calls: 2}
	run(t, w, h, &service.Request{
		Door: service.HTTP, Agent: "writer", Input: []byte(`"` + canary + `"`),
		Args: []string{canary}, TraceID: asked, ParentSpan: parent,
	})
	metrics := text(t, w.Metrics())
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(h.saw, []byte(canary)) {
		t.Fatal("control: the canary never was in the run")
	}
	sent := 0
	for path, bodies := range c.bodies {
		for _, b := range bodies {
			sent += len(b)
			if bytes.Contains(b, []byte(canary)) {
				t.Errorf("%s: the canary was exported", path)
			}
		}
	}
	if strings.Contains(metrics, canary) || sent < 500 || len(c.bodies) != 2 {
		t.Errorf("%d bytes were sent to %d paths; metrics:\n%s", sent, len(c.bodies), metrics)
	}
	spans := c.spans(t)
	root, kid := spans["run writer"], spans["run critic"]
	if root == nil || kid == nil || len(spans) != 2 {
		t.Fatalf("spans: %v", spans)
	}
	if hex.EncodeToString(root.TraceId) != asked || hex.EncodeToString(root.ParentSpanId) != parent ||
		!bytes.Equal(kid.TraceId, root.TraceId) || !bytes.Equal(kid.ParentSpanId, root.SpanId) {
		t.Errorf("trace %x of parent %x; the delegate %x of parent %x", root.TraceId, root.ParentSpanId, kid.TraceId,
			kid.ParentSpanId)
	}
	var names []string
	for _, e := range root.Events {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "run.started run.running decision call decision call" {
		t.Errorf("events: %s", got)
	}
	if root.EndTimeUnixNano < root.StartTimeUnixNano {
		t.Error("it ended before it began")
	}
	var m metricsv1.MetricsData
	if err := proto.Unmarshal(c.bodies["/v1/metrics"][0], &m); err != nil || len(m.ResourceMetrics) != 1 {
		t.Errorf("metrics: %v %v", err, &m)
	}
}

func TestTheTraceIsTheRuns(t *testing.T) {
	c := &collector{bodies: map[string][][]byte{}}
	srv := httptest.NewServer(c)
	defer srv.Close()
	w := watch(t, telemetry.Options{Collector: srv.URL + "/"})
	run(t, w, &host{calls: 500}, &service.Request{Agent: "writer", TraceID: asked})
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := c.spans(t)["run writer"]
	if hex.EncodeToString(s.TraceId) != asked || len(s.ParentSpanId) != 0 {
		t.Errorf("trace %x of parent %x", s.TraceId, s.ParentSpanId)
	}
	if len(s.Events) != 128 {
		t.Errorf("%d events", len(s.Events))
	}
	for _, a := range s.Attributes {
		if a.Key == "rlp.events_dropped" && a.Value.GetIntValue() != 500*2+2-128 {
			t.Errorf("%d events were dropped", a.Value.GetIntValue())
		}
	}
}

func TestPrometheus(t *testing.T) {
	w := watch(t, telemetry.Options{
		Load:    func() service.Load { return service.Load{Running: 3, Waiting: 4, Workers: 5, Queue: 6} },
		LogSize: func() (uint64, bool) { return 7, true }, LogUnsealed: func() (uint64, bool) { return 8, true },
		Backlog: func() (int64, bool) { return 0, false },
	})
	defer w.Close(t.Context())
	if got := text(t, w.Metrics()); !strings.Contains(got, "rlp_auth_failures_total 0\n") {
		t.Errorf("whoever comes first is no step of a rate:\n%s", got)
	}
	run(t, w, &host{calls: 3}, &service.Request{Agent: "writer"})
	answers := map[string]int{"/run": 200, "/runs/" + canary: 404, "/" + canary: 401, "/runs/x/events": 200}
	for path, status := range answers {
		w.Requests(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	got := text(t, w.Metrics())
	for _, want := range []string{
		`rlp_runs_total{agent="writer",outcome="ok",tenant="acme"} 1`,
		`rlp_runs_total{agent="critic",outcome="ok",tenant="acme"} 1`,
		`rlp_decisions_total{cap="fs.read",decision="allow"} 2`,
		`rlp_decisions_total{cap="fs.read",decision="deny"} 1`,
		`rlp_denied_total{reason="path_not_permitted"} 1`,
		`rlp_run_wait_seconds_count 1`,
		`rlp_run_duration_seconds_count{outcome="ok"} 2`,
		`rlp_runs_running 3`, `rlp_queue_waiting 4`, `rlp_workers 5`, `rlp_queue_places 6`,
		`rlp_log_records 7`, `rlp_log_unsealed_records 8`,
		`rlp_http_requests_total{route="/run",status="200"} 1`,
		`rlp_http_requests_total{route="/runs/{id}",status="404"} 1`,
		`rlp_http_requests_total{route="other",status="401"} 1`,
		`rlp_http_requests_total{route="/runs/{id}/events",status="200"} 1`,
		`rlp_auth_failures_total 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(got, canary) || strings.Contains(got, "rlp_journals_waiting ") {
		t.Error("it tells what it must not, or what it does not know")
	}
	if t.Failed() {
		t.Log(got)
	}
}

// A token of one tenant is told of no other's agents, ends and log; what is added
// up over all names nobody.
//
//rlp:holds K57
func TestATenantIsToldOfItself(t *testing.T) {
	w := watch(t, telemetry.Options{
		Tenant: "default", LogSize: func() (uint64, bool) { return 7, true }, LogUnsealed: func() (uint64, bool) {
			return 8, true
		}, Backlog: func() (int64, bool) { return 9, true },
		Load: func() service.Load { return service.Load{Running: 3} },
	})
	defer w.Close(t.Context())
	at := service.Time{Time: time.Now()}
	for _, tenant := range []string{"default", "acme", "zeta"} {
		w.Event(service.Event{Name: "run.ended", State: service.State{
			RunID: tenant, Tenant: tenant, Agent: "of_" + tenant,
			State: service.Done, StartedAt: at, EndedAt: at,
		}})
	}
	for _, c := range []struct {
		who  *service.Caller
		told []string // of these words
	}{
		{&service.Caller{Tenant: "acme", May: service.Read | service.Operate}, []string{"of_acme", "rlp_runs_running"}},
		{&service.Caller{Tenant: "default", May: service.Read}, []string{
			"of_default", "rlp_runs_running", "rlp_log_records",
			"rlp_log_unsealed_records", "rlp_journals_waiting",
		}},
		{&service.Caller{Tenant: "fresh", May: service.Read}, []string{"rlp_runs_running"}},
		{&service.Caller{Tenant: "acme", EveryTenant: true, May: service.Read}, []string{
			"of_acme", "of_default", "of_zeta",
			"rlp_runs_running", "rlp_log_records", "rlp_log_unsealed_records", "rlp_journals_waiting",
		}},
		{nil, nil},
	} {
		got := told(t, w.Metrics(), c.who)
		for _, word := range []string{
			"of_acme", "of_default", "of_zeta", "rlp_runs_running", "rlp_log_records",
			"rlp_log_unsealed_records", "rlp_journals_waiting",
		} {
			if strings.Contains(got, word) != slices.Contains(c.told, word) {
				t.Errorf("%+v: %s\n%s", c.who, word, got)
			}
		}
	}
}

// Labels come from callers, in that they choose agents, and are few all the same.
func TestLabelsAreBounded(t *testing.T) {
	w := watch(t, telemetry.Options{})
	defer w.Close(t.Context())
	at := service.Time{Time: time.Now()}
	for i := range 5000 {
		w.Event(service.Event{Name: "run.ended", State: service.State{
			RunID: fmt.Sprint(i), Tenant: "t",
			Agent: fmt.Sprintf("a%d", i), State: service.Done, StartedAt: at, EndedAt: at,
		}})
	}
	got := text(t, w.Metrics())
	if n := strings.Count(got, "rlp_runs_total{"); n != 201 ||
		!strings.Contains(got, `rlp_runs_total{agent="other",outcome="done",tenant="other"} 4800`) {
		t.Errorf("%d series", n)
	}
}

// A collector that does not answer holds nobody up.
func TestADeadCollectorSlowsNoRun(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer srv.Close()
	defer close(release)
	w := watch(t, telemetry.Options{Collector: srv.URL})
	h := &host{calls: 4}
	s := service.New(service.Options{Host: h, Workers: 1, Queue: 8, Now: time.Now, Watch: w})
	for range 6000 { // more than the queue has places
		r, err := s.Submit(t.Context(), &service.Caller{Name: "x", Tenant: "acme", May: service.Launch},
			&service.Request{Agent: "writer"}, "")
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-r.Done():
		case <-time.After(time.Minute):
			t.Fatal("a run waits for the collector")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = w.Close(ctx) // it never will be done
}

func TestNobodyCollects(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer srv.Close()
	for _, env := range []map[string]string{{}, {"OTEL_SDK_DISABLED": "true"}} {
		o := telemetry.Options{Env: func(k string) string { return env[k] }}
		if env["OTEL_SDK_DISABLED"] != "" {
			o.Collector = srv.URL
		}
		w := watch(t, o)
		run(t, w, &host{calls: 1}, &service.Request{Agent: "writer"})
		if err := w.Close(t.Context()); err != nil || asked != 0 {
			t.Errorf("%v: %v, asked %d times", env, err, asked)
		}
	}
}
