package connect_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/connect"
	"runloop.dev/rlp/internal/effect/proxy"
)

// asking has the run's connections asked about; answer says how, or why not.
func (r *run) asking(t *testing.T, answer func(hostcalls.Question) (consent, refused string)) {
	t.Helper()
	p, err := connect.New(connect.Config{
		Gate: r.gate, Lock: &r.lock, Budget: budget.New(caps.Limits{}, nil), Now: func() time.Time { return r.now },
		Confirm: func(_ context.Context, q hostcalls.Question) (string, string) { return answer(q) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Policy = p
}

func plain(q *http.Request) proxy.Target {
	return proxy.Target{Way: proxy.HTTP, Host: "a.example.org:80", Request: q}
}

func post(method, query, body string, header ...string) *http.Request {
	r := request(method, query, header...)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return r
}

// Where a person is asked about what changes something outside, they are asked about each
// request of plain HTTP that writes and each other connection, and a no is a denial of
// its own; nobody is asked about what reads, or about what the policy refuses. The
// control is the same without.
func TestAPersonIsAskedAboutConnections(t *testing.T) {
	for name, c := range map[string]struct {
		target proxy.Target
		asked  string // what a person reads, "": nothing
		denied string
	}{
		"https":     {proxy.Target{Way: proxy.TLS, Host: "api.example:443"}, "https://api.example:443 ", "not_confirmed"},
		"bytes":     {proxy.Target{Way: proxy.Bytes, Host: "db.example:5432"}, "tcp://db.example:5432 ", "not_confirmed"},
		"a write":   {plain(post("POST", "x=y", "a=b")), "POST http://a.example.org:80/?x=y a=b", "not_confirmed"},
		"a delete":  {plain(request("DELETE", "")), "DELETE http://a.example.org:80/ ", "not_confirmed"},
		"a read":    {plain(request("GET", "")), "", "granted"},
		"elsewhere": {proxy.Target{Way: proxy.TLS, Host: "other.example:443"}, "", "host_not_permitted"},
		"a write that looks like a read": {
			plain(request("GET", "", "X-HTTP-Method-Override")), "", "method_not_permitted",
		},
	} {
		control := newRun(t, everywhere)
		_, _ = control.Decide(t.Context(), c.target)
		if got := control.decided(); !strings.HasSuffix(got, " granted") && name != "elsewhere" {
			t.Errorf("control: %s: %s", name, got)
		}
		for answer, want := range map[string]string{"": c.denied, "confirmed by a test": "granted"} {
			if c.target.Request != nil && c.target.Request.Body != nil { // which the control has read nothing of
				c.target = plain(post("POST", "x=y", "a=b"))
			}
			if c.asked == "" {
				want = c.denied
			}
			r, asked := newRun(t, everywhere), ""
			r.asking(t, func(q hostcalls.Question) (string, string) {
				if asked = q.Target + " " + q.Arguments; answer == "" {
					return "", "the operator said no"
				}
				return answer, ""
			})
			g, err := r.Decide(t.Context(), c.target)
			if got := r.decided(); asked != c.asked || !strings.HasSuffix(got, " "+want) || (err == nil) != (want == "granted") {
				t.Errorf("%s, answered %q: asked %q, %v, %s", name, answer, asked, err, got)
			}
			if err != nil && want == "not_confirmed" && err.Error() != "the operator said no" {
				t.Errorf("%s: %v", name, err)
			}
			r.Done(c.target, g, proxy.End{})
			if e := r.log.Events[len(r.log.Events)-1]; e.ErrorSummary != g.Consent || e.Status != "ok" ||
				asked != "" && g.Consent != answer {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

// What the policy takes away while a person thinks is gone when they said yes.
func TestAYesIsToWhatHoldsThen(t *testing.T) {
	r := newRun(t, everywhere)
	r.asking(t, func(hostcalls.Question) (string, string) {
		layer := caps.Layer{Name: "override", Deny: []caps.Entry{}}
		g, err := caps.ParseGrant("network:https:post@api.example")
		if err != nil {
			t.Fatal(err)
		}
		layer.Deny = append(layer.Deny, caps.Entry{Grant: g})
		if _, err := r.gate.Reload("override", []*caps.Layer{&layer}); err != nil {
			t.Fatal(err)
		}
		return "confirmed by a test", ""
	})
	_, err := r.Decide(t.Context(), proxy.Target{Way: proxy.TLS, Host: "api.example:443"})
	if got := r.decided(); err == nil || !strings.HasSuffix(got, "method_not_permitted") {
		t.Errorf("%v, %s", err, got)
	}
}

// zeros are a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Where methods are limited a request of plain HTTP is of the method that it says, its
// body and its trailers looked at, and what cannot be looked at is refused. The control
// is the same request where every method is granted; what is sent is whole in each.
//
//rlp:holds N5
func TestBodiesAskForNoOtherMethod(t *testing.T) {
	trailer := post("POST", "", "a=b")
	trailer.Trailer = http.Header{"X-Http-Method-Override": nil}
	endless := post("POST", "", "")
	endless.Body, endless.ContentLength = io.NopCloser(zeros{}), -1
	for name, c := range map[string]struct {
		make    func() *http.Request
		refused string
	}{
		"a form":          {func() *http.Request { return post("POST", "", "a=b") }, ""},
		"nothing":         {func() *http.Request { return post("GET", "", "") }, ""},
		"a field":         {func() *http.Request { return post("POST", "", "id=7&_method=DELETE") }, "_method in the body"},
		"a body of a GET": {func() *http.Request { return post("GET", "", "a=b") }, "GET with a body"},
		"an encoded one":  {func() *http.Request { return post("POST", "", "a=b", "Content-Encoding") }, "not looked into"},
		"a trailer":       {func() *http.Request { return trailer }, "the header X-Http-Method-Override"},
		"without an end":  {func() *http.Request { return endless }, "not looked at"},
	} {
		for _, layer := range []string{"", "[capabilities]\nnet = { methods = [\"GET\", \"POST\"] }\n"} {
			q := c.make()
			r := newRun(t, everywhere, layer)
			_, err := r.Decide(t.Context(), plain(q))
			open := c.refused == "" || layer == ""
			if got := r.decided(); (err == nil) != open || !open && (!strings.HasSuffix(got, " method_not_permitted") ||
				!strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%s, layer %q: %v, %s", name, layer, err, got)
			}
			if !open || q.ContentLength < 0 {
				continue
			}
			if sent, err := io.ReadAll(q.Body); err != nil || int64(len(sent)) != q.ContentLength && q != trailer {
				t.Errorf("%s, layer %q: %q is sent, %v", name, layer, sent, err)
			}
		}
	}
}

// The memory of bodies is given back when their requests end, refused or not; a program
// that goes away is refused nothing, and one that the policy refuses is not listened to.
func TestBodiesAreLetGo(t *testing.T) {
	r := newRun(t, everywhere, "[capabilities]\nnet = { methods = [\"POST\"] }\n")
	for i, want := range []string{"not looked at", "not looked at", "", "", ""} { // of which two find room at once
		ctx, end := context.WithCancel(t.Context())
		q, size := post("POST", "", ""), int64(hostcalls.MaxRequestBody)
		if want != "" {
			size++
		}
		q.Body, q.ContentLength = io.NopCloser(io.LimitReader(zeros{}, size)), size
		g, err := r.Decide(ctx, plain(q))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Fatalf("%d: %v", i, err)
		}
		end()
		if err == nil {
			<-g.Context.Done()
		}
	}
	before := len(r.log.Decisions)
	q := post("POST", "", "")
	q.Body, q.ContentLength = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), -1
	if _, err := r.Decide(t.Context(), plain(q)); err == nil || len(r.log.Decisions) != before {
		t.Errorf("%v, %d decisions", err, len(r.log.Decisions)-before)
	}
	q.Host, q.URL = "other.example", &url.URL{Path: "/"}
	if _, err := r.Decide(t.Context(), proxy.Target{Way: proxy.HTTP, Host: "other.example:80", Request: q}); err == nil ||
		!slices.Contains(strings.Fields(r.decided()), "host_not_permitted") {
		t.Errorf("%v, %s", err, r.decided())
	}
}
