package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A receiver is a collector that answers as it is told, then takes everything.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	answers []http.HandlerFunc
	asked   int
	heads   []http.Header
	bodies  [][]byte
	peers   int // certificates that clients showed
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	r.asked++
	r.heads, r.bodies = append(r.heads, q.Header), append(r.bodies, body)
	if q.TLS != nil {
		r.peers += len(q.TLS.PeerCertificates)
	}
	var answer http.HandlerFunc
	if len(r.answers) > 0 {
		answer, r.answers = r.answers[0], r.answers[1:]
	}
	r.mu.Unlock()
	if answer != nil {
		answer(w, q)
	}
}

func receives(t *testing.T, answers ...http.HandlerFunc) *receiver {
	r := &receiver{answers: answers}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func says(status int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}
}

// sends is a sender that does not wait, and what it would have waited: its clock
// goes on by as much.
func sends(t *testing.T, base string, env map[string]string) (*Sender, *[]time.Duration) {
	t.Helper()
	s, err := ReadSettings(Traces, base, environment(env))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	n, waits := NewSender(s, func() time.Time { return now }), new([]time.Duration)
	n.Wait = func(_ context.Context, d time.Duration) error {
		*waits, now = append(*waits, d), now.Add(d)
		return nil
	}
	t.Cleanup(n.Stop)
	return n, waits
}

// A collector that is busy is asked again, no sooner than it said.
func TestSendAgain(t *testing.T) {
	r := receives(t, says(503, "Retry-After", "7"), says(429, "Date", "Sun, 01 Mar 2026 12:00:00 GMT", "Retry-After",
		"Sun, 01 Mar 2026 12:00:20 GMT"), says(502), says(504, "Retry-After", "0"))
	n, waits := sends(t, r.URL+"/base",
		map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc,content-encoding=br"})
	if err := n.Send(t.Context(), []byte("message")); err != nil || r.asked != 5 || len(*waits) != 4 {
		t.Fatalf("%v, asked %d times, waited %v", err, r.asked, *waits)
	}
	w := *waits
	if w[0] != 7*time.Second || w[1] != 20*time.Second || w[2] < 2*time.Second || w[2] > 6*time.Second ||
		w[3] < 4*time.Second || w[3] > 12*time.Second {
		t.Errorf("it waited %v", w)
	}
	for i, h := range r.heads {
		if h.Get("Authorization") != "Bearer abc" || h.Get("Content-Type") != "application/x-protobuf" ||
			h.Get("Content-Encoding") != "" || string(r.bodies[i]) != "message" {
			t.Errorf("try %d: %v %q", i+1, h, r.bodies[i])
		}
	}
}

// What no other try can mend is given up at once, and so is what would have to wait
// for longer than there is time; no error says where, by what, or what was answered.
func TestSendGivesUp(t *testing.T) {
	elsewhere := receives(t)
	for _, test := range []struct {
		answer http.HandlerFunc
		want   string
	}{
		{says(400), "it answers 400"},
		{says(401), "it answers 401"},
		{says(500), "it answers 500"},
		{says(501), "it answers 501"},
		{says(503, "Retry-After", "3600"), "it answers 503"},
		{says(307, "Location", elsewhere.URL), "it answers 307; redirects are not followed, give its own address"},
		{func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte{0x0a, 0x05, 0x08, 0xac, 0x02, 0x12, 0x00})
		}, "it did not take 300 of what it was sent"},
		{func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(403)
			io.WriteString(w, "very-secret")
		}, "it answers 403"},
	} {
		r := receives(t, test.answer)
		n, waits := sends(t, r.URL, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "api-key=very-secret"})
		if err := n.Send(t.Context(), nil); err == nil || err.Error() != test.want || r.asked != 1 || len(*waits) != 0 {
			t.Errorf("asked %d times, waited %v: %v", r.asked, *waits, err)
		}
	}
	if elsewhere.asked != 0 {
		t.Error("a redirect was followed")
	}
}

// A collector that stays away is asked for a minute.
func TestSendEnds(t *testing.T) {
	gone := receives(t)
	gone.Close()
	n, waits := sends(t, gone.URL, nil)
	err := n.Send(t.Context(), nil)
	total := time.Duration(0)
	for _, d := range *waits {
		total += d
	}
	if !errors.Is(err, errAway) || len(*waits) < 5 || total > time.Minute {
		t.Errorf("%v after %v", err, *waits)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // as the library has it
	defer cancel()
	*waits = nil
	n, waits = sends(t, gone.URL, nil)
	if err := n.Send(ctx, nil); !errors.Is(err, errAway) || len(*waits) < 2 || len(*waits) > 10 {
		t.Errorf("%v after %v", err, *waits)
	}
}

// A collector that does not answer is not waited for longer than was said, and is
// asked again.
func TestSendSlow(t *testing.T) {
	slow := func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }
	r := receives(t, slow, slow)
	n, waits := sends(t, r.URL, map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "200"})
	var told []error
	wait := n.Wait
	n.Wait = func(ctx context.Context, d time.Duration) error {
		told = append(told, ctx.Err())
		return wait(ctx, d)
	}
	if err := n.Send(t.Context(), []byte("message")); err != nil || len(*waits) < 2 || told[0] != nil {
		t.Errorf("%v, waited %v", err, *waits)
	}
	r = receives(t, slow)
	n, _ = sends(t, r.URL, map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "50"})
	n.Wait = func(context.Context, time.Duration) error { return context.Canceled }
	if err := n.Send(t.Context(), nil); !errors.Is(err, errSlow) {
		t.Error(err)
	}
}

// Stop ends a try and a pause that are under way, and those to come.
func TestStop(t *testing.T) {
	var n *Sender
	r := receives(t, func(_ http.ResponseWriter, q *http.Request) {
		n.Stop()
		<-q.Context().Done()
	})
	n, waits := sends(t, r.URL, nil)
	if err := n.Send(t.Context(), nil); !errors.Is(err, errStopped) || len(*waits) != 0 {
		t.Errorf("in a try: %v", err)
	}
	if err := n.Send(t.Context(), nil); !errors.Is(err, errStopped) || r.asked != 1 {
		t.Errorf("afterwards: %v, asked %d times", err, r.asked)
	}
	r = receives(t, says(503, "Retry-After", "20"))
	m, _ := sends(t, r.URL, nil)
	m.Wait = func(ctx context.Context, d time.Duration) error {
		m.Stop()
		return wait(ctx, d)
	}
	if err := m.Send(t.Context(), nil); err == nil || err.Error() != "it answers 503" || r.asked != 1 {
		t.Errorf("in a pause: %v", err)
	}
}

func TestGzip(t *testing.T) {
	r := receives(t, says(503))
	n, _ := sends(t, r.URL, map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
	message := bytes.Repeat([]byte("message "), 1000)
	if err := n.Send(t.Context(), message); err != nil || r.asked != 2 {
		t.Fatal(err)
	}
	for i, body := range r.bodies {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, message) || len(body) > 200 ||
			r.heads[i].Get("Content-Encoding") != "gzip" {
			t.Errorf("%d bytes are %d, %v", len(body), len(got), err)
		}
	}
}

// A collector over TLS is believed by the authority that was named, and is shown the
// certificate that was.
func TestTLS(t *testing.T) {
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(r)
	r.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	r.StartTLS()
	defer r.Close()
	n, _ := sends(t, r.URL, nil)
	n.Wait = func(context.Context, time.Duration) error { return context.Canceled }
	if err := n.Send(t.Context(), nil); !errors.Is(err, errTrust) || r.asked != 0 {
		t.Errorf("control: a stranger's certificate: %v", err)
	}
	dir := t.TempDir()
	ca, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key.pem")
	der, err := x509.MarshalPKCS8PrivateKey(r.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{
		ca:  {Type: "CERTIFICATE", Bytes: r.Certificate().Raw},
		key: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": ca}
	n, _ = sends(t, r.URL, env)
	if err := n.Send(t.Context(), nil); err != nil || r.asked != 1 || r.peers != 0 {
		t.Errorf("%v, %d certificates", err, r.peers)
	}
	env["OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE"], env["OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY"] = ca, key
	n, _ = sends(t, r.URL, env)
	if err := n.Send(t.Context(), nil); err != nil || r.asked != 2 || r.peers != 1 {
		t.Errorf("%v, %d certificates", err, r.peers)
	}
	if !strings.HasPrefix(r.URL, "https:") {
		t.Error("control: it is not over TLS")
	}
}
