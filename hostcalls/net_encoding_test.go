package hostcalls

import (
	"maps"
	"net/http"
	"net/netip"
	"testing"
)

// The host takes gzip, whatever the guest says, where it can undo it: not for a
// part of an answer and not for HEAD, and also behind a redirect.
func TestTheHostChoosesTheEncoding(t *testing.T) {
	w := apiWorld(t)
	w.name("other.example", []netip.Addr{publicAddr})
	var last http.Header
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		last = r.Header.Clone()
		if r.URL.Path == "/away" {
			http.Redirect(rw, r, "https://other.example/", http.StatusFound)
		}
	}
	r := netRig(t, w, "[capabilities]\nnet = [\"api.example.com\", \"other.example\"]\n")
	for _, c := range []struct {
		method, path string
		headers      map[string]string
		want, agent  string
	}{
		{"GET", "", nil, "gzip", "rlp"},
		{"GET", "", map[string]string{"accept-encoding": "br", "User-Agent": "me"}, "gzip", "me"},
		{"GET", "", map[string]string{"Range": "bytes=0-1"}, "", "rlp"},
		{"HEAD", "", nil, "", "rlp"},
		{"POST", "", nil, "gzip", "rlp"},
		{"GET", "away", nil, "gzip", "rlp"},
		{"GET", "away", map[string]string{"Authorization": "x", "User-Agent": "me"}, "gzip", "me"},
	} {
		headers := map[string]string{}
		maps.Copy(headers, c.headers)
		n, _ := r.http(map[string]any{"method": c.method, "url": "https://api.example.com/" + c.path, "headers": headers}, "")
		if n < 0 || last.Get("Accept-Encoding") != c.want || last.Get("User-Agent") != c.agent || c.path == "away" && last.Get("Authorization") != "" {
			t.Errorf("%+v: %d, sent %v", c, n, last)
		}
	}
}
