package otlp

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func environment(of map[string]string) func(string) string {
	return func(name string) string { return of[name] }
}

// Addresses are those of OpenTelemetry's specification: a base gets the signal's
// path, a signal's own address is taken as it is.
func TestAddresses(t *testing.T) {
	const all, traces, metrics = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	for _, test := range []struct {
		base   string
		env    map[string]string
		signal Signal
		want   string
	}{
		{"http://127.0.0.1:4318", nil, Traces, "http://127.0.0.1:4318/v1/traces"},
		{"http://127.0.0.1:4318/", nil, Metrics, "http://127.0.0.1:4318/v1/metrics"},
		{
			"https://x.example/otlp/",
			map[string]string{all: "http://other", traces: "http://other"},
			Traces,
			"https://x.example/otlp/v1/traces",
		},
		{"", map[string]string{all: "https://x.example"}, Traces, "https://x.example/v1/traces"},
		{"", map[string]string{all: " https://x.example/base "}, Metrics, "https://x.example/base/v1/metrics"},
		{"", map[string]string{all: "https://x.example", traces: "http://y.example:9"}, Traces, "http://y.example:9/"},
		{"", map[string]string{all: "https://x.example", traces: "http://y.example:9/in"}, Traces, "http://y.example:9/in"},
		{
			"",
			map[string]string{all: "https://x.example", traces: "http://y.example:9/in"},
			Metrics,
			"https://x.example/v1/metrics",
		},
		{"", map[string]string{metrics: "http://[::1]:4318/v1/metrics"}, Metrics, "http://[::1]:4318/v1/metrics"},
	} {
		s, err := ReadSettings(test.signal, test.base, environment(test.env))
		if err != nil || s.URL != test.want || s.Timeout != 10*time.Second || s.Gzip || s.TLS != nil || len(s.Header) != 0 {
			t.Errorf("%q, %v: %+v, %v", test.base, test.env, s, err)
		}
	}
}

// A signal's own variables come before those of all, whole.
func TestVariables(t *testing.T) {
	env := environment(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x.example", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
		"OTEL_EXPORTER_OTLP_HEADERS":         "authorization=Bearer%20abc,x-team = ops ,",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS": "x-own=1",
		"OTEL_EXPORTER_OTLP_COMPRESSION":     "gzip", "OTEL_EXPORTER_OTLP_METRICS_COMPRESSION": "none",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "1500", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "20",
		"OTEL_EXPORTER_OTLP_INSECURE": "true",
	})
	s, err := ReadSettings(Traces, "", env)
	if err != nil || s.Header.Get("Authorization") != "Bearer abc" || s.Header.Get("X-Team") != "ops" || !s.Gzip ||
		s.Timeout != 1500*time.Millisecond {
		t.Errorf("traces: %+v, %v", s, err)
	}
	s, err = ReadSettings(Metrics, "", env)
	if err != nil || len(s.Header) != 1 || s.Header.Get("X-Own") != "1" || s.Gzip || s.Timeout != 20*time.Millisecond {
		t.Errorf("metrics: %+v, %v", s, err)
	}
}

// What cannot be meant is refused by the name of its variable, and no value is told.
func TestSettingsRefuse(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, value, says string }{
		{"ENDPOINT", "secret.example:4318", "OTEL_EXPORTER_OTLP_ENDPOINT is no http or https URL"},
		{"ENDPOINT", "ftp://secret", "is no http or https URL"},
		{"ENDPOINT", "https://", "is no http or https URL"},
		{"ENDPOINT", "https://:4318", "is no http or https URL"},
		{"ENDPOINT", "https://user:secret@x.example", "has user info"},
		{"ENDPOINT", "https://x.example?key=secret", "has a query"},
		{"ENDPOINT", "https://x.example/%zzsecret", "is no URL"},
		{"TRACES_ENDPOINT", "grpc://secret:4317", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is no http or https URL"},
		{"PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf"},
		{"TRACES_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: only http/protobuf"},
		{"HEADERS", "secret", "OTEL_EXPORTER_OTLP_HEADERS: header 1 is not name=value"},
		{"HEADERS", "=secret", "header 1"},
		{"HEADERS", "a b=secret", "header 1"},
		{"HEADERS", "a=%zzsecret", "header 1"},
		{"HEADERS", "a=secret%0a", "header 1"},
		{"TRACES_HEADERS", "a=1,secret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: header 2"},
		{"COMPRESSION", "secret", "must be gzip or none"},
		{"TIMEOUT", "10s", "milliseconds"},
		{"TIMEOUT", "0", "milliseconds"},
		{"TIMEOUT", "-1", "milliseconds"},
		{"TIMEOUT", "99999999999", "milliseconds"},
		{"CERTIFICATE", filepath.Join(dir, "none"), "OTEL_EXPORTER_OTLP_CERTIFICATE: open "},
		{"TRACES_CERTIFICATE", empty, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: there is no certificate in the file"},
		{"CLIENT_KEY", empty, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: both are needed"},
		{"TRACES_CLIENT_CERTIFICATE", empty, "both are needed"},
	} {
		env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://x.example", "OTEL_EXPORTER_OTLP_" +
			test.name: test.value}
		s, err := ReadSettings(Traces, "", environment(env))
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s=%s: %+v, %v", test.name, test.value, s, err)
		}
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT"} {
		env := map[string]string{prefix + name: empty, prefix + name + "_CERTIFICATE": empty, prefix + name + "_KEY": empty}
		if s, err := ReadSettings(Traces, "http://127.0.0.1:4318", environment(env)); err == nil ||
			!strings.Contains(err.Error(), "_CERTIFICATE: the address of the collector is plain http") {
			t.Errorf("%s and no TLS: %+v, %v", name, s, err)
		}
	}
	env := environment(map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
	if s, err := ReadSettings(Traces, "http://127.0.0.1:4318", env); err != nil {
		t.Errorf("control: an address over HTTP that the operator's settings name: %+v, %v", s, err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-1": 0, "soon": 0, "1.5": 0, "99999999999999999999": 0, " 7 ": 7 * time.Second, "3600": time.Hour,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second, "Fri, 31 Dec 1999 23:59:59 GMT": 0,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}, "Date": {now.Format(http.TimeFormat)}}); got != want {
			t.Errorf("Retry-After: %s is %v", text, got)
		}
	}
	if got := RetryAfter(http.Header{"Retry-After": {now.Format(http.TimeFormat)}}); got != 0 {
		t.Errorf("a date without one of the answer is %v", got)
	}
}
