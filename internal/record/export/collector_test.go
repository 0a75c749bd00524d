package export

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"runloop.dev/rlp/internal/record/otlp"
)

// A receiver is a collector that answers as it is told, then takes everything.
type receiver struct {
	*httptest.Server
	answers []func(http.ResponseWriter)
	got     []*collector.ExportTraceServiceRequest // that it took
	heads   []http.Header
	asked   int
}

func newReceiver(t *testing.T, answers ...func(http.ResponseWriter)) *receiver {
	r := &receiver{answers: answers}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil || q.Method != http.MethodPost || q.URL.Path != "/v1/traces" ||
			q.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s %v %v", q.Method, q.URL, q.Header, err)
		}
		r.asked++
		r.heads = append(r.heads, q.Header)
		if len(r.answers) > 0 {
			answer := r.answers[0]
			r.answers = r.answers[1:]
			if answer != nil {
				answer(w)
				return
			}
		}
		r.got = append(r.got, read(t, body))
	}))
	t.Cleanup(r.Close)
	return r
}

func status(code int, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// collectorFor is a Collector that does not wait, and what it would have waited.
func collectorFor(t *testing.T, url string, header http.Header) (*Collector, *[]time.Duration) {
	t.Helper()
	to, err := TracesURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCollector(to, header)
	waits := new([]time.Duration)
	c.Wait = func(_ context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return nil
	}
	return c, waits
}

// What is sent arrives whole at a receiver of OTLP, with the headers that were
// asked for, and again after it was busy, for as long as it says.
func TestCollectorReceives(t *testing.T) {
	header, err := otlp.ParseHeaders("authorization=Bearer%20abc,x-team = ops ,")
	if err != nil {
		t.Fatal(err)
	}
	r := newReceiver(t, status(503, "Retry-After", "7"), status(429), status(502), nil)
	c, waits := collectorFor(t, r.URL, header)
	list := glances(t, example())
	e := &Export{Encoder: newEncoder(t, OTLP, Options{Binary: true, Past: pastOf(list)}), Output: c, Every: 1}
	if err := e.Pass(t.Context(), Head{Size: uint64(len(list))}, sequence(list)); err != nil {
		t.Fatal(err)
	}
	want := read(t, encode(t, OTLP, Options{Binary: true}, list))
	if len(r.got) != 1 || !proto.Equal(r.got[0], want) {
		t.Fatalf("%d requests arrived", len(r.got))
	}
	if !slices.Equal(*waits, []time.Duration{7 * time.Second, 500 * time.Millisecond, time.Second}) {
		t.Errorf("it waited %v", *waits)
	}
	if h := r.heads[3]; h.Get("Authorization") != "Bearer abc" || h.Get("X-Team") != "ops" {
		t.Errorf("%v", h)
	}
}

func newEncoder(t testing.TB, f Format, o Options) Encoder {
	t.Helper()
	enc, err := New(f, o)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// Spans that a collector says it did not take are reported, not sent again.
func TestCollectorTakesSome(t *testing.T) {
	answer, err := proto.Marshal(&collector.ExportTraceServiceResponse{
		PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 300, ErrorMessage: "too old"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newReceiver(t, func(w http.ResponseWriter) { w.Write(answer) })
	c, _ := collectorFor(t, r.URL, nil)
	var told []string
	c.Told = func(s string) { told = append(told, s) }
	if err := c.Put(t.Context(), nil); err != nil || r.asked != 1 || c.Rejected != 300 {
		t.Errorf("%v, asked %d times, %d rejected", err, r.asked, c.Rejected)
	}
	if len(told) != 1 || told[0] != "the collector did not take 300 spans: too old" {
		t.Errorf("%q", told)
	}
}

// What no other try can mend is an error at once; what might be is given up
// after some; neither says what headers hold, and nothing follows a redirect.
func TestCollectorRefuses(t *testing.T) {
	header, err := otlp.ParseHeaders("api-key=very-secret")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := newReceiver(t)
	for _, test := range []struct {
		answer func(http.ResponseWriter)
		asked  int
		says   string
	}{
		{status(400), 1, "400"},
		{status(401), 1, "401"},
		{status(404), 1, "404"},
		{status(500), 1, "500"},
		{status(307, "Location", elsewhere.URL+"/v1/traces"), 1, "redirects are not followed"},
		{status(503), maxTries, "503"},
	} {
		r := newReceiver(t, slices.Repeat([]func(http.ResponseWriter){test.answer}, 9)...)
		c, _ := collectorFor(t, r.URL, header)
		err := c.Put(t.Context(), []byte{})
		if !errors.Is(err, ErrCollector) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(),
			"very-secret") || r.asked != test.asked {
			t.Errorf("asked %d times: %v", r.asked, err)
		}
	}
	if elsewhere.asked != 0 {
		t.Error("a redirect was followed")
	}
	gone := newReceiver(t)
	gone.Close()
	c, waits := collectorFor(t, gone.URL, header)
	if err := c.Put(t.Context(), nil); !errors.Is(err, ErrCollector) || len(*waits) != maxTries-1 {
		t.Errorf("%v after %v", err, *waits)
	}
}

// Addresses are read as operators give them.
func TestCollectorSettings(t *testing.T) {
	for in, want := range map[string]string{
		"http://localhost:4318":            "http://localhost:4318/v1/traces",
		"https://otlp.example.com/":        "https://otlp.example.com/v1/traces",
		"https://x.example/otlp/v1/traces": "https://x.example/otlp/v1/traces",
	} {
		if got, err := TracesURL(in); got != want || err != nil {
			t.Errorf("%s is %s, %v", in, got, err)
		}
	}
	for _, bad := range []string{
		"localhost:4318", "ftp://x", "http://", "http://user:secret@x", "http://x?y",
		"http://x/#y", "http://x y", "grpc://x:4317",
	} {
		if got, err := TracesURL(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s is %s, %v", bad, got, err)
		}
	}
}

// FuzzPartial: whatever a collector answers is read without harm.
func FuzzPartial(f *testing.F) {
	f.Add([]byte{0x0a, 0x05, 0x08, 0xac, 0x02, 0x12, 0x00})
	f.Fuzz(func(t *testing.T, p []byte) {
		c := &Collector{Told: func(string) {}}
		c.partial(p)
		var r collector.ExportTraceServiceResponse
		if proto.Unmarshal(p, &r) == nil && len(p) > 0 && r.GetPartialSuccess().GetRejectedSpans() > 0 && c.Rejected == 0 &&
			len(r.ProtoReflect().GetUnknown()) == 0 &&
			len(r.PartialSuccess.ProtoReflect().GetUnknown()) == 0 {
			t.Errorf("%x says %v", p, r.PartialSuccess)
		}
	})
}
