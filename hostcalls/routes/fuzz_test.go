package routes

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
)

// sends keeps what would be sent.
type sends struct{ last *hostcalls.RouteRequest }

func (s *sends) Send(_ context.Context, q *hostcalls.RouteRequest) (*http.Response, error) {
	s.last = q
	u, err := url.Parse(q.URL)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: &http.Request{URL: u}}, nil
}

// Whatever a program writes as target, host and method, a request with a route goes to
// the route's host and below its path, as the server behind reads it; any other has none.
func FuzzRequests(f *testing.F) {
	for _, target := range []string{
		"/v1/x", "/v1/../x", "/v1/%2e%2e/x", "//example.com/v1/x", "http://a/v1/x", "*", "/v1/x?y#z", "/%76%31/x",
		"/v1/..;/x", `/v1/\..\x`, "/v1/%5c", "/v1/x%00", "/v1/%c0%ae%c0%ae/x",
	} {
		for _, host := range []string{
			"example.com.rlp", "EXAMPLE.com.rlp", "a@example.com.rlp", "example.com.rlp:80", "evil.rlp",
		} {
			f.Add("GET", target, host)
		}
	}
	f.Add("get", "/v1/x", "example.com.rlp")
	list := []caps.Route{{Host: "example.com", Methods: 1, Path: "/v1/*", Header: "X-Key", Secret: "runloop/a/b"}}
	f.Fuzz(func(t *testing.T, method, target, host string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.ContainsAny(target, " \r\n") {
			return // no server hands such a request on
		}
		got := &sends{}
		r := &http.Request{Method: method, URL: u, Host: host, RequestURI: target, Header: http.Header{}, Body: http.NoBody}
		(&Handler{Sender: got, Routes: list}).ServeHTTP(httptest.NewRecorder(), r)
		if got.last == nil || got.last.Route == nil {
			return
		}
		sent, err := url.Parse(got.last.URL)
		if err != nil || host != "example.com.rlp" || method != "GET" || sent.Host != "example.com" ||
			sent.Scheme != "https" || sent.User != nil {
			t.Fatalf("%s %q at %q is sent as %s %q, %v", method, target, host, got.last.Method, got.last.URL, err)
		}
		if seen := path.Clean(sent.Path); seen != "/v1" && !strings.HasPrefix(seen, "/v1/") {
			t.Fatalf("%q is sent as %q, and the server sees %q", target, got.last.URL, seen)
		}
	})
}

// The server of net/http itself hands on what the fuzz test gives the handler.
func TestControlTheServerKeepsTargets(t *testing.T) {
	var seen string
	r := open(t, grant, func(http.ResponseWriter, *http.Request) {})
	r.front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		seen = q.RequestURI
		_, _ = io.WriteString(w, "ok")
	})
	for _, target := range []string{"/v1/../x", "/v1/%2e%2e/x", "//example.com/v1/x", "http://a/v1/x"} {
		if r.ask("GET", target, ""); seen != target {
			t.Errorf("%q came as %q", target, seen)
		}
	}
}
