package hostcalls

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// fakeSecrets knows one secret: key, of which the handle is rlsec_key.
type fakeSecrets struct{}

const (
	keyValue  = "s3cr3t&value"
	keyPolicy = "schema = \"0.2\"\n[capabilities]\nnet = [\"api.example.com\", \"other.example\"]\n" +
		"secrets = [{ id = \"runloop/mail/key\", hosts = [\"api.example.com\"] }]\n"
)

func (fakeSecrets) Handle(context.Context, string) (string, error) { return "rlsec_key", nil }

func (fakeSecrets) Named(text string) []string {
	if strings.Contains(text, "rlsec_key") {
		return []string{"rlsec_key"}
	}
	return nil
}

func (fakeSecrets) Fill(text string, admit func(string) error) (string, error) {
	if strings.Contains(text, "rlsec_nobody") {
		return "", fs.ErrNotExist
	}
	if strings.Contains(text, "rlsec_key") {
		if err := admit("runloop/mail/key"); err != nil {
			return "", err
		}
	}
	return strings.ReplaceAll(text, "rlsec_key", keyValue), nil
}

func (fakeSecrets) Scrub(p []byte, _ func(string)) []byte {
	if strings.Contains(string(p), keyValue) {
		return []byte(strings.ReplaceAll(string(p), keyValue, "[gone]"))
	}
	return p
}

func (fakeSecrets) Sending(string, string) error { return nil }

func (fakeSecrets) Hear(context.Context, string, []string) error { return nil }

func (fakeSecrets) Knows() bool { return true }

func (fakeSecrets) Stream(func(string)) func([]byte, bool) []byte { return nil }

func secretRig(t testing.TB, w *world) *rig {
	r := netRig(t, w, keyPolicy)
	r.host.cfg.Secrets = fakeSecrets{}
	return r
}

// A secret is put into headers and form values by the host, and taken out of
// what comes back. No other body is touched.
func TestSecretsGoInAndDoNotComeBack(t *testing.T) {
	w := apiWorld(t)
	var got, form string
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, form = r.Header.Get("X-Key"), string(body)
		rw.Header().Set("X-Echo", "it is "+got)
		fmt.Fprintf(rw, "%s %s", got, form)
	}
	r := secretRig(t, w)
	n, a := r.http(map[string]any{
		"method": "POST", "url": "https://api.example.com/",
		"headers": map[string]string{
			"X-Key":        "Bearer rlsec_key",
			"Content-Type": "Application/X-WWW-Form-Urlencoded; charset=utf-8",
		},
	}, "a=1&rlsec_key=2&token=rlsec_key&c=%zz")
	if got != "Bearer "+keyValue || form != "a=1&rlsec_key=2&token="+url.QueryEscape(keyValue)+"&c=%zz" {
		t.Errorf("sent %q, %q", got, form)
	}
	if n < 0 || a.Headers["X-Echo"] != "it is Bearer [gone]" || strings.Contains(a.Body, keyValue) ||
		!strings.HasPrefix(a.Body, "Bearer [gone] ") {
		t.Errorf("%d %+v", n, a)
	}
	r.http(map[string]any{
		"method": "POST", "url": "https://api.example.com/",
		"headers": map[string]string{"Content-Type": "text/plain"},
	}, "token=rlsec_key")
	if form != "token=rlsec_key" {
		t.Errorf("a body that is no form was sent as %q", form)
	}
	for _, d := range r.log.Decisions {
		if strings.Contains(d.Target, keyValue) {
			t.Errorf("recorded %+v", d)
		}
	}
}

// brokenSecrets know a value that is no text of one line.
type brokenSecrets struct{ fakeSecrets }

func (brokenSecrets) Fill(text string, _ func(string) error) (string, error) {
	return strings.ReplaceAll(text, "rlsec_key", "a\r\nX-More: b"), nil
}

// A value that would end its header is not sent. In a form it is escaped as any
// other, and what is no value stays as it was written.
func TestAValueEndsNoHeaderAndNoField(t *testing.T) {
	w := apiWorld(t)
	var form string
	w.handler = func(_ http.ResponseWriter, r *http.Request) { b, _ := io.ReadAll(r.Body); form = string(b) }
	r := secretRig(t, w)
	r.host.cfg.Secrets = brokenSecrets{}
	if n, d := r.denial("net_http", `{"url":"https://api.example.com/","headers":{"X-Key":"rlsec_key"}}`, ""); n != -28 ||
		!strings.Contains(d.Hint, "X-Key has a line break") || len(w.requests()) != 0 {
		t.Errorf("%d %+v, sent %v", n, d, w.requests())
	}
	post := map[string]any{
		"method": "POST", "url": "https://api.example.com/",
		"headers": map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
	}
	if n, _ := r.http(post, "flag&a=%7e+x&rlsec_key&token=rlsec_key&b=%7e"); n < 0 ||
		form != "flag&a=%7e+x&rlsec_key&token=a%0D%0AX-More%3A+b&b=%7e" {
		t.Errorf("%d, sent %q", n, form)
	}
	r.host.cfg.Secrets = fakeSecrets{}
	post["url"] = "https://other.example/" // to which the secret is not bound
	if r.refused(post, "token=rlsec_key", -2, "secret_not_permitted"); len(w.requests()) != 1 {
		t.Errorf("sent %v", w.requests())
	}
}

// A limit counts a value as what stands for it: as much as a text of that length.
func TestAValueCountsAsItsHandle(t *testing.T) {
	var used []int64
	for _, key := range []string{"rlsec_key", "rlsec_kez"} {
		w := apiWorld(t)
		r := secretRig(t, w)
		r.host.cfg.HTTP = &answering{status: 200, body: strings.NewReader(""), none: true}
		n, _ := r.http(map[string]any{
			"method": "POST", "url": "https://api.example.com/",
			"headers": map[string]any{
				"X-Key":        []string{"Bearer " + key, key},
				"Content-Type": "application/x-www-form-urlencoded",
			},
		}, "a=1&token="+key)
		if n < 0 {
			t.Errorf("%s: %d", key, n)
		}
		used = append(used, r.host.budget.Used(caps.NetBytes))
	}
	if used[0] != used[1] || used[0] == 0 {
		t.Errorf("with a value %d, without %d", used[0], used[1])
	}
}

// A secret goes to the hosts that it is bound to, a made-up handle nowhere, and
// what was refused was not sent.
func TestSecretsAreBoundToHosts(t *testing.T) {
	w := apiWorld(t)
	r := secretRig(t, w)
	key := map[string]string{"X-Key": "rlsec_key"}
	if n, _ := r.http(map[string]any{"url": "https://api.example.com/", "headers": key}, ""); n < 0 {
		t.Fatalf("control: %d", n)
	}
	r.refused(map[string]any{"url": "https://other.example/", "headers": key}, "", -2, "secret_not_permitted")
	r.refused(map[string]any{"url": "https://api.example.com/", "headers": map[string]string{"X-Key": "rlsec_nobody"}}, "",
		-2, "secret_unknown")
	if got := w.requests(); len(got) != 1 {
		t.Errorf("sent %v", got)
	}
}

// hops are servers that redirect from api.example.com to what a test says, and
// note what each was sent.
func hops(w *world, status int, location string) *[]string {
	seen := new([]string)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var names []string
		for name := range r.Header {
			names = append(names, name)
		}
		slices.Sort(names)
		*seen = append(*seen, fmt.Sprintf("%s %s%s %s %q", r.Method, r.Host, r.URL.Path, strings.Join(names, " "), body))
		if len(*seen) == 1 {
			rw.Header().Set("Location", location)
			rw.WriteHeader(status)
		}
	}
	return seen
}

var guestHeaders = map[string]string{
	"Authorization": "Bearer mine", "Cookie": "a=b", "X-Key": "rlsec_key", "X-Custom": "1", "Accept": "text/plain",
	"User-Agent": "me",
}

// Credentials do not go to another host, nor to another port or scheme of the
// same one; the client of the standard library takes some of them along.
//
//rlp:holds R80
func TestCredentialsStayWithTheirHost(t *testing.T) {
	const all = "Accept Accept-Encoding Authorization Cookie User-Agent X-Custom X-Key"
	for _, c := range []struct{ location, want string }{
		{"/b", "GET api.example.com/b " + all + ` ""`},
		{"https://api.example.com/b", "GET api.example.com/b " + all + ` ""`},
		{"https://other.example/b", `GET other.example/b Accept Accept-Encoding User-Agent ""`},
		{"https://a.api.example.com/b", `GET a.api.example.com/b Accept Accept-Encoding User-Agent ""`},
		{"https://api.example.com:8443/b", `GET api.example.com:8443/b Accept Accept-Encoding User-Agent ""`},
		{"http://api.example.com/b", `GET api.example.com/b Accept Accept-Encoding User-Agent ""`},
	} {
		w := apiWorld(t)
		w.name("a.api.example.com", []netip.Addr{publicAddr})
		seen := hops(w, http.StatusFound, c.location)
		policy := strings.Replace(keyPolicy, `net = ["api.example.com", "other.example"]`,
			`net = { hosts = ["api.example.com", "other.example", "a.api.example.com", "api.example.com:8443"], allow_http = true }`, 1)
		r := netRig(t, w, policy)
		r.host.cfg.Secrets = fakeSecrets{}
		n, _ := r.http(map[string]any{"url": "https://api.example.com/a", "headers": guestHeaders}, "")
		if n < 0 || len(*seen) != 2 || (*seen)[1] != c.want {
			t.Errorf("%s: %d, sent %q", c.location, n, *seen)
		}
		if len(r.log.Decisions) != 3 { // the request, the secret, the redirect
			t.Errorf("%s: recorded %+v", c.location, r.log.Decisions)
		}
	}
	// control: an own header of a secret goes everywhere with the standard client
	w := apiWorld(t)
	seen := hops(w, http.StatusFound, "https://other.example/b")
	attack := ssrfCase{URL: "https://api.example.com/a", Headers: guestHeaders}
	if err := attack.attack(w.plainClient()); err != nil || len(*seen) != 2 || !strings.Contains((*seen)[1], "X-Key") {
		t.Errorf("control: %v, %q", err, *seen)
	}
}

// Over HTTP/2 the same holds, and it is spoken where a server offers it.
func TestHTTP2(t *testing.T) {
	w := apiWorld(t)
	w.protos = []string{"h2", "http/1.1"}
	var last http.Header
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last = r.Header
		switch r.URL.Path {
		case "/away":
			http.Redirect(rw, r, "https://other.example/", http.StatusTemporaryRedirect)
		default:
			fmt.Fprintf(rw, "%s %d", r.Proto, len(body))
		}
	}
	r := secretRig(t, w)
	body := strings.Repeat("x", 30_000)
	for range 3 {
		if n, a := r.http(map[string]any{"method": "POST", "url": "https://api.example.com/", "headers": guestHeaders},
			body); n < 0 || a.Body != "HTTP/2.0 30000" {
			t.Errorf("%d %+v", n, a)
		}
	}
	if last.Get("X-Key") != keyValue || len(w.dials()) != 1 {
		t.Errorf("sent %v over %v", last, w.dials())
	}
	n, a := r.http(map[string]any{"method": "POST", "url": "https://api.example.com/away", "headers": guestHeaders}, body)
	if n < 0 || a.Body != "HTTP/2.0 30000" || last.Get("X-Key") != "" || last.Get("Authorization") != "" {
		t.Errorf("%d %+v, sent %v", n, a, last)
	}
	if got := w.dials(); len(got) != 2 {
		t.Errorf("dialled %v: a connection is for one host, whatever its address and certificate", got)
	}
}

// Credentials that were dropped on the way do not come back.
func TestDroppedCredentialsStayDropped(t *testing.T) {
	w := apiWorld(t)
	var last http.Header
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		last = r.Header
		switch r.Host + r.URL.Path {
		case "api.example.com/a":
			rw.Header().Set("Location", "https://other.example/b")
			rw.WriteHeader(http.StatusFound)
		case "other.example/b":
			rw.Header().Set("Location", "https://api.example.com/c")
			rw.WriteHeader(http.StatusFound)
		}
	}
	r := secretRig(t, w)
	n, _ := r.http(map[string]any{"url": "https://api.example.com/a", "headers": guestHeaders}, "")
	if n < 0 || len(w.requests()) != 3 || last.Get("Authorization") != "" || last.Get("X-Key") != "" {
		t.Errorf("%d, %v, %v", n, w.requests(), last)
	}
}

// Method and body go along as HTTP says, and a body with a secret in it goes to
// no other host.
func TestBodiesOfRedirects(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		status               int
		location, body, then string
		number               int64
		reason               string
	}{
		{302, "/b", "a=1", `GET api.example.com/b ""`, 0, ""},
		{303, "https://other.example/b", "a=1", `GET other.example/b ""`, 0, ""},
		{303, "https://other.example/b", "a=rlsec_key", `GET other.example/b ""`, 0, ""},
		{307, "/b", "a=rlsec_key", `POST api.example.com/b "a=` + url.QueryEscape(keyValue) + `"`, 0, ""},
		{308, "https://other.example/b", "a=1", `POST other.example/b "a=1"`, 0, ""},
		{307, "https://other.example/b", "a=rlsec_key", "", -2, "secret_not_permitted"},
	} {
		w := apiWorld(t)
		seen := hops(w, c.status, c.location)
		r := secretRig(t, w)
		req := map[string]any{
			"method": "POST", "url": "https://api.example.com/a",
			"headers": map[string]string{"Content-Type": form},
		}
		if c.reason != "" {
			if hint := r.refused(req, c.body, c.number, c.reason); !strings.Contains(hint, "redirected to another host") {
				t.Errorf("hint %q", hint)
			}
			if len(*seen) != 1 {
				t.Errorf("%v: sent %q", c, *seen)
			}
			continue
		}
		if n, _ := r.http(req, c.body); n < 0 || len(*seen) != 2 {
			t.Errorf("%v: %d, sent %q", c, n, *seen)
			continue
		}
		words := strings.Fields((*seen)[1])
		if got := words[0] + " " + words[1] + " " + words[len(words)-1]; got != c.then {
			t.Errorf("%v: sent %s", c, got)
		}
	}
}

// Each hop is the gate's decision: its host, its scheme, its method; and there
// are at most five.
//
//rlp:holds R80 C20
func TestEveryRedirectIsJudged(t *testing.T) {
	for _, c := range []struct{ location, reason string }{
		{"https://api.example.com/b", ""},
		{"https://evil.example/", "host_not_permitted"},
		{"http://api.example.com/", "http_not_permitted"},
		{"https://api.example.com:8443/", "host_not_permitted"},
		{"//evil.example/", "host_not_permitted"},
		{"http://169.254.169.254/latest/", "host_not_permitted"},
	} {
		w := apiWorld(t)
		w.name("evil.example", []netip.Addr{publicAddr})
		seen := hops(w, http.StatusFound, c.location)
		r := netRig(t, w, apiPolicy)
		req := map[string]any{"url": "https://api.example.com/a"}
		if c.reason == "" {
			if n, _ := r.http(req, ""); n < 0 || len(*seen) != 2 {
				t.Errorf("control: %d, %q", n, *seen)
			}
			continue
		}
		r.refused(req, "", -2, c.reason)
		if last := r.log.Decisions[len(r.log.Decisions)-1]; len(*seen) != 1 || len(r.log.Decisions) != 2 || !last.Deny ||
			last.Reason != c.reason {
			t.Errorf("%s: sent %q, recorded %+v", c.location, *seen, r.log.Decisions)
		}
	}
	w := apiWorld(t)
	left := MaxRedirects
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		if left--; left >= 0 {
			http.Redirect(rw, r, "/next", http.StatusFound)
		}
	}
	r := netRig(t, w, apiPolicy)
	if n, a := r.get("https://api.example.com/"); n < 0 || a.Status != 200 {
		t.Errorf("control: %d redirects: %d %+v", MaxRedirects, n, a)
	}
	left = MaxRedirects + 1
	if n, a := r.denial("net_http", `{"url":"https://api.example.com/"}`, ""); n != -29 || !strings.Contains(a.Hint,
		"5 times") {
		t.Errorf("%d %+v", n, a)
	}
}

// A redirect that is no redirect is an answer.
func TestRedirectsWithoutALocation(t *testing.T) {
	for _, status := range []int{300, 302, 304, 305} {
		w := apiWorld(t)
		w.handler = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(status) }
		if n, a := netRig(t, w, apiPolicy).get("https://api.example.com/"); n < 0 || a.Status != status {
			t.Errorf("%d: %d %+v", status, n, a)
		}
	}
}

// sentTo is an [HTTP] that answers the first request with a redirect, and notes
// the headers of what it is told to send.
type sentTo struct {
	location string
	sent     []http.Header
}

func (*sentTo) Vet(string, bool) error { return nil }

func (s *sentTo) Send(req *http.Request, _ bool) (*http.Response, error) {
	s.sent = append(s.sent, req.Header.Clone())
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
	if len(s.sent) == 1 {
		resp.StatusCode, resp.Header = http.StatusFound, http.Header{"Location": {s.location}}
	}
	return resp, nil
}

// Scheme, host and port together are where credentials belong: one of them
// changed is another place, though the other two are what they were.
//
//rlp:holds R80
func TestCredentialsStayWithSchemeHostAndPort(t *testing.T) {
	const policy = "schema = \"0.2\"\n[capabilities]\nnet = { hosts = [\"api.example.com\", \"api.example.com:8443\", " +
		"\"other.example:8443\", \"api.example.com:80\"], allow_http = true }\n"
	for _, c := range []struct {
		from, location string
		kept           bool
	}{
		{"https://api.example.com:8443/", "https://api.example.com:8443/b", true},
		{"http://api.example.com:8443/", "//api.example.com:8443/b", true},
		{"https://api.example.com/", "https://API.example.com:443/b", true},
		{"https://api.example.com:8443/", "http://api.example.com:8443/b", false},
		{"http://api.example.com:8443/", "https://api.example.com:8443/b", false},
		{"http://api.example.com/", "https://api.example.com:80/b", false},
		{"https://api.example.com:8443/", "https://other.example:8443/b", false},
		{"https://api.example.com:8443/", "https://api.example.com/b", false},
	} {
		r := netRig(t, newWorld(t), policy)
		to := &sentTo{location: c.location}
		r.host.cfg.HTTP = to
		if n, _ := r.http(map[string]any{"url": c.from, "headers": map[string]string{
			"Authorization": "Bearer mine",
			"X-Key":         "k",
		}}, ""); n < 0 || len(to.sent) != 2 {
			t.Errorf("%s to %s: %d, sent %v", c.from, c.location, n, to.sent)
			continue
		}
		if got := to.sent[1]; to.sent[0].Get("Authorization") == "" || (got.Get("Authorization") != "") != c.kept ||
			(got.Get("X-Key") != "") != c.kept {
			t.Errorf("%s to %s: sent %v", c.from, c.location, got)
		}
	}
}
