package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher"
)

// A line of the log says who asked what and how it ended, by tenant, run and trace,
// and nothing that a request held: neither do answers that refuse.
func TestLogHoldsNoPayload(t *testing.T) {
	const secret = "hunter2hunter2"
	var out bytes.Buffer
	h := &host{launch: func(_ context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report,
		error,
	) {
		if q.Agent == "broken" {
			panic(secret)
		}
		return reportOf(c, q, b, launcher.OK), nil
	}}
	k := serve(t, h, Options{Log: slog.New(slog.NewJSONHandler(&out, nil))},
		service.Options{Log: slog.New(slog.NewJSONHandler(&out, nil))})
	trace := strings.Repeat("4b", 16)
	_, report := k.run(`{"agent":"a","input":"`+secret+`"}`, "traceparent: 00-"+trace+"-00f067aa0ba902b7-01",
		"Authorization: Bearer "+secret)
	for _, a := range []ask{
		{"POST", "/run", `{"agent":"broken","input":"` + secret + `"}`, nil},
		{
			"POST", "/run", `{"agent":"a","args":[{"x":"` + secret + `"}],"seed":"` + secret + `","bundle":"` + secret + `!"}`,
			nil,
		},
		{"POST", "/run", `{"agent":"a","input":"` + secret, nil},
		{"GET", "/" + secret, "", nil},
		{"GET", "/runs/" + secret, "", nil},
		{"GET", "/runs?before=" + secret, "", nil},
		{"GET", "/audit?since=" + secret, "", []string{"Last-Event-ID: " + secret}},
	} {
		if resp, body := k.do(a); resp.StatusCode < 400 || strings.Contains(body, secret) {
			t.Errorf("%s %s: %d %s", a.method, a.path, resp.StatusCode, body)
		}
	}
	k.Close() // each line is written when this is over
	said := out.String()
	for _, want := range []string{`"tenant":"default"`, `"caller":"user:1"`, `"trace_id":"` + trace + `"`, `"run_id":"` +
		report["run_id"].(string) + `"`, `"route":"/run"`, `"status":200`} {
		if !strings.Contains(said, want) {
			t.Errorf("no %s in %s", want, said)
		}
	}
	if strings.Contains(said, secret) {
		t.Error(said)
	}
}

// A trace is taken from the header if that is one, as its standard says.
func TestTraceparent(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for header, ok := range map[string]bool{
		"00-" + trace + "-" + span + "-01":                    true,
		"01-" + trace + "-" + span + "-01-more":               true,
		"00-" + trace + "-" + span + "-01-more":               false,
		"ff-" + trace + "-" + span + "-01":                    false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + trace + "-" + span:                            false,
		"":                                                    false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Traceparent", header)
		gotTrace, gotSpan := traceOf(r)
		if (gotTrace == trace && gotSpan == span) != ok || !ok && gotTrace != "" {
			t.Errorf("%q: %q %q", header, gotTrace, gotSpan)
		}
	}
}

// A handler that breaks is answered for, and one that broke in the middle of its
// answer does not look whole.
func TestBrokenHandlers(t *testing.T) {
	console := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			fmt.Fprint(w, "half")
			w.(http.Flusher).Flush()
		}
		panic("broken")
	})
	k := serve(t, &host{}, Options{Console: console}, service.Options{})
	if resp, body := k.do(ask{path: "/early"}); resp.StatusCode != http.StatusInternalServerError ||
		object1(t, body)["error"] != "internal" {
		t.Error(resp.Status, body)
	}
	resp, err := k.Client().Do(k.request(t.Context(), ask{path: "/late"}))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := new(bytes.Buffer).ReadFrom(resp.Body); err == nil {
		t.Error("half an answer looks whole")
	}
}

// BenchmarkRun is what a request costs beside its run: one that does nothing.
func BenchmarkRun(b *testing.B) {
	h := serve(b, &host{}, Options{}, service.Options{}).Config.Handler
	body := []byte(`{"agent":"a","input":{"n":[1,2,3]},"allowed_adapters":["core"],"limits":{"max_steps":500}}`)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/run", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
}

// BenchmarkScan is the strict reading of a large input.
func BenchmarkScan(b *testing.B) {
	input, err := json.Marshal(make([]map[string]int, 100_000))
	if err != nil {
		b.Fatal(err)
	}
	body := append(append([]byte(`{"agent":"a","input":`), input...), '}')
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := readRun(body); err != nil || len(got.problems) > 0 {
			b.Fatal(got, err)
		}
	}
}

// The log tells of a run that rlp itself failed in as the service did; one whose
// agent trapped is the control.
func TestTheLogTellsFaultsOfTheHost(t *testing.T) {
	for outcome, want := range map[launcher.Outcome]string{launcher.Trap: service.Done, launcher.Fault: service.Failed} {
		st := stateOf(&kb.RunSummary{EndedMS: 1, End: audit.KindRunFailed, Outcome: string(outcome)}, "t")
		if st.State != want || st.Outcome != outcome {
			t.Errorf("%s: %+v", outcome, st)
		}
	}
}
