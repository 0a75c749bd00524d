package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	tracev1 "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/internal/serve/telemetry"
)

// The environment that the service is given names the collector and what it is
// shown, and neither the address nor a header is logged when the collector refuses.
func TestTheEnvironmentNamesTheCollector(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]byte{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+canary || r.Header.Get("Content-Encoding") != "gzip" ||
			r.Header.Get("User-Agent") != "rlp/1.2.3" {
			t.Errorf("%v", r.Header)
		}
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(z)
		mu.Lock()
		got[r.URL.Path] = body
		mu.Unlock()
		if err != nil || r.URL.Path == "/base/v1/metrics" {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, canary)
		}
	}))
	defer srv.Close()
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": srv.URL + "/base", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": srv.URL + "/in",
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20" + canary, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
	}
	var log bytes.Buffer
	w := watch(t, telemetry.Options{
		Env: func(name string) string { return env[name] }, Version: "1.2.3",
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	run(t, w, &host{calls: 1}, &service.Request{Agent: "writer"})
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var spans tracev1.TracesData
	if err := proto.Unmarshal(got["/in"], &spans); err != nil || len(spans.ResourceSpans) != 1 || len(got) != 2 ||
		len(got["/base/v1/metrics"]) == 0 {
		t.Errorf("%v: %v, %v", err, &spans, got)
	}
	if said := log.String(); strings.Count(said, "\n") != 1 ||
		!strings.Contains(said, `signal=metrics error="it answers 401"`) || strings.Contains(said, canary) ||
		strings.Contains(said, srv.Listener.Addr().String()) {
		t.Errorf("the log says %s", said)
	}
}

// A variable that means nothing keeps the service from starting, unless nothing is
// sent.
func TestVariablesThatMeanNothing(t *testing.T) {
	env := map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": canary}
	o := telemetry.Options{Env: func(name string) string { return env[name] }}
	watch(t, o).Close(t.Context()) //nolint:errcheck // nothing is sent
	o.Collector = "http://127.0.0.1:4318"
	if _, err := telemetry.New(o); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_TIMEOUT: must be") ||
		strings.Contains(err.Error(), canary) {
		t.Error(err)
	}
}
