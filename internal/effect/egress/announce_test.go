package egress

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
)

// A server on this host that asks the kernel whose connection it is learns that
// an agent sent the request; others learn nothing of rlp.
func TestRequestsToThisHostAreAnnounced(t *testing.T) {
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	t.Cleanup(s.Close)
	for _, c := range []struct {
		url  string
		want bool
	}{
		{"http://127.0.0.1:8770/run", true},
		{"http://127.9.9.9:8770/run", true},
		{"http://[::1]:8770/run", true},
		{"http://localhost:8770/run", true},
		{"http://10.1.2.3:8770/run", false},
		{"http://api.example.com/run", false},
	} {
		dial, _ := through(s)
		answer := somewhere
		if c.url == "http://localhost:8770/run" {
			answer = netip.MustParseAddr("127.0.0.1")
		}
		client := New(Config{Resolve: fixed(answer), Dial: dial})
		req := request(t, c.url)
		req.Header["X-Own"] = []string{"kept"}
		req.Header["Connection"] = []string{"Via"}
		resp, err := client.Send(req, true)
		if err != nil {
			t.Fatalf("%s: %v", c.url, err)
		}
		_ = resp.Body.Close()
		client.Close()
		if slices.Contains(got["Via"], "1.1 rlp") != c.want {
			t.Errorf("%s: Via %q", c.url, got["Via"])
		}
		if got.Get("X-Own") != "kept" {
			t.Errorf("%s: the request's own headers are lost: %v", c.url, got)
		}
		if req.Header.Get("Via") != "" {
			t.Errorf("%s: the caller's own header changed", c.url)
		}
	}
	if got := announced(&http.Request{}, "localhost:80").Header.Get("Via"); got != "1.1 rlp" {
		t.Errorf("without headers: Via %q", got)
	}
}
