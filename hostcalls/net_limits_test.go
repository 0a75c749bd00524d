package hostcalls

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
)

// A request and its answer count to the byte: method, URL, headers and body, and
// what comes back.
func TestRequestsCountToTheByte(t *testing.T) {
	for _, c := range []struct {
		method, url, body string
		headers           map[string]string
		want              int
	}{
		{"GET", "https://api.example.com/", "", nil, len("GET" + "https://api.example.com/" + "User-Agent" + "rlp" +
			"Accept-Encoding" + "gzip")},
		{
			"POST", "https://api.example.com/p?q=1", "body",
			map[string]string{"X-A": "b", "User-Agent": "me"},
			len("POST" + "https://api.example.com/p" + "q=1" + "body" + "X-A" + "b" + "User-Agent" + "me" + "Accept-Encoding" +
				"gzip"),
		},
	} {
		r := answeredRig(t, &answering{
			status: 200, header: http.Header{"X-B": {"cd", "e"}}, length: -1,
			body: strings.NewReader("answer"),
		})
		req := map[string]any{"method": c.method, "url": c.url}
		if c.headers != nil {
			req["headers"] = c.headers
		}
		n, _ := r.http(req, c.body)
		if used, want := r.host.budget.Used(caps.NetBytes), int64(c.want+len("X-B"+"cd"+"X-B"+"e"+"answer")); n < 0 ||
			used != want {
			t.Errorf("%s %s: %d, counted as %d, want %d", c.method, c.url, n, used, want)
		}
		// what is looked at before is what the guest chose
		h, err := decodeHTTP([]string{`{"method":"` + c.method + `","url":"` + c.url + `"}`, c.body})
		if want := len(c.method+c.body) + len(strings.Replace(c.url, "?", "", 1)); err != nil || h.size() != int64(want) {
			t.Errorf("%s %s: %d, want %d, %v", c.method, c.url, h.size(), want, err)
		}
	}
}

// What may be received is what the budget and the condition leave, and no more
// than any guest gets; that it is limited is said where it is.
func TestRoomForAnAnswer(t *testing.T) {
	for _, c := range []struct {
		most, condition int64 // -1: none
		room            int64
		limited         bool
	}{
		{-1, -1, MaxResponseBody, false},
		{MaxResponseBody, -1, MaxResponseBody, false},
		{MaxResponseBody + 1, -1, MaxResponseBody, false},
		{MaxResponseBody - 1, -1, MaxResponseBody - 1, true},
		{0, -1, 0, true},
		{100, 50, 50, true},
		{100, 100, 100, true},
		{100, 200, 100, true},
		{-1, MaxResponseBody, MaxResponseBody, false},
		{-1, MaxResponseBody + 1, MaxResponseBody, false},
		{-1, 7, 7, true},
	} {
		r := answeredRig(t, &answering{})
		if c.most >= 0 {
			r.host.budget.Bound(caps.Limits{}.With(caps.NetBytes, c.most))
		}
		if c.condition >= 0 {
			r.under(caps.NetMaxResponseBytes, c.condition)
		}
		if room, limited := r.host.room(); room != c.room || limited != c.limited {
			t.Errorf("%+v: %d, %v", c, room, limited)
		}
	}
	b := budget.New(caps.Limits{}.With(caps.NetBytes, 10), nil)
	b.Take(caps.NetBytes, 11)
	if room, limited := budgetRoom(b); room != 0 || !limited {
		t.Errorf("more was used than there was: %d, %v", room, limited)
	}
}

// A host that was taken away is not named any more.
func TestANameThatIsTakenAwayNamesNothing(t *testing.T) {
	r := netRig(t, newWorld(t), "[capabilities]\nnet = [\"127.0.0.1\"]\n")
	mode, _ := caps.NetMode("https", "GET")
	if !r.host.named(mode, "127.0.0.1:443") {
		t.Error("control: a host that is granted is not named")
	}
	if err := r.gate.Hold(&caps.Layer{
		Name: "late",
		Deny: []caps.Entry{{Grant: grantOf(t, "network:https:127.0.0.1")}},
	}); err != nil {
		t.Fatal(err)
	}
	if r.host.named(mode, "127.0.0.1:443") {
		t.Error("named still")
	}
}

// keeping is an [HTTP] that keeps the body that it was to send, and notes whether
// the one that it gave was closed.
type keeping struct {
	sent   io.Reader
	closed bool
}

func (*keeping) Vet(string, bool) error { return nil }

func (k *keeping) Send(req *http.Request, _ bool) (*http.Response, error) {
	k.sent = req.Body
	return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: k}, nil
}

func (*keeping) Read([]byte) (int, error) { return 0, io.EOF }

func (k *keeping) Close() error { k.closed = true; return nil }

// With its call ends all that the call had: its time, the body that was lent, and
// the answer's.
func TestNothingOutlivesItsCall(t *testing.T) {
	r, k := netRig(t, newWorld(t), apiPolicy), &keeping{}
	r.host.cfg.HTTP = k
	if n, _ := r.http(map[string]any{"method": "POST", "url": "https://api.example.com/"}, "body"); n < 0 {
		t.Fatal(n)
	}
	if n, err := k.sent.Read(make([]byte, 4)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("the body is read after the call: %d, %v", n, err)
	}
	if !k.closed || r.host.net.deadline.timer.Stop() {
		t.Errorf("the answer is closed: %v; or the time goes on", k.closed)
	}
}

// Of encryption no less is taken than is wanted, and what there is not is never
// there.
func TestVersionsOfEncryption(t *testing.T) {
	for v, want := range map[int64]uint16{-1: 0, 0: 0, 12: 0, 13: tls.VersionTLS13, 14: 0xffff} {
		r := netRig(t, newWorld(t), apiPolicy)
		if v >= 0 {
			r.under(caps.NetMinTLS, v)
		}
		var got uint16
		if s := r.host.minTLS(); s != nil {
			got = s.Version
		}
		if got != want {
			t.Errorf("%d: %#x, want %#x", v, got, want)
		}
	}
}

// All that the guest chose counts before a request is sent; a form is what one
// header alone says it is; and a limit that changes holds for every family.
func TestWhatARequestIs(t *testing.T) {
	for headers, c := range map[string]struct {
		size int
		form bool
	}{
		`{}`:                           {0, false},
		`{"X-A":["b","cd"],"X-E":"f"}`: {len("X-A" + "b" + "X-A" + "cd" + "X-E" + "f"), false},
		`{"X-A":"application/x-www-form-urlencoded"}`: {
			len("X-A" + "application/x-www-form-urlencoded"),
			false,
		},
		`{"X-A":"b","Content-Type":"application/x-www-form-urlencoded"}`: {len("X-A" + "b" + "Content-Type" +
			"application/x-www-form-urlencoded"), true},
		`{"Content-Type":["application/x-www-form-urlencoded","a/b"]}`: {len("Content-Type" +
			"application/x-www-form-urlencoded" + "Content-Type" + "a/b"), false},
	} {
		r, err := decodeHTTP([]string{`{"url":"https://a/","headers":` + headers + `}`, ""})
		if err != nil || r.size() != int64(len("GET"+"https://a/")+c.size) || r.isForm() != c.form {
			t.Errorf("%s: %d, %v, %v", headers, r.size(), r.isForm(), err)
		}
	}
	h := newRig(t).host
	h.Bound(caps.Limits{}.With(caps.MaxDepth, 3).With(caps.ExecSpawns, 2))
	if h.depth() != 3 || h.budget.Allows(caps.ExecSpawns, 3) || !h.budget.Allows(caps.ExecSpawns, 2) {
		t.Errorf("the limits are %v", h.cfg.Limits)
	}
}
