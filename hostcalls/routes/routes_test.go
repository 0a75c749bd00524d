package routes

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
)

const auth = " Bearer " + value

// A request on a route reaches the server with the value, and both decisions stand in
// the log before it does.
func TestARouteAddsTheSecret(t *testing.T) {
	var r *rig
	r = open(t, grant, func(w http.ResponseWriter, q *http.Request) {
		r.judge.Lock()
		n := len(r.log.Decisions)
		r.judge.Unlock()
		text, _ := io.ReadAll(q.Body)
		fmt.Fprintf(w, "%d records, %s %s", n, text, q.Header.Get("X-Own"))
	})
	got := r.ask("POST", "/v1/x?q=1", "X-Own: mine\r\nContent-Length: 4\r\n\r\nbody")
	if got.status != 200 || got.body != "2 records, body mine" {
		t.Errorf("%+v", got)
	}
	if seen := r.asked(); !slices.Equal(seen, []string{"POST example.com/v1/x?q=1" + auth}) {
		t.Errorf("the server saw %q", seen)
	}
	d := r.log.Decisions
	if len(d) != 2 || d[0].Cap != "net.http" || d[0].Target != "https://example.com/v1/x" || d[1].Cap != "secrets.get" ||
		d[0].Deny || d[1].Deny {
		t.Errorf("recorded %+v", d)
	}
	if e := r.log.Events; len(e) != 1 || e[0].Kind != audit.KindCallDone || e[0].Bytes != int64(len(got.body)) {
		t.Errorf("and then %+v", e)
	}
}

// Whatever a program writes to get the credential for something else, nothing is sent.
// The control is the same connection with a request that has a route.
func TestWhatHasNoRouteIsNotSent(t *testing.T) {
	r := open(t, grant, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	text, err := os.ReadFile("testdata/requests.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct { // which is asked from inside of a sandbox as well
		Request string
		Status  int
	}
	if err := json.Unmarshal(text, &list); err != nil || len(list) < 30 {
		t.Fatal(err, len(list))
	}
	line := func(first string) string {
		return first + " HTTP/1.1\r\nConnection: close\r\nHost: example.com.rlp\r\n\r\n"
	}
	for _, c := range list {
		if got := r.send(c.Request); got.status != c.Status {
			t.Errorf("%q: %d %s, want %d", c.Request, got.status, got.body, c.Status)
		}
	}
	if seen := r.asked(); len(seen) != 0 {
		t.Errorf("the server saw %q", seen)
	}
	got := r.send(line("GET /v2/x"))
	var said struct{ Error, Reason, Hint string }
	if err := json.Unmarshal([]byte(got.body), &said); err != nil || said.Reason != "route_not_permitted" ||
		!strings.Contains(said.Hint, "[[inject]]") {
		t.Errorf("%v %+v", err, said)
	}
	if d := r.last(); !d.Deny || d.Reason != "route_not_permitted" {
		t.Errorf("recorded %+v", d)
	}
	if got := r.ask("GET", "/v1/x", ""); got.body != "ok" || len(r.asked()) != 1 {
		t.Errorf("control: %+v, %q", got, r.asked())
	}
}

// What closes a grant closes the route: no set of a layer's leaves it open.
func TestALayerClosesARoute(t *testing.T) {
	for _, deny := range []string{
		"network:https:example.com", "network:https:get@example.com", "secrets:use:runloop/api/key@example.com", "",
	} {
		r := open(t, grant, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
		if deny != "" {
			g, err := caps.ParseGrant(deny)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.gate.Hold(&caps.Layer{Name: "late", Deny: []caps.Entry{{Grant: g}}}); err != nil {
				t.Fatal(err)
			}
		}
		got := r.ask("GET", "/v1/x", "")
		if open := deny == ""; (got.status == 200) != open || (len(r.asked()) == 1) != open || !open && got.status != 403 {
			t.Errorf("without %q: %+v, the server saw %q", deny, got, r.asked())
		}
	}
}

// No server gives the value away, however it says it; the control is that it said it.
func TestAnswersHoldNoValue(t *testing.T) {
	said := map[string]string{
		"as it is": value, "base64": base64.StdEncoding.EncodeToString([]byte(value)),
		"hex":     hex.EncodeToString([]byte(value)),
		"percent": url.QueryEscape(value), "reversed": reversed(value),
		"entities":           strings.ReplaceAll(value, "=", "&#61;"),
		"base64url, shifted": base64.RawURLEncoding.EncodeToString([]byte("x" + value)),
		"json":               strings.ReplaceAll(value, "/", `\/`),
	}
	for name, text := range said {
		r := open(t, grant, func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("X-Echo", text)
			w.Header().Set("Location", "/v1/"+url.PathEscape(text))
			w.Header().Set("Set-Cookie", "token="+text)
			status := 200
			if q.URL.Path == "/v1/fails" {
				status = 500
			}
			if q.URL.Path == "/v1/moved" {
				status = 302
			}
			if q.URL.Path == "/v1/packed" {
				w.Header().Set("Content-Encoding", "gzip")
				w.WriteHeader(status)
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, "<<"+text+">>")
				_ = z.Close()
				return
			}
			w.WriteHeader(status)
			for _, piece := range strings.SplitAfter("<<"+text+">>", "") { // in pieces of a byte
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
			}
		})
		for _, path := range []string{"/v1/whole", "/v1/fails", "/v1/moved", "/v1/packed"} {
			got := r.ask("GET", path, "")
			if strings.Contains(got.raw, text) || strings.Contains(got.body, text) || strings.Contains(got.raw, value) {
				t.Errorf("%s of %s: %q", name, path, got.raw)
			}
			if !strings.HasPrefix(got.body, "<<") || !strings.HasSuffix(got.body, ">>") || !strings.Contains(got.body,
				"[secret runloop/api/key]") {
				t.Errorf("%s of %s: %q", name, path, got.body)
			}
		}
	}
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// Redirects lead back to the route, or elsewhere by the program's own means; cookies
// and promises about TLS stay outside.
func TestHeadsOfAnswers(t *testing.T) {
	for to, want := range map[string]string{
		"https://example.com/v2?a=b#c":  "http://example.com.rlp/v2?a=b#c",
		"https://example.com:443/v1":    "http://example.com.rlp/v1",
		"/v1/y":                         "http://example.com.rlp/v1/y",
		"y":                             "http://example.com.rlp/v1/y",
		"https://www.example.com/z":     "https://www.example.com/z",
		"//www.example.com/z":           "https://www.example.com/z",
		"http://example.com/z":          "http://example.com/z",
		"https://example.com:8443/z":    "https://example.com:8443/z",
		"https://u:p@example.com/z":     "https://u:p@example.com/z",
		"https://example.com.evil.net/": "https://example.com.evil.net/",
		"http://[::1":                   "",
	} {
		r := open(t, grant, func(w http.ResponseWriter, _ *http.Request) {
			for name, v := range map[string]string{
				"Location": to, "Set-Cookie": "a=b", "Strict-Transport-Security": "max-age=1", "Alt-Svc": `h3=":443"`,
				"X-Kept": "kept", "Keep-Alive": "timeout=5",
			} {
				w.Header().Set(name, v)
			}
			w.WriteHeader(302)
		})
		got := r.ask("GET", "/v1/x", "")
		if got.status != 302 || got.head.Get("Location") != want || got.head.Get("X-Kept") != "kept" {
			t.Errorf("%s: %d %v", to, got.status, got.head)
		}
		for _, name := range []string{"Set-Cookie", "Strict-Transport-Security", "Alt-Svc", "Keep-Alive"} {
			if got.head.Get(name) != "" {
				t.Errorf("%s comes in: %q", name, got.head.Get(name))
			}
		}
		if seen := r.asked(); len(seen) != 1 {
			t.Errorf("%s was followed: %q", to, seen)
		}
	}
}

// An answer is passed on as it comes: the program reads the first event before the
// server has made the second.
func TestAnswersStream(t *testing.T) {
	next := make(chan struct{})
	r := open(t, grant, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-next
		_, _ = io.WriteString(w, "data: 2\n\n")
	})
	req, err := http.NewRequest("GET", r.front.URL+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "example.com.rlp"
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "data: 1\n\n" {
		t.Fatalf("%q %v", first, err)
	}
	close(next)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "data: 2\n\n" {
		t.Errorf("%q %v", rest, err)
	}
}

// What cannot be looked through is not passed on.
func TestOtherEncodingsAreRefused(t *testing.T) {
	r := open(t, grant, func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("asked for %q", q.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "packed"+value)
	})
	got := r.ask("GET", "/v1/x", "Accept-Encoding: br, zstd\r\n")
	if got.status != 502 || strings.Contains(got.raw, "packed") || len(r.asked()) != 1 {
		t.Errorf("%+v", got)
	}
}

// Bytes and rates of the run hold on routes.
func TestLimitsHoldOnRoutes(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	r := open(t, grant+"[limits]\nnet_bytes = 5_000\nnet_requests_per_minute = 2\n",
		func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/v1/long" {
				_, _ = io.WriteString(w, long)
			}
		})
	if got := r.ask("GET", "/v1/short", ""); got.status != 200 {
		t.Fatalf("control: %+v", got)
	}
	if got := r.ask("GET", "/v1/long", ""); len(got.body) >= len(long) {
		t.Errorf("all %d bytes came", len(got.body))
	}
	if d := r.last(); d.Reason != "budget_exhausted" {
		t.Errorf("recorded %+v", d)
	}
	if got := r.ask("GET", "/v1/short", ""); got.status != 429 {
		t.Errorf("%+v", got)
	}
}

// The answer of a host that nobody trusts marks the run before the program has it, and
// the floor closes the route.
func TestAnswersTaint(t *testing.T) {
	floor, err := caps.ParseGrant("secrets:use:*")
	if err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []bool{true, false} {
		r := open(t, grant, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") },
			func(c *hostcalls.Config, o *gate.Options) {
				o.Floor = &caps.Layer{Name: "_untrusted", Deny: []caps.Entry{{Grant: floor}}, Because: caps.UntrustedContext}
				if !trusted {
					c.Sources = hostcalls.Sources{}
				}
			})
		first, second := r.ask("GET", "/v1/x", ""), r.ask("GET", "/v1/x", "")
		if first.status != 200 || (second.status == 200) != trusted || !trusted && !strings.Contains(second.body,
			"untrusted_context") {
			t.Errorf("trusted %v: %+v, then %+v", trusted, first, second)
		}
	}
}

// Many connections at once are judged one by one and sent beside each other.
func TestManyAtOnce(t *testing.T) {
	const many = 20
	var all sync.WaitGroup
	all.Add(many)
	r := open(t, grant, func(w http.ResponseWriter, q *http.Request) {
		all.Done()
		all.Wait() // nobody is answered before all have come
		_, _ = io.WriteString(w, q.URL.Path+" "+q.Header.Get("Authorization"))
	})
	var asking sync.WaitGroup
	for i := range many {
		asking.Go(func() {
			path := fmt.Sprintf("/v1/%d", i)
			if got := r.ask("GET", path, ""); got.body != path+" Bearer [secret runloop/api/key]" {
				t.Errorf("%s: %+v", path, got)
			}
		})
	}
	asking.Wait()
	if d, e := r.log.Decisions, r.log.Events; len(d) != 2*many || len(e) != many {
		t.Errorf("%d decisions, %d ends", len(d), len(e))
	}
}

// Services answer their own names, and no route is asked.
func TestServicesAnswerTheirNames(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "model") })
	h := &Handler{Services: map[string]http.Handler{"model": service}}
	r := open(t, grant, func(http.ResponseWriter, *http.Request) {})
	h.Sender = r.front.Config.Handler.(*Handler).Sender
	r.front.Config.Handler = h
	for host, want := range map[string]int{"model.rlp": 200, "MODEL.rlp": 403, "model.rlp:80": 403, "other.rlp": 403} {
		if got := r.send("GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"); got.status != want {
			t.Errorf("%s: %d", host, got.status)
		}
	}
}

// Bodies of requests under way have one bound, and what one held is the next one's: no
// more is read than is sent on, of however many connections.
func TestBodiesHaveOneBound(t *testing.T) {
	r := open(t, grant, func(w http.ResponseWriter, q *http.Request) {
		n, _ := io.Copy(io.Discard, q.Body)
		fmt.Fprint(w, n)
	})
	h := r.front.Config.Handler.(*Handler)
	hold := strings.NewReader(strings.Repeat("x", 1<<20))
	_, free, err := h.bodies.Read(hold, maxBodies, maxBodies)
	if err != nil {
		t.Fatal(err)
	}
	filled := maxBodies - 1<<20
	_, more, err := h.bodies.Read(io.LimitReader(zeros{}, int64(filled)), maxBodies, maxBodies)
	if err != nil {
		t.Fatal(err)
	}
	const post = "Content-Length: 4\r\n\r\nbody"
	if got := r.ask("POST", "/v1/x", post); got.status != 503 || len(r.asked()) != 0 {
		t.Errorf("%+v", got)
	}
	more()
	free()
	if got := r.ask("POST", "/v1/x", post); got.body != "4" {
		t.Errorf("control: %+v", got)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
