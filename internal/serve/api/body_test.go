package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
)

// A flow is a body that goes on for ever, and counts what is read of it.
type flow struct{ read int64 }

func (f *flow) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	f.read += int64(len(p))
	return len(p), nil
}

// neverLaunched is a host for requests that must not come to that.
func neverLaunched(t *testing.T) *host {
	return &host{launch: func(_ context.Context, c *service.Caller, q *service.Request, b service.Begin) (*launcher.Report,
		error,
	) {
		t.Error("it was launched")
		return reportOf(c, q, b, launcher.OK), nil
	}}
}

// A body of more than the bound is refused: by its length, before any of it is
// read, and without one when the bound is passed, whatever it would have been.
func TestBodiesAreBounded(t *testing.T) {
	const most = 1000
	sent := func(h http.Handler, path string, body io.Reader, length int64) (*httptest.ResponseRecorder, map[string]any) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
		r.ContentLength = length
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w, object1(t, w.Body.String())
	}
	small, _ := handlerOf(neverLaunched(t), Options{Largest: most}, service.Options{})
	whole, _ := handlerOf(neverLaunched(t),
		Options{MCP: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was handed on") })},
		service.Options{})
	for name, c := range map[string]struct {
		handler http.Handler
		path    string
		length  int64
		reads   int64 // at most
		says    string
	}{
		"length":                {small, "/run", most + 1, 0, "a body has at most"},
		"no length":             {small, "/run", -1, most + 1, "a body has at most"},
		"the real bound":        {whole, "/run", 64<<20 + 1, 0, "at most 64 MiB"},
		"the real one of MCP":   {whole, "/mcp", 8<<20 + 1, 0, "at most 8 MiB"},
		"MCP without a length":  {whole, "/mcp", -1, 8<<20 + 1, "at most 8 MiB"},
		"the real one of input": {whole, "/runs/" + oldRun + "/input", 8<<20 + 1, 0, "at most 8 MiB"},
	} {
		f := &flow{}
		w, problem := sent(c.handler, c.path, f, c.length)
		if w.Code != http.StatusRequestEntityTooLarge || problem["error"] != "too_large" ||
			!strings.Contains(problem["message"].(string), c.says) || w.Header().Get("Connection") != "close" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if f.read > c.reads+4096 || c.reads == 0 && f.read > 0 {
			t.Errorf("%s: %d bytes were read", name, f.read)
		}
	}
	if w, problem := sent(whole, "/run", strings.NewReader("{"), 64<<20); w.Code != http.StatusBadRequest ||
		problem["error"] != "invalid_request" {
		t.Errorf("control: what has the real bound is read: %d %s", w.Code, w.Body)
	}
	launching, _ := handlerOf(&host{}, Options{Largest: most}, service.Options{})
	body := `{"agent":"a"}`
	for _, length := range []int64{-1, most} {
		if w, _ := sent(launching, "/run", strings.NewReader(body+strings.Repeat(" ", most-len(body))),
			length); w.Code != http.StatusOK {
			t.Errorf("control: what has the bound is taken: %d %s", w.Code, w.Body)
		}
	}
}

// What a connection says of the length of a body, and what comes, need not be the
// same: neither is taken for a request that nobody made.
func TestLyingLengths(t *testing.T) {
	const (
		body = `{"agent":"a"}`
		next = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	)
	for name, c := range map[string]struct {
		head, body string
		want       []string // status lines
	}{
		"chunks beyond the bound": {"Transfer-Encoding: chunked", strings.Repeat("100\r\n"+strings.Repeat(" ", 256)+
			"\r\n", 8), []string{"413"}},
		"a length beyond it":         {"Content-Length: 1001", body, []string{"413"}},
		"more than is there":         {"Content-Length: 20", body, []string{"408"}},
		"less than is there":         {"Content-Length: 12", body, []string{"400"}},
		"something behind it":        {"Content-Length: 13", body + "\x00\x01\r\n\r\n", []string{"200", "400"}},
		"a length, and the next one": {"Content-Length: 13", body + next, []string{"200", "200"}},
		"two lengths":                {"Content-Length: 13\r\nContent-Length: 12", body, []string{"400"}},
		// and nothing behind it is read
		"a length and chunks": {"Content-Length: 3\r\nTransfer-Encoding: chunked", "d\r\n" + body +
			"\r\n0\r\n\r\n" + next, []string{"200"}},
		"chunks with a length that lies": {"Transfer-Encoding: chunked", "c\r\n" + body + "\r\n0\r\n\r\n", []string{"400"}},
		"control":                        {"Transfer-Encoding: chunked", "d\r\n" + body + "\r\n0\r\n\r\n", []string{"200"}},
	} {
		within(t, &host{}, Options{Largest: 1000}, func(t *testing.T, p *pipes) {
			conn := p.dial(t, "POST /run HTTP/1.1\r\nHost: x\r\n"+c.head+"\r\n\r\n"+c.body)
			var got []string
			for { // until nothing more comes
				_ = conn.SetReadDeadline(time.Now().Add(time.Hour)) // unless it was closed
				resp, err := http.ReadResponse(conn.in, nil)
				if err != nil {
					break
				}
				got = append(got, strconv.Itoa(resp.StatusCode))
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		})
	}
}

// A held body has more than a MiB, and says when so much of it was taken; the rest
// comes when it may.
type held struct {
	left  int
	taken chan struct{}
	goOn  chan struct{}
	rest  io.Reader
}

func newHeld() *held {
	return &held{
		left: smallBody + 1, taken: make(chan struct{}), goOn: make(chan struct{}),
		rest: strings.NewReader(`{"agent":"a"}`),
	}
}

func (h *held) Read(p []byte) (int, error) {
	switch {
	case h.left > 0:
		n := min(len(p), h.left)
		h.left -= n
		for i := range n {
			p[i] = ' '
		}
		return n, nil
	case h.taken != nil:
		close(h.taken)
		h.taken = nil
		<-h.goOn
	}
	return h.rest.Read(p)
}

// So many large bodies are read at a time; one more is busy, a small one is not,
// and each gives its place back when it was read.
func TestLargeBodiesTakeTurns(t *testing.T) {
	h, _ := handlerOf(&host{}, Options{}, service.Options{})
	send := func(body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/run", body)
		r.ContentLength = -1
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	answers := make(chan *httptest.ResponseRecorder, largeAtime)
	var all []*held
	for range largeAtime {
		b := newHeld()
		all = append(all, b)
		taken := b.taken
		go func() { answers <- send(b) }()
		<-taken
	}
	third := newHeld()
	if w := send(third); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
	if w := send(strings.NewReader(`{"agent":"a"}`)); w.Code != http.StatusOK {
		t.Errorf("a small one: %d %s", w.Code, w.Body)
	}
	for _, b := range all {
		close(b.goOn)
	}
	for range all {
		if w := <-answers; w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	again := newHeld()
	close(again.goOn)
	if w := send(again); w.Code != http.StatusOK {
		t.Errorf("the place is kept: %d %s", w.Code, w.Body)
	}
	broken := io.MultiReader(strings.NewReader(strings.Repeat(" ", smallBody+1)), &cut{})
	for range largeAtime + 1 { // one that breaks off gives its place back too
		if w := send(broken); w.Code != http.StatusBadRequest {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		broken = io.MultiReader(strings.NewReader(strings.Repeat(" ", smallBody+1)), &cut{})
	}
}

// A cut body breaks off.
type cut struct{}

func (*cut) Read([]byte) (int, error) { return 0, errors.New("cut") }

// Who is answered while they still send a body gets the answer: what they send then
// is read and dropped, for a moment.
func TestAnswersReachWhoStillSends(t *testing.T) {
	busy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	k := serve(t, neverLaunched(t), Options{Largest: 1000, Console: busy}, service.Options{})
	for path, want := range map[string]int{
		"/run": http.StatusRequestEntityTooLarge, "/ui/any": http.StatusUnauthorized,
		"/audit": http.StatusMethodNotAllowed,
	} {
		for _, length := range []int64{16 << 20, -1} {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", k.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			head := "Transfer-Encoding: chunked"
			body := strings.Repeat("100000\r\n"+strings.Repeat(" ", 1<<20)+"\r\n", 16) + "0\r\n\r\n"
			if length > 0 {
				head, body = "Content-Length: "+strconv.FormatInt(length, 10), strings.Repeat(" ", int(length))
			}
			if _, err := io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+head+"\r\n\r\n"+body); err != nil {
				t.Errorf("%s, %s: sending: %v", path, head, err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != want {
				t.Errorf("%s, %s: %+v %v", path, head, resp, err)
			}
			c.Close()
		}
	}
}
