package hostcalls

import (
	"bytes"
	"compress/zlib"
	"maps"
	"net/http"
	"net/netip"
	"strings"
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
		{"GET", "", map[string]string{"accept-encoding": "br", "accept_encoding": "br", "User-Agent": "me"}, "gzip", "me"},
		{"GET", "", map[string]string{"Range": "bytes=0-1"}, "identity", "rlp"},
		{"HEAD", "", nil, "identity", "rlp"},
		{"POST", "", nil, "gzip", "rlp"},
		{"GET", "away", nil, "gzip", "rlp"},
		{"GET", "away", map[string]string{"Authorization": "x", "User-Agent": "me"}, "gzip", "me"},
	} {
		headers := map[string]string{}
		maps.Copy(headers, c.headers)
		n, _ := r.http(map[string]any{"method": c.method, "url": "https://api.example.com/" + c.path, "headers": headers}, "")
		if n < 0 || last.Get("Accept-Encoding") != c.want || last.Get("User-Agent") != c.agent ||
			last["Accept_encoding"] != nil || c.path == "away" && last.Get("Authorization") != "" {
			t.Errorf("%+v: %d, sent %v", c, n, last)
		}
	}
}

// What a server encodes unasked nobody can look through: a run that knows a
// secret is not given it.
func TestAnAnswerThatCannotBeLookedThrough(t *testing.T) {
	w := apiWorld(t)
	how := []string{"deflate"}
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		rw.Header()["Content-Encoding"] = how
		if how[0] == "identity" {
			_, _ = rw.Write([]byte(r.Header.Get("X-Key")))
			return
		}
		z := zlib.NewWriter(rw)
		_, _ = z.Write([]byte(r.Header.Get("X-Key")))
		_ = z.Close()
	}
	with, handle := boundRig(t, w, true)
	ask := func(r *rig, key string) (int64, httpAnswer) {
		return r.http(map[string]any{"url": "https://api.example.com/", "headers": map[string]string{
			"X-Key": key,
			"Range": "bytes=0-",
		}}, "")
	}
	for _, how = range [][]string{{"deflate"}, {"gzip", "deflate"}, {"gzip, deflate"}} {
		n, d := with.denial("net_http", `{"url":"https://api.example.com/","headers":{"X-Key":"`+handle+
			`","Range":"bytes=0-"}}`, "")
		if Errno(-n) != IO || !strings.Contains(d.Hint, "cannot be looked through") {
			t.Errorf("%q: %d %+v", how, n, d)
		}
	}
	how = []string{"deflate"}
	without, value := boundRig(t, w, false)
	n, a := ask(without, value) // control: it is the value for whoever undoes it
	var b bytes.Buffer
	if z, err := zlib.NewReader(strings.NewReader(a.Body)); err != nil || n < 0 {
		t.Errorf("control: %d %v", n, err)
	} else if _, err := b.ReadFrom(z); err != nil || b.String() != value {
		t.Errorf("control: %q, %v", b.String(), err)
	}
	how = []string{"identity"}
	if n, a := ask(with, handle); n < 0 || a.Body != boundMark {
		t.Errorf("control: %d %+v", n, a)
	}
}

// A server that does not read the body of a GET takes it for the next request of
// the connection: there is none, which could have a secret in it.
func TestABodyWhereNoneIsExpectedEndsItsConnection(t *testing.T) {
	w := apiWorld(t)
	r := netRig(t, w, apiPolicy)
	for i, c := range []struct {
		method, body string
		dials        int
	}{
		{"POST", "a", 1},
		{"GET", "", 1},
		{"GET", "GET /b HTTP/1.1\r\n", 1},
		{"POST", "a", 2},
		{"OPTIONS", "a", 2},
		{"GET", "", 3},
	} {
		if n, _ := r.http(map[string]any{"method": c.method, "url": "https://api.example.com/"}, c.body); n < 0 ||
			len(w.dials()) != c.dials {
			t.Errorf("%d: %d, dialled %v", i, n, w.dials())
		}
	}
}
