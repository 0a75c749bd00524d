// Package modeltest is the other side of the providers' protocols: servers on
// loopback that take a request as strictly as the real ones do, and answer as
// the name of the model says.
//
//	any other  streams the last user's words back, with usage
//	tools      calls the first tool with {"at":1}
//	mixed      says the words, then calls the first tool twice, in deltas that alternate with nothing
//	odd        as any other, in pieces of three bytes
//	busy       529 with retry-after-ms, always
//	nousage    says nothing of usage
//	limited    429 with retry-after-ms once, then answers
//	later      429 with retry-after: 3600, always
//	flaky      500 twice, then answers; down is 500 always, page 502 with HTML
//	hangup     takes the request and hangs up
//	broken     begins to answer and hangs up; silent never answers
//	slow       begins to answer and waits until the caller goes
//	locked     401, quoting the key; missing is 404
//	elsewhere  307 to [Server.Elsewhere]
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Key is the key that the servers take.
const Key = "sk-test-0123456789abcdef"

// A Server speaks one protocol. Close it, or let the test do so.
type Server struct {
	// URL is what base_url is set to.
	URL string
	// Elsewhere is where the model "elsewhere" redirects to.
	Elsewhere string
	// Gone gets a word whenever a caller went away from "slow" or "silent".
	Gone chan string
	// Began gets a word whenever "slow" or "silent" has a caller.
	Began chan string

	http   *httptest.Server
	mu     sync.Mutex
	calls  map[string]int
	bodies []string
	faults []string
}

// A protocol is what differs between providers.
type protocol struct {
	path   string // of completions
	check  func(r *http.Request, body []byte) (*call, error)
	answer func(s *Server, w http.ResponseWriter, r *http.Request, c *call)
	embed  func(s *Server, w http.ResponseWriter, body []byte) error
	fail   func(w http.ResponseWriter, status int, kind, message string)
}

// A call is what the answers depend on.
type call struct {
	model string
	last  string // the last user's or tool's words
	tools []string
	max   int64
	usage bool // it was asked for
}

// New starts a server that speaks the protocol of kind: "openai" or "anthropic".
// The second result ends it.
func New(kind string) (*Server, func()) {
	p, base := openai(), "/v1"
	if kind == "anthropic" {
		p, base = anthropic(), ""
	}
	s := &Server{calls: map[string]int{}, Gone: make(chan string, 16), Began: make(chan string, 16)}
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(p, w, r) }))
	s.URL = s.http.URL + base
	return s, func() {
		s.http.CloseClientConnections()
		s.http.Close()
	}
}

// Start is [New] for a test, which fails if a request broke the protocol.
func Start(t testing.TB, kind string) *Server {
	t.Helper()
	s, stop := New(kind)
	t.Cleanup(func() {
		stop()
		for _, f := range s.Faults() {
			t.Errorf("%s: %s", kind, f)
		}
	})
	return s
}

// Calls is how many requests asked for a model.
func (s *Server) Calls(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[model]
}

// Bodies are the bodies of all requests, in order.
func (s *Server) Bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// Faults are the ways in which requests broke the protocol.
func (s *Server) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.faults...)
}

func (s *Server) serve(p protocol, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, string(body))
	s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/embeddings") && p.embed != nil {
		_, err = p.check(r, nil)
		if err == nil {
			err = p.embed(s, w, body)
		}
	} else {
		var c *call
		if c, err = p.check(r, body); err == nil {
			s.complete(p, w, r, c)
		}
	}
	if err != nil {
		s.mu.Lock()
		s.faults = append(s.faults, err.Error())
		s.mu.Unlock()
		p.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
	}
}

func (s *Server) count(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[model]++
	return s.calls[model]
}

func (s *Server) complete(p protocol, w http.ResponseWriter, r *http.Request, c *call) {
	n := s.count(c.model)
	switch {
	case c.model == "limited" && n == 1:
		w.Header().Set("retry-after-ms", "30")
		p.fail(w, http.StatusTooManyRequests, "rate_limit_error", "slow down")
	case c.model == "later":
		w.Header().Set("retry-after", "3600")
		p.fail(w, http.StatusTooManyRequests, "rate_limit_error", "come back in an hour")
	case c.model == "flaky" && n <= 2, c.model == "down":
		p.fail(w, http.StatusInternalServerError, "api_error", "on fire")
	case c.model == "busy":
		w.Header().Set("retry-after-ms", "5")
		p.fail(w, 529, "overloaded_error", "too many ask")
	case c.model == "page":
		w.Header().Set("content-type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "<html>bad gateway</html>")
	case c.model == "locked":
		p.fail(w, http.StatusUnauthorized, "authentication_error", "incorrect key provided: "+Key)
	case c.model == "missing":
		p.fail(w, http.StatusNotFound, "not_found_error", "no model missing; your key is "+Key)
	case c.model == "hangup":
		panic(http.ErrAbortHandler)
	case c.model == "elsewhere":
		http.Redirect(w, r, s.Elsewhere, http.StatusTemporaryRedirect)
	case c.model == "silent":
		s.wait(r, c.model)
	default:
		p.answer(s, w, r, c)
	}
}

func (s *Server) wait(r *http.Request, model string) {
	s.Began <- model
	<-r.Context().Done()
	s.Gone <- model
}

// A stream writes events as they come.
type stream struct {
	w   http.ResponseWriter
	odd bool // cut where no event ends
}

func newStream(w http.ResponseWriter, model string) stream {
	w.Header().Set("content-type", "text/event-stream")
	return stream{w, model == "odd"}
}

func (s stream) send(name string, data any) {
	event := ""
	if name != "" {
		event = "event: " + name + "\n"
	}
	text, isText := data.(string)
	if !isText {
		b, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		text = string(b)
	}
	event += "data: " + text + "\n\n"
	for size := len(event); event != ""; event = event[size:] {
		if s.odd {
			size = 3
		}
		size = min(size, len(event))
		_, _ = io.WriteString(s.w, event[:size])
		if f, ok := s.w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

func words(text string, max int64) (pieces []string, cut bool) {
	for i, w := range strings.Fields(text) {
		if int64(i) == max {
			return pieces, true
		}
		if i > 0 {
			w = " " + w
		}
		pieces = append(pieces, w)
	}
	return pieces, false
}

func problem(format string, args ...any) error { return fmt.Errorf(format, args...) }
