package mcpserver_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/mcpserver"
)

// A slow message comes as its test lets it.
type slow struct {
	first io.Reader
	rest  *io.PipeReader
	begun chan struct{} // closed when the first part was read
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.first.Read(p)
	if !errors.Is(err, io.EOF) || n > 0 {
		return n, nil
	}
	if s.begun != nil {
		close(s.begun)
		s.begun = nil
	}
	return s.rest.Read(p)
}

func (s *slow) Close() error { return nil }

// Few long messages come at a time, whoever sends them; short ones come beside
// them, and one that does not end well takes no place.
func TestLongMessagesAreBounded(t *testing.T) {
	b := newBench(t, mcpserver.Options{})
	long := func() (end func(error) *httptest.ResponseRecorder) {
		r, w := calling(t, "echo"), httptest.NewRecorder()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		cut := strings.Index(text, `"arguments":{`) + len(`"arguments":{`)
		text = text[:cut] + `"a":"` + strings.Repeat("x", 1<<20) + `"` + text[cut:]
		rest, more := io.Pipe()
		begun, done := make(chan struct{}), make(chan struct{})
		r.Body, r.ContentLength = &slow{strings.NewReader(text[:len(text)-1]), rest, begun}, int64(len(text))
		go func() { defer close(done); b.server.ServeHTTP(w, r) }()
		select {
		case <-begun:
		case <-done:
		}
		return func(err error) *httptest.ResponseRecorder {
			if err == nil {
				_, _ = more.Write([]byte(text[len(text)-1:])) // nobody reads it if it was refused
			}
			more.CloseWithError(err)
			<-done
			return w
		}
	}
	first, second := long(), long()
	if w := long()(errors.New("it was refused")); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("a third: %d %s", w.Code, w.Body)
	}
	short := httptest.NewRecorder()
	b.server.ServeHTTP(short, calling(t, "echo"))
	if short.Code != http.StatusOK || !strings.Contains(short.Body.String(), "runloop.dev/run_id") {
		t.Errorf("a short one: %d %.500s", short.Code, short.Body)
	}
	if w := first(errors.New("gone")); w.Code != http.StatusBadRequest {
		t.Errorf("one that broke off: %d", w.Code)
	}
	if w := second(nil); w.Code != http.StatusOK {
		t.Errorf("control: %d %.500s", w.Code, w.Body)
	}
	third, fourth := long(), long() // there is room again
	for _, w := range []*httptest.ResponseRecorder{third(nil), fourth(nil)} {
		if w.Code != http.StatusOK {
			t.Errorf("when others have ended: %d %.500s", w.Code, w.Body)
		}
	}
	for name, length := range map[string]int64{"that says so": 9 << 20, "that does not": -1} {
		r, w := calling(t, "echo"), httptest.NewRecorder()
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", 9<<20))), length
		b.server.ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("a message of 9 MiB %s: %d", name, w.Code)
		}
	}
}
