package mcpserver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/mcpserver"
	"runloop.dev/rlp/internal/serve/service"
)

// A deaf reader takes nothing of an answer: each write of it lasts until its
// deadline, for ever if it has none.
type deaf struct {
	*httptest.ResponseRecorder
	once   sync.Once
	late   chan struct{}
	writes atomic.Int64
}

func newDeaf() *deaf {
	return &deaf{ResponseRecorder: httptest.NewRecorder(), late: make(chan struct{})}
}

func (d *deaf) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() && at.Before(time.Now()) {
		d.once.Do(func() { close(d.late) })
	}
	return nil
}

func (d *deaf) Write([]byte) (int, error) {
	d.writes.Add(1)
	<-d.late
	return 0, os.ErrDeadlineExceeded
}

func (d *deaf) FlushError() error { return nil }
func (d *deaf) Flush()            {}

// calling is a call of a tool by a request that stands for itself, whose client
// wants to know how it goes on.
func calling(t *testing.T, tool string) *http.Request {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool +
		`","arguments":{},"_meta":{"progressToken":"p",` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r := httptest.NewRequestWithContext(service.WithCaller(t.Context(), &service.Caller{
		Name: "user:1", Tenant: "acme",
		May: all,
	}), http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", modern)
	r.Header.Set("Mcp-Method", "tools/call")
	r.Header.Set("Mcp-Name", tool)
	return r
}

// within waits for the end of something that could last for ever.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s lasts for ever", what)
	}
}

// A client that takes nothing of what it is told holds no run up, nor its call
// for longer than readers have.
func TestAClientThatTakesNothing(t *testing.T) {
	b := newBench(t, mcpserver.Options{Patience: time.Millisecond})
	b.host.tick = func() { b.pass(time.Second) }
	control := httptest.NewRecorder()
	b.server.ServeHTTP(control, calling(t, "flood"))
	if text := control.Body.String(); control.Code != http.StatusOK || strings.Count(text, "notifications/progress") < 3 ||
		!strings.Contains(text, "runloop.dev/denied") {
		t.Fatalf("control: %d %.1000s", control.Code, text)
	}
	d := newDeaf()
	within(t, "the call", func() { b.server.ServeHTTP(d, calling(t, "flood")) })
	if n := d.writes.Load(); n == 0 || n > 3 {
		t.Errorf("it was told %d pieces", n)
	}
	if l := b.service.Load(); l.Done != 2 || l.Running != 0 {
		t.Errorf("the runs: %+v", l)
	}
}

// So many requests are under way at a time, and of one caller a part of them.
func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, mcpserver.Options{Requests: 8})
		ask := func(caller string) (w *httptest.ResponseRecorder, end func()) {
			ctx, cancel := context.WithCancel(service.WithCaller(t.Context(), &service.Caller{
				Name: caller, Tenant: "acme",
				May: all,
			}))
			w = httptest.NewRecorder()
			done := make(chan struct{})
			go func() { defer close(done); b.server.ServeHTTP(w, calling(t, "slow").WithContext(ctx)) }()
			synctest.Wait()
			return w, func() { cancel(); <-done }
		}
		var ends []func()
		busy := func(w *httptest.ResponseRecorder) bool {
			return w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != ""
		}
		for n := range 3 {
			w, end := ask("user:1")
			if busy(w) != (n == 2) {
				t.Errorf("request %d of one caller: %d %s", n, w.Code, w.Body)
			}
			ends = append(ends, end)
		}
		for _, other := range []string{"user:2", "user:3", "user:4"} {
			for range 2 {
				w, end := ask(other)
				if busy(w) {
					t.Errorf("control: %s: %s", other, w.Body)
				}
				ends = append(ends, end)
			}
		}
		if w, _ := ask("user:5"); !busy(w) {
			t.Errorf("a ninth: %d", w.Code)
		}
		for _, end := range ends {
			end()
		}
		w, end := ask("user:1")
		if busy(w) {
			t.Errorf("when all have ended: %s", w.Body)
		}
		end()
	})
}

// Over stdio, a client that takes no answers is left a moment after its end, and
// what it began has ended.
func TestAClientThatTakesNothingIsLeft(t *testing.T) {
	for name, leave := range map[string]func(in io.Closer, cancel func()){
		"its input ends": func(in io.Closer, _ func()) { in.Close() },
		"we end":         func(_ io.Closer, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, mcpserver.Options{Leave: time.Millisecond})
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			over := make(chan error, 1)
			go func() { over <- b.server.Serve(ctx, caller("acme", all), inR, outW) }()
			go func() {
				line := make([]byte, 1)
				for line[0] != '\n' { // its greeting, and nothing behind it
					_, _ = outR.Read(line)
				}
			}()
			for _, line := range []string{
				hello, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, listing,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{},"_meta":{"progressToken":"p"}}}`,
			} {
				if _, err := io.WriteString(inW, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			<-b.host.begun
			leave(inW, cancel)
			within(t, "serving", func() { <-over })
			if l := b.service.Load(); l.Running != 0 || l.Done != 1 {
				t.Errorf("%+v", l)
			}
			outR.Close() // what was written to nobody
		})
	}
}
