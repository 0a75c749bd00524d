package hostcalls

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/lend"
)

// apiWorld has one public host, api.example.com, and other.example beside it.
func apiWorld(t testing.TB) *world {
	w := newWorld(t)
	for _, name := range []string{"api.example.com", "other.example", "a.example.org"} {
		w.name(name, []netip.Addr{publicAddr})
	}
	return w
}

const apiPolicy = "[capabilities]\nnet = [\"api.example.com\", \"other.example\"]\n"

// A request is sent as it was asked for, and the answer is what the server said.
//
//rlp:holds R80
func TestHTTPIsReal(t *testing.T) {
	w := apiWorld(t)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header()["X-Two"] = []string{"a", "b"}
		rw.Header().Set("Set-Cookie", "k=v")
		rw.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(rw, "%s %s %s %s %v %s|%s", r.Method, r.Host, r.RequestURI, r.Header.Get("X-Key"), r.Header["X-Many"],
			r.UserAgent(), body)
	}
	r := netRig(t, w, apiPolicy)
	n, a := r.http(map[string]any{
		"method": "PUT", "url": "https://API.example.com.:443/p%2Fq/ä?x=1&y=ü#part", "timeout_ms": 5000,
		"headers": map[string]any{"x-key": "v", "X-Many": []string{"1", "2"}},
	}, "the body")
	want := "PUT api.example.com /p%2Fq/%C3%A4?x=1&y=%C3%BC v [1 2] rlp|the body"
	if n < 0 || a.Status != 418 || a.Body != want {
		t.Errorf("%d %+v, want %q", n, a, want)
	}
	if a.Headers["Set-Cookie"] != "k=v" || fmt.Sprint(a.Headers["X-Two"]) != "[a b]" {
		t.Errorf("headers %v", a.Headers)
	}
	d := r.log.Decisions[0]
	if d.Cap != "net.http" || d.Op != "net_http" || d.Deny || d.Target != "https://api.example.com/p%2Fq/%C3%A4" ||
		d.Args == nil {
		t.Errorf("recorded %+v", d)
	}
	if e := r.log.Events[0]; e.Verb != "net_http" || e.Status != "ok" || e.Bytes != n || e.ResultHash == "" ||
		e.ErrorSummary != "answered 418" {
		t.Errorf("recorded %+v", e)
	}
}

// Every method, an empty answer, an answer that has a length and no body.
func TestMethodsAndEmptyAnswers(t *testing.T) {
	w := apiWorld(t)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Method", r.Method)
		if r.Method == "DELETE" {
			rw.WriteHeader(http.StatusNoContent)
		} else {
			rw.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(rw, "12345")
		}
	}
	r := netRig(t, w, apiPolicy)
	for method, body := range map[string]string{
		"GET": "12345", "HEAD": "", "POST": "12345", "PATCH": "12345",
		"DELETE": "", "OPTIONS": "12345", "PURGE": "12345",
	} {
		n, a := r.http(map[string]any{"method": method, "url": "https://api.example.com/"}, "")
		if n < 0 || a.Headers["X-Method"] != method || a.Body != body {
			t.Errorf("%s: %d %+v", method, n, a)
		}
	}
}

// What the policy does not name is refused, with what it would have to say.
//
//rlp:holds R18 R19 R20 R21 R77 C17
func TestHTTPRefusalsSayWhatToWrite(t *testing.T) {
	const base = "schema = \"0.2\"\n[capabilities]\nnet = { hosts = [\"api.example.com\", \"*.example.org\", " +
		"\"other.example:8443\"], methods = [\"GET\", \"HEAD\"] }\n"
	for _, c := range []struct{ method, url, reason, hint string }{
		{"GET", "https://api.example.com/", "", ""},
		{"GET", "https://a.example.org/", "", ""},
		{"GET", "https://other.example:8443/", "", ""},
		{"GET", "https://a.b.example.org/", "host_not_permitted", `net = ["a.b.example.org"]`},
		{"GET", "https://example.org/", "host_not_permitted", `net = ["example.org"]`},
		{"GET", "https://evilexample.org/", "host_not_permitted", `net = ["evilexample.org"]`},
		{"GET", "https://other.example/", "host_not_permitted", `net = ["other.example"]`},
		{"GET", "https://api.example.com:8443/", "host_not_permitted", `net = ["api.example.com:8443"]`},
		{"GET", "http://api.example.com/", "http_not_permitted", `net = { hosts = ["api.example.com"], allow_http = true }`},
		{
			"POST", "https://api.example.com/", "method_not_permitted",
			`net = { hosts = ["api.example.com"], methods = ["POST"] }`,
		},
		{"get", "https://api.example.com/", "method_not_permitted", `net = ["api.example.com"]`},
	} {
		w := apiWorld(t)
		r := netRig(t, w, base)
		req := map[string]any{"method": c.method, "url": c.url}
		if c.reason == "" {
			if n, a := r.http(req, ""); n < 0 || a.Status != 200 {
				t.Errorf("control: %s %s: %d %+v", c.method, c.url, n, a)
			}
			continue
		}
		if hint := r.refused(req, "", -2, c.reason); !strings.HasSuffix(hint, c.hint) {
			t.Errorf("%s %s: hint %q, want %q", c.method, c.url, hint, c.hint)
		}
		if len(w.requests()) != 0 || len(w.asked) != 0 {
			t.Errorf("%s %s: refused after %v, %v", c.method, c.url, w.asked, w.requests())
		}
	}
}

// A private address is reached as itself by a grant that names it, and in no
// other way.
func TestPrivateAddressesNeedTheirName(t *testing.T) {
	w := newWorld(t)
	port := w.plain[strings.LastIndexByte(w.plain, ':')+1:]
	w.name("inside.example", []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	for _, c := range []struct{ policy, url, reason string }{
		{`net = { hosts = ["127.0.0.1:` + port + `"], allow_http = true }`, "http://127.0.0.1:" + port, ""},
		{`net = { hosts = ["localhost:` + port + `"], allow_http = true }`, "http://localhost:" + port, ""},
		{`net = { hosts = ["localhost:` + port + `"], allow_http = true }`, "http://127.0.0.1:" + port, "host_not_permitted"},
		{`net = { hosts = ["127.0.0.1:` + port + `"], allow_http = true }`, "http://localhost:" + port, "host_not_permitted"},
		{
			`net = { hosts = ["inside.example:` + port + `"], allow_http = true }`, "http://inside.example:" + port,
			"address_not_permitted",
		},
		{
			`net = { hosts = ["169.254.169.254"], allow_http = true }`, "http://169.254.169.254/latest/meta-data/",
			"address_not_permitted",
		},
		{`net = ["[fd00:ec2::254]"]`, "https://[fd00:ec2::254]/", "address_not_permitted"},
		{`net = ["[64:ff9b::7f00:1]"]`, "https://[64:ff9b::7f00:1]/", "address_not_permitted"},
		{`net = ["0.0.0.0"]`, "https://0.0.0.0/", "address_not_permitted"},
		{`net = ["224.0.0.1"]`, "https://224.0.0.1/", "address_not_permitted"},
	} {
		r := netRig(t, w, "[capabilities]\n"+c.policy+"\n")
		before := len(w.requests())
		if c.reason == "" {
			if n, a := r.get(c.url); n < 0 || a.Body != "hello" {
				t.Errorf("control: %s: %d %+v", c.policy, n, a)
			}
			continue
		}
		hint := r.refused(map[string]any{"url": c.url}, "", -2, c.reason)
		if len(w.requests()) != before || !strings.Contains(hint, "net = ") {
			t.Errorf("%s, %s: %v, hint %q", c.policy, c.url, w.requests()[before:], hint)
		}
		if strings.Contains(hint, "127.0.0.1,") {
			t.Errorf("the guest learns where the name leads: %q", hint)
		}
	}
}

// Whoever may reach every host may not reach this machine: no grant names it.
func TestAnyHostIsNoGrantOfPrivateAddresses(t *testing.T) {
	w := newWorld(t)
	port := w.plain[strings.LastIndexByte(w.plain, ':')+1:]
	w.name("api.example.com", []netip.Addr{publicAddr})
	c := w.client()
	for _, grants := range [][]string{
		{"network:http:*"},
		{"network:http:*", "network:http:post@127.0.0.1:" + port}, // names it for another method
	} {
		r := newRig(t, grants...)
		r.host.cfg.HTTP = c
		r.refused(map[string]any{"url": "http://127.0.0.1:" + port + "/"}, "", -2, "address_not_permitted")
		r.refused(map[string]any{"url": "http://localhost:" + port + "/"}, "", -2, "address_not_permitted")
		if n, _ := r.get("http://api.example.com/"); n < 0 {
			t.Errorf("control: a public host: %d", n)
		}
		if len(r.log.Decisions) != 3 || !r.log.Decisions[0].Deny {
			t.Errorf("recorded %+v", r.log.Decisions)
		}
	}
	if got := w.requests(); len(got) != 2 {
		t.Errorf("sent %v", got)
	}
	c.Close()
}

// Certificates are verified, whatever the guest or the server would like.
func TestCertificatesAreVerified(t *testing.T) {
	w := apiWorld(t)
	r := netRig(t, w, apiPolicy)
	if n, _ := r.get("https://api.example.com/"); n < 0 {
		t.Fatal("control: a certificate of the authority that is trusted")
	}
	stranger := apiWorld(t)
	stranger.roots = w.roots // knows another authority
	r = netRig(t, stranger, apiPolicy)
	n, a := r.denial("net_http", `{"url":"https://api.example.com/"}`, "")
	if n != -29 || !strings.Contains(a.Hint, "certificate") || len(stranger.requests()) != 0 {
		t.Errorf("%d %+v, served %v", n, a, stranger.requests())
	}
}

// A compressed answer is decompressed, and counts as what it becomes.
func TestRatioBombsEnd(t *testing.T) {
	w := apiWorld(t)
	size := 0
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding %q", r.Header.Get("Accept-Encoding"))
		}
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		chunk := make([]byte, 1<<20)
		for left := size; left > 0; left -= len(chunk) {
			if _, err := z.Write(chunk[:min(left, len(chunk))]); err != nil {
				return
			}
		}
		_ = z.Close()
	}
	r := netRig(t, w, apiPolicy)
	size = 3000
	n, a := r.http(map[string]any{
		"url":     "https://api.example.com/",
		"headers": map[string]string{"Accept-Encoding": "br"},
	}, "")
	if n < 0 || len(a.Body) != 3000 || a.Headers["Content-Encoding"] != nil {
		t.Errorf("control: %d, %d bytes, %v", n, len(a.Body), a.Headers)
	}
	size = 2 * MaxResponseBody
	if n, a := r.denial("net_http", `{"url":"https://api.example.com/"}`, ""); n != -1 || !strings.Contains(a.Hint,
		"64 MiB") {
		t.Errorf("%d %+v", n, a)
	}
	size = 50_000
	r = netRig(t, w, apiPolicy+"[limits]\nnet_bytes = 20000\n")
	r.refused(map[string]any{"url": "https://api.example.com/"}, "", -19, "budget_exhausted")
}

// An answer that breaks off, never comes, or is no HTTP is an error, in words
// that hold nothing of it.
func TestBrokenAnswers(t *testing.T) {
	w := apiWorld(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	raw := ""
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		if raw == "" {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return
		}
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, raw)
		_ = conn.Close()
	}
	r := netRig(t, w, apiPolicy)
	for _, text := range []string{
		"SECRET no http\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSECRET",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nSECRET\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nSECRET",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SECRET\r\nConnection: Upgrade\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("SECRET", 100_000) + "\r\n\r\n",
	} {
		raw = text
		if n, a := r.denial("net_http", `{"url":"https://api.example.com/"}`, ""); n != -29 || strings.Contains(a.Hint,
			"SECRET") {
			t.Errorf("%.40q: %d %+v", text, n, a)
		}
	}
	raw = ""
	if n, a := r.denial("net_http", `{"url":"https://api.example.com/","timeout_ms":30}`, ""); n != -73 ||
		!strings.Contains(a.Hint, "timeout_ms") {
		t.Errorf("%d %+v", n, a)
	}
	for _, e := range r.log.Events {
		if e.Status != "error" || strings.Contains(e.ErrorSummary, "SECRET") {
			t.Errorf("recorded %+v", e)
		}
	}
}

// The time of one call is not another's: neither what is left of it, nor its end.
func TestADeadlineIsItsCallsOwn(t *testing.T) {
	w := apiWorld(t)
	w.handler = func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-r.Context().Done()
		}
	}
	r := netRig(t, w, apiPolicy)
	for range 3 {
		if n, _ := r.call("net_http", `{"url":"https://api.example.com/","timeout_ms":20000}`, ""); n < 0 {
			t.Errorf("in time: %d", n)
		}
		if n, _ := r.call("net_http", `{"url":"https://api.example.com/hang","timeout_ms":20}`, ""); n != -73 {
			t.Errorf("too late: %d", n)
		}
	}
	d := deadline{}
	first := d.start(t.Context(), time.Hour)
	d.stop()
	if again := d.start(t.Context(), time.Nanosecond); again != first {
		t.Error("a context that did not end serves no other call")
	}
	<-first.Done()
	if context.Cause(first) != context.DeadlineExceeded {
		t.Error(context.Cause(first))
	}
	d.stop()
	other, cancel := context.WithCancel(t.Context())
	own := d.start(t.Context(), time.Hour)
	if own.Err() != nil || d.start(other, time.Hour).Err() != nil {
		t.Error("ended at its start")
	}
	if own.Err() == nil {
		t.Error("what another run had is kept until that one ends")
	}
	cancel()
	if d.ctx.Err() == nil {
		t.Error("the run's end does not end the call")
	}
	d.stop()
}

// A connection that goes on reading the body when the call is over reads
// nothing: the memory is the next call's by then.
func TestTheBodyIsLentForTheCall(t *testing.T) {
	x := exchange{loan: lend.Of("body")}
	reader := x.loan.Reader()
	p := make([]byte, 2)
	if n, err := reader.Read(p); n != 2 || err != nil || string(p) != "bo" {
		t.Fatalf("control: %d %v %q", n, err, p)
	}
	x.end()
	if n, err := reader.Read(p); n != 0 || err == nil || err == io.EOF {
		t.Errorf("%d %v: a body that is cut must not look whole", n, err)
	}
}

// The run's context ends a call that waits.
func TestTheRunEndsARequest(t *testing.T) {
	w := apiWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.handler = func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }
	r := netRig(t, w, apiPolicy)
	text := `{"url":"https://api.example.com/"}`
	copy(r.mem[16:], text)
	stack := []uint64{16, uint64(len(text)), 0, 0, outAt, outRoom}
	if err := r.funcs["net_http"].Call(ctx, r.mem, stack); err != nil || int64(stack[0]) != -29 {
		t.Errorf("%d, %v", int64(stack[0]), err)
	}
}

// Rates and budgets are exact, redirects count, and what was refused before it
// was sent costs nothing.
func TestNetLimits(t *testing.T) {
	w := apiWorld(t)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/again" {
			http.Redirect(rw, r, "/", http.StatusFound)
			return
		}
		rw.Header()["Date"] = nil
		_, _ = rw.Write(make([]byte, 100))
	}
	now := int64(0)
	rate := netRig(t, w, apiPolicy+"[limits]\nnet_requests_per_minute = 3\n")
	rate.host.cfg.Now = func() int64 { return now }
	req := map[string]any{"url": "https://api.example.com/"}
	again := map[string]any{"url": "https://api.example.com/again"}
	for range 5 {
		rate.refused(map[string]any{"url": "https://nobody.example/"}, "", -2, "host_not_permitted")
	}
	if n, _ := rate.http(again, ""); n < 0 { // two requests
		t.Fatalf("control: %d", n)
	}
	rate.refused(again, "", -19, "rate_limited") // the third was sent, its redirect not
	if hint := rate.refused(req, "", -19, "rate_limited"); !strings.Contains(hint, "net_requests_per_minute") {
		t.Errorf("hint %q", hint)
	}
	if got := w.requests(); len(got) != 3 {
		t.Errorf("sent %v", got)
	}
	now = 61 * int64(time.Second)
	if n, _ := rate.http(req, ""); n < 0 {
		t.Errorf("a minute later: %d", n)
	}
	free := netRig(t, w, apiPolicy)
	if n, _ := free.http(req, "x"); n < 0 {
		t.Fatalf("control: %d", n)
	}
	each := free.host.budget.Used(caps.NetBytes) // what one request and its answer come to
	if each < 100+1 || each > 1000 {
		t.Errorf("an answer of 100 bytes counts %d", each)
	}
	for _, limit := range []int64{3*each - 1, 3 * each} {
		r := netRig(t, w, fmt.Sprintf("%s[limits]\nnet_bytes = %d\n", apiPolicy, limit))
		for i := range limit / each {
			if n, _ := r.http(req, "x"); n < 0 {
				t.Errorf("request %d of %d bytes within %d: %d", i+1, each, limit, n)
			}
		}
		if hint := r.refused(req, "x", -19, "budget_exhausted"); !strings.Contains(hint, "net_bytes") {
			t.Errorf("hint %q", hint)
		}
	}
	none := netRig(t, w, apiPolicy+"[limits]\nnet_bytes = 0\n")
	before := len(w.requests())
	none.refused(req, "", -19, "budget_exhausted")
	netRig(t, w, apiPolicy+"[limits]\nnet_requests_per_minute = 0\n").refused(req, "", -19, "rate_limited")
	if len(w.requests()) != before {
		t.Error("sent without a budget")
	}
}

// Connections are kept for the next request of the run.
func TestConnectionsAreKept(t *testing.T) {
	w := apiWorld(t)
	r := netRig(t, w, apiPolicy)
	for range 5 {
		if n, _ := r.get("https://api.example.com/"); n < 0 {
			t.Fatal(n)
		}
	}
	if got := w.dials(); !slices.Equal(got, []string{net.JoinHostPort(publicAddr.String(), "443")}) {
		t.Errorf("dialled %v", got)
	}
}

// What the run no longer holds is not reached over a connection that it has.
//
//rlp:holds C20
func TestAKeptConnectionIsNoGrant(t *testing.T) {
	w := apiWorld(t)
	r := netRig(t, w, apiPolicy)
	if n, _ := r.get("https://api.example.com/"); n < 0 {
		t.Fatal("control: refused before anything was taken away")
	}
	g, err := caps.ParseGrant("network:https:api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.gate.Hold(&caps.Layer{Name: "taint", Deny: []caps.Entry{{Grant: g}}}); err != nil {
		t.Fatal(err)
	}
	r.refused(map[string]any{"url": "https://api.example.com/"}, "", -2, "host_not_permitted")
	if got := w.requests(); len(got) != 1 {
		t.Errorf("sent %v", got)
	}
}
