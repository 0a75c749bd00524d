package hostcalls

import (
	"encoding/json"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/web"
)

// A request that is not exactly what the call takes is refused with the place
// of what is wrong, recorded, and not sent.
func TestMalformedRequestsNameTheirPlace(t *testing.T) {
	w := apiWorld(t)
	r := netRig(t, w, apiPolicy)
	if n, _ := r.call("net_http", ` { "url" : "https://api.example.com/" , "headers" : {} , "timeout_ms" : 0 } `, ""); n < 0 {
		t.Fatalf("control: %d", n)
	}
	const u = `"url":"https://api.example.com/"`
	for text, place := range map[string]string{
		``:                                 "the request: not JSON: it ends too early",
		`[]`:                               "the request: an object",
		`{`:                                "the request: not JSON",
		`{"url"}`:                          "the request: not JSON",
		`{` + u + `} x`:                    "the request: not JSON: something stands behind",
		`{` + u + `}{}`:                    "the request: not JSON: something stands behind",
		`{}`:                               "url: missing",
		`{` + u + `,` + u + `}`:            "url: given twice",
		`{"URL":"https://h/"}`:             "URL: no key",
		`{` + u + `,"body":"x"}`:           "body: no key",
		`{"url":1}`:                        "url: a text",
		`{"url":null}`:                     "url: a text",
		`{"url":"https://h/","method":1}`:  "method: a text",
		`{` + u + `,"method":"TRACE"}`:     "method: not one",
		`{` + u + `,"method":"trace"}`:     "method: not one",
		`{` + u + `,"method":"CONNECT"}`:   "method: not one",
		`{` + u + `,"method":""}`:          "method: not one",
		`{` + u + `,"method":"G ET"}`:      "method: not one",
		`{` + u + `,"method":"GET\r\nX:"}`: "method: not one",
		`{` + u + `,"timeout_ms":-1}`:      "timeout_ms: a whole number",
		`{` + u + `,"timeout_ms":1.5}`:     "timeout_ms: a whole number",
		`{` + u + `,"timeout_ms":"1"}`:     "timeout_ms: a whole number",
		`{` + u + `,"timeout_ms":99999999999999999999}`:   "timeout_ms: a whole number",
		`{` + u + `,"headers":[]}`:                        "headers: an object",
		`{` + u + `,"headers":{"A":1}}`:                   "headers.A: a text or a list",
		`{` + u + `,"headers":{"A":[]}}`:                  "headers.A: a text or a list",
		`{` + u + `,"headers":{"A":["x",{}]}}`:            "headers.A[1]: a text",
		`{` + u + `,"headers":{"A":"x","a":"y"}}`:         "headers.a: given twice",
		`{` + u + `,"headers":{"":"x"}}`:                  `headers."": a header's name`,
		`{` + u + `,"headers":{"A B":"x"}}`:               `headers."A B": a header's name`,
		`{` + u + `,"headers":{"A":"x\r\nHost: evil"}}`:   "headers.A: a header's value",
		`{` + u + `,"headers":{"A":"x\u0000"}}`:           "headers.A: a header's value",
		`{` + u + `,"headers":{"A\r\nB":"x"}}`:            `headers."A\r\nB": a header's name`,
		`{` + u + `,"headers":{"host":"evil"}}`:           "headers.host: set by the host alone",
		`{` + u + `,"headers":{"Connection":"close"}}`:    "headers.Connection: set by",
		`{` + u + `,"headers":{"Content-Length":"0"}}`:    "headers.Content-Length: set by",
		`{` + u + `,"headers":{"TRANSFER-ENCODING":"x"}}`: "headers.TRANSFER-ENCODING: set by",
		`{` + u + `,"headers":{"TE":"x"}}`:                "headers.TE: set by",
		`{` + u + `,"headers":{"Upgrade":"h2c"}}`:         "headers.Upgrade: set by",
		`{` + u + `,"headers":{"Expect":"100-continue"}}`: "headers.Expect: set by",
		`{` + u + `,"headers":{"Content_Length":"1"}}`:    "headers.Content_Length: set by the host alone",
		`{` + u + `,"headers":{"transfer_encoding":"chunked"}}`: "headers.transfer_encoding: set by the host " +
			"alone",
		`{` + u + `,"headers":{"proxy":"http://evil"}}`:     "headers.proxy: for a proxy",
		`{` + u + `,"headers":{"Proxy_Authorization":"x"}}`: "headers.Proxy_Authorization: for a proxy",
		`{` + u + `,"headers":{"Proxy-Authorization":"x"}}`: "headers.Proxy-Authorization: for a proxy",
		`{"url":"https://me:pw@api.example.com/"}`:          "url: user information",
		`{"url":"https://@api.example.com/"}`:               "url: user information",
		`{"url":"/relative"}`:                               "url: not an absolute URL",
		`{"url":"ftp://api.example.com/"}`:                  "url: not an absolute URL",
		`{"url":"https:api.example.com"}`:                   "url: not an absolute URL",
		`{"url":"https://api.example.com/a b"}`:             "url: a URL has no blanks",
		`{"url":"https://api.example.com\\@evil/"}`:         "url: a URL has no blanks",
		`{"url":"https://0x7f.1/"}`: "url: the host \"0x7f.1\" is a number in " +
			"disguise",
		`{"url":"https://\uff11\uff12\uff17.0.0.1/"}`:                       "url: an address is written",
		`{"url":"https://[fe80::1%25eth0]/"}`:                               "url: the host",
		`{"url":"https://api.example.com:/"}`:                               "url: the port",
		`{"url":"https://` + strings.Repeat("a", web.MaxURL) + `/"}`:        "url: not an absolute URL of at most 8192 bytes",
		`{"url":"https://a/?` + strings.Repeat("<", web.MaxURL/2) + `"}`:    "url: not an absolute URL of at most 8192 bytes",
		`{` + u + `,"headers":{` + strings.Repeat(`"x":{},`, 3) + `"y":1}}`: "headers.x: a text",
		`{` + u + `,"` + strings.Repeat("k", 200) + `":1}`:                  strings.Repeat("k", 64) + "...: no key",
		"{" + u + ",\"headers\":{\"A\":\"\xff\"}}":                          "the request: not UTF-8",
		`{` + u + `,"headers":` + strings.Repeat("[", 10_000) + `}`:         "headers: an object",
		`{` + u + `,"headers":{"A":` + strings.Repeat(`[`, 10_000) + `}}`:   "headers.A[0]: a text",
	} {
		n, a := r.denial("net_http", text, "")
		if n != -28 || a.Reason != "invalid_request" || !strings.HasPrefix(a.Hint, place) {
			t.Errorf("%.80s: %d %+v, want %q", text, n, a, place)
		}
		if d := r.log.Decisions[len(r.log.Decisions)-1]; !d.Deny || d.Reason != "invalid_request" || d.Target != "" {
			t.Errorf("%.80s: recorded %+v", text, d)
		}
	}
	many := map[string]string{}
	for i := range maxHeaders + 1 {
		many["X-"+strings.Repeat("a", i+1)] = ""
	}
	text, err := json.Marshal(map[string]any{"url": "https://api.example.com/", "headers": many})
	if err != nil {
		t.Fatal(err)
	}
	if n, a := r.denial("net_http", string(text), ""); n != -28 || !strings.Contains(a.Hint,
		"one more than the 100 headers") {
		t.Errorf("many headers: %d %+v", n, a)
	}
	r.mem = make([]byte, 1<<20)
	if n, _ := r.call("net_http", strings.Repeat(" ", MaxRequestHead+1), ""); n != -1 {
		t.Errorf("a large head: %d", n)
	}
	if got := w.requests(); len(got) != 1 {
		t.Errorf("sent %v", got)
	}
}

// A request is at most as long as its bound.
func TestARequestIsBounded(t *testing.T) {
	w := apiWorld(t)
	r := netRig(t, w, apiPolicy)
	r.mem = make([]byte, 1<<20)
	const request = `{"url":"https://api.example.com/"}`
	for more, want := range map[int]bool{0: true, 1: false} {
		n, _ := r.call("net_http", request+strings.Repeat(" ", MaxRequestHead-len(request)+more), "")
		if (n >= 0) != want {
			t.Errorf("%d bytes more than the most: %d", more, n)
		}
	}
}

// Whatever a guest passes, net_http answers, and sends nothing that the policy
// does not name.
func FuzzNetHTTP(f *testing.F) {
	f.Add([]byte(`{"url":"https://api.example.com/","headers":{"A":["b"]},"timeout_ms":50,"method":"POST"}`),
		[]byte("body"), uint32(16), uint32(90), uint32(64))
	f.Add([]byte(`{"url":"http://127.0.0.1/"}`), []byte{}, uint32(0xfffffff0), uint32(1<<30), uint32(1<<31))
	w := apiWorld(f)
	f.Fuzz(func(t *testing.T, req, body []byte, at, n, room uint32) {
		r := netRig(t, w, "[capabilities]\nnet = [\"api.example.com\"]\n")
		copy(r.mem[16:], req)
		copy(r.mem[1<<15:], body)
		stack := []uint64{16, uint64(len(req)), 1 << 15, uint64(len(body)), outAt, uint64(room)}
		if at%3 == 0 {
			stack[0], stack[1] = uint64(at), uint64(n)
		}
		if err := r.funcs["net_http"].Call(t.Context(), r.mem, stack); err != nil {
			t.Fatal(err)
		}
		r.rest()
		for _, sent := range w.requests() {
			if !strings.Contains(sent, "https://api.example.com/") {
				t.Fatalf("sent %s", sent)
			}
		}
	})
}
