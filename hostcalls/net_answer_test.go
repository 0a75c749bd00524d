package hostcalls

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// answering is an [HTTP] that gives one answer to every request, and counts what
// is read of its body.
type answering struct {
	status int
	header http.Header
	length int64 // that the answer says it has; -1: it does not say
	body   io.Reader
	none   bool // there is no body, as the standard library says it
	read   int
}

func (*answering) Vet(string, bool) error { return nil }

func (a *answering) Send(*http.Request, bool) (*http.Response, error) {
	resp := &http.Response{StatusCode: a.status, Header: a.header.Clone(), ContentLength: a.length, Body: io.NopCloser(a)}
	if a.none {
		resp.Body = http.NoBody
	}
	return resp, nil
}

func (a *answering) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	a.read += n
	return n, err
}

// answeredRig is a run that gets this answer to a request by GET.
func answeredRig(t *testing.T, a *answering) *rig {
	t.Helper()
	r := netRig(t, newWorld(t), apiPolicy)
	r.mem = make([]byte, 8<<20)
	if a.body == nil {
		a.body = strings.NewReader("")
	}
	r.host.cfg.HTTP = a
	return r
}

const getAPI = `{"url":"https://api.example.com/"}`

// The head of an answer has its headers in one order, whatever the server's is,
// and the record says which status was none of success.
func TestTheHeadOfAnAnswer(t *testing.T) {
	header := http.Header{}
	for _, name := range strings.Split("HGFEDCBA", "") {
		header[name] = []string{"1"}
	}
	const want = `{"status":200,"headers":{"A":"1","B":"1","C":"1","D":"1","E":"1","F":"1","G":"1","H":"1"}}`
	r := answeredRig(t, &answering{status: 200, header: header, length: -1})
	if n, out := r.call("net_http", getAPI, ""); n < 4 || out[4:] != want {
		t.Errorf("%d %q", n, out)
	}
	for status, remark := range map[int]string{200: "", 399: "", 400: "answered 400", 503: "answered 503"} {
		r := answeredRig(t, &answering{status: status, length: -1})
		n, _ := r.call("net_http", getAPI, "")
		if e := r.log.Events[len(r.log.Events)-1]; n < 0 || e.Status != "ok" || e.ErrorSummary != remark {
			t.Errorf("%d: %d, recorded %+v", status, n, e)
		}
	}
}

// The answer to HEAD has the length that a body would have, and the encoding; an
// answer without a body may have one too. Neither is too long, nor unreadable.
func TestAnswersWithoutABodyAreTakenAsTheyAre(t *testing.T) {
	header := http.Header{"Content-Encoding": {"br"}}
	for _, c := range []struct {
		method string
		answer answering
	}{
		{"HEAD", answering{status: 200, length: MaxResponseBody + 1}},
		{"HEAD", answering{status: 200, header: header, length: 10}},
		{"GET", answering{status: 304, header: header, none: true}},
	} {
		r := answeredRig(t, &c.answer)
		r.host.cfg.Secrets = fakeSecrets{}
		if n, a := r.http(map[string]any{"url": "https://api.example.com/", "method": c.method}, ""); n < 0 ||
			a.Status != c.answer.status || a.Body != "" {
			t.Errorf("%s: %d %+v", c.method, n, a)
		}
	}
	for _, how := range [][]string{{"br"}, {"identity", "br"}, {"identity", "identity"}} { // control: with a body
		r := answeredRig(t, &answering{
			status: 200, header: http.Header{"Content-Encoding": how}, length: -1,
			body: strings.NewReader("x"),
		})
		r.host.cfg.Secrets = fakeSecrets{}
		if n, d := r.denial("net_http", getAPI, ""); n != -29 || !strings.Contains(d.Hint, "cannot be looked through") {
			t.Errorf("%q: %d %+v", how, n, d)
		}
	}
}

// An answer that says it is longer than it may be is not read. Where values may
// be taken out of it, it may be so much longer as they can be, and what counts is
// what is left.
func TestAnAnswerThatSaysItIsTooLongIsNotRead(t *testing.T) {
	const most = 2 << 20
	values := func(n int) []byte { return bytes.Repeat([]byte(keyValue), n/len(keyValue)+1)[:n] }
	for name, c := range map[string]struct {
		knows bool
		says  int64
		body  []byte
		given bool
		read  bool
	}{
		"as long as it may be":                   {false, most, make([]byte, most), true, true},
		"a byte longer":                          {false, most + 1, make([]byte, most+1), false, false},
		"a byte longer, and does not say":        {false, -1, make([]byte, most+1), false, true},
		"of values":                              {true, most + echoed, values(most + echoed), true, true},
		"of values, and does not say":            {true, -1, values(most + echoed), true, true},
		"of values, a byte longer":               {true, most + echoed + 1, values(most + echoed + 1), false, false},
		"of values, a byte longer, does not say": {true, -1, values(most + echoed + 1), false, true},
		"of none, though values could be in it":  {true, most + 1, make([]byte, most+1), false, true},
		"of none, as long as the guest may get":  {true, most, make([]byte, most), true, true},
		"of values that are shorter than echoed": {true, most + 64, append(values(64), make([]byte, most)...), false, true},
		"of values, with so much that may remain": {
			true, most + 64, append(values(240), make([]byte, most+64-240)...), true,
			true,
		},
	} {
		a := &answering{status: 200, length: c.says, body: bytes.NewReader(c.body)}
		r := answeredRig(t, a).under(caps.NetMaxResponseBytes, most)
		if c.knows {
			r.host.cfg.Secrets = fakeSecrets{}
		}
		if c.given {
			if n, got := r.get("https://api.example.com/"); n < 0 || strings.Contains(got.Body, keyValue) || !c.knows &&
				len(got.Body) != len(c.body) {
				t.Errorf("%s: %d, %d bytes", name, n, len(got.Body))
			}
		} else {
			hinted(t, r.refused(map[string]any{"url": "https://api.example.com/"}, "", -19, "budget_exhausted"),
				"net.max_response_bytes")
		}
		if (a.read > 0) != c.read {
			t.Errorf("%s: %d bytes were read", name, a.read)
		}
	}
}

// A limit of the run that leaves less than a condition is the one that is named.
func TestALimitIsNamedBeforeACondition(t *testing.T) {
	r := answeredRig(t, &answering{status: 200, length: 5000}).under(caps.NetMaxResponseBytes, 4000)
	r.host.budget.Bound(caps.Limits{}.With(caps.NetBytes, 1000))
	if hint := r.refused(map[string]any{"url": "https://api.example.com/"}, "", -19,
		"budget_exhausted"); strings.Contains(hint, "constraints.") || !strings.Contains(hint, "limits.net_bytes") {
		t.Errorf("hint %q", hint)
	}
}

// endless gives its text, and then what end gives.
type endless struct {
	text string
	end  func() error
}

func (e *endless) Read(p []byte) (int, error) {
	if e.text == "" {
		return 0, e.end()
	}
	n := copy(p, e.text)
	e.text = e.text[n:]
	return n, nil
}

// An answer that ends before its end is an error that has nothing of it; one that
// ends with the call's time, or with the run, is that.
func TestAnAnswerThatBreaksOff(t *testing.T) {
	w := apiWorld(t)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, "SECRET")
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	late := netRig(t, w, apiPolicy)
	if n, a := late.denial("net_http", `{"url":"https://api.example.com/","timeout_ms":30}`, ""); n != -73 ||
		!strings.Contains(a.Hint, "timeout_ms") {
		t.Errorf("too late: %d %+v", n, a)
	}
	r := answeredRig(t, &answering{status: 200, length: -1, body: &endless{"SECRET", func() error {
		return errors.New("SECRET")
	}}})
	if n, a := r.denial("net_http", getAPI, ""); n != -29 || a.Hint != errBroken.Error() {
		t.Errorf("broken: %d %+v", n, a)
	}
	for _, end := range []error{context.Canceled, io.EOF} { // or as if it were whole
		ctx, cancel := context.WithCancel(t.Context())
		r = answeredRig(t, &answering{status: 200, length: -1, body: &endless{
			"SECRET",
			func() error { cancel(); return end },
		}})
		stack := []uint64{16, uint64(copy(r.mem[16:], getAPI)), 0, 0, outAt, outRoom}
		if err := r.funcs["net_http"].Call(ctx, r.mem, stack); err != nil || int64(stack[0]) != -29 {
			t.Errorf("with the run: %d, %v", int64(stack[0]), err)
		}
		if e := r.log.Events[len(r.log.Events)-1]; !strings.Contains(e.ErrorSummary, "ended with its run") {
			t.Errorf("with the run: recorded %+v", e)
		}
	}
}
