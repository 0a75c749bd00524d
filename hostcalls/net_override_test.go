package hostcalls

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

const readPolicy = "schema = \"0.2\"\n[capabilities]\nnet = { hosts = [\"api.example.com\"], methods = [\"GET\", " +
	"\"HEAD\", \"OPTIONS\", \"POST\"] }\n"

// overriding is a server as frameworks are: a header, a field of the query or of
// a form overrides the method. It notes what it took each request for.
func overriding(w *world) *[]string {
	did := new([]string)
	w.handler = func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		method := r.Method
		for name, values := range r.Header {
			if low := strings.ToLower(name); strings.Contains(low, "method") || strings.Contains(low, "verb") ||
				strings.Contains(low, "override") {
				method = values[0]
			}
		}
		r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, ";", "&") // as some do
		_ = r.ParseForm()
		for key, values := range r.Form {
			if strings.Contains(strings.ToLower(key), "method") || key == "verb" {
				method = values[0]
			}
		}
		plain := strings.NewReplacer("\x00", "", `\u005f`, "_", "\\", "", "%5F", "_", "%6d", "m").Replace(string(body))
		if strings.Contains(plain, "_method") || strings.HasPrefix(plain, "method=") ||
			strings.Contains(strings.ReplaceAll(plain, `"`, ""), "name=method") || r.Header.Get("Content-Encoding") != "" {
			method = http.MethodDelete
		}
		if (r.Method == http.MethodGet || r.Method == http.MethodOptions) && len(body) > 0 {
			method = "SEARCH"
		}
		*did = append(*did, method)
	}
	return did
}

var overrides = []struct {
	name    string
	method  string
	query   string
	headers map[string]any
	body    string
}{
	{"a header", "POST", "", map[string]any{"X-HTTP-Method-Override": "DELETE"}, ""},
	{"in small letters", "POST", "", map[string]any{"x-http-method-override": "DELETE"}, ""},
	{"in any letters", "GET", "", map[string]any{"x-HtTp-mEtHoD": "DELETE"}, ""},
	{"another header", "POST", "", map[string]any{"X-Method-Override": []string{"DELETE", "GET"}}, ""},
	{"with underscores", "POST", "", map[string]any{"X_HTTP_METHOD_OVERRIDE": "DELETE"}, ""},
	{"the query", "GET", "?_method=DELETE", nil, ""},
	{"the query, escaped", "GET", "?a=1&%5fMethod=DELETE", nil, ""},
	{"the query, behind a semicolon", "POST", "?a=1;_method=DELETE", nil, ""},
	{"the query, by an ordinary name", "POST", "?method=delete", nil, ""},
	{"the query, by a header's name", "POST", "?x-http-method-override=DELETE", nil, ""},
	{"a form", "POST", "", map[string]any{"Content-Type": "application/x-www-form-urlencoded"}, "a=1&_method=DELETE"},
	{"one of several types", "POST", "", map[string]any{"Content-Type": []string{
		"application/x-www-form-urlencoded",
		"text/plain",
	}}, "_method=DELETE"},
	{"an unknown header", "POST", "", map[string]any{"X-Verb": "DELETE"}, ""},
	{"an unknown header of a tunnel", "POST", "", map[string]any{"X-Tunnel-Method": "DELETE"}, ""},
	{"an override without a method", "POST", "", map[string]any{"X-HTTP-Override": "DELETE"}, ""},
	{"a header that is ordinary elsewhere", "POST", "", map[string]any{"Access-Control-Request-Method": "DELETE"}, ""},
	{"the query, by verb", "GET", "?verb=DELETE", nil, ""},
	{"the query, in brackets", "GET", "?_method[]=DELETE", nil, ""},
	{"the query, by an ordinary name in brackets", "GET", "?a[method]=delete", nil, ""},
	{"a form without a type", "POST", "", nil, "a=1&_method=DELETE"},
	{"a form of another type", "POST", "", map[string]any{"Content-Type": "text/plain"}, "_method=DELETE"},
	{"a form, escaped", "POST", "", nil, "a=%&%5F%6dethod=DELETE"},
	{"a form by an ordinary name", "POST", "", nil, "method=+delete"},
	{
		"a form in UTF-16", "POST", "",
		map[string]any{"Content-Type": "application/x-www-form-urlencoded; charset=utf-16"},
		"_\x00m\x00e\x00t\x00h\x00o\x00d\x00=\x00P\x00U\x00T\x00",
	},
	{
		"multipart", "POST", "",
		map[string]any{"Content-Type": "multipart/form-data; boundary=b"},
		"--b\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--b--\r\n",
	},
	{
		"multipart, escaped", "POST", "",
		map[string]any{"Content-Type": "multipart/form-data; boundary=b"},
		"--b\r\nContent-Disposition: form-data; name=\"\\_method\"\r\n\r\nDELETE\r\n--b--\r\n",
	},
	{
		"multipart by an ordinary name", "POST", "",
		map[string]any{"Content-Type": "multipart/form-data; boundary=b"},
		"--b\r\nContent-Disposition: form-data; name=method\r\n\r\nDELETE\r\n--b--\r\n",
	},
	{
		"multipart with a type", "POST", "",
		map[string]any{"Content-Type": "multipart/form-data; boundary=b"},
		"--b\r\nContent-Disposition: form-data; name=\"method\"\r\nContent-Type: text/plain\r\n\r\nDELETE\r\n--b--\r\n",
	},
	{
		"multipart with much in its head", "POST", "",
		map[string]any{"Content-Type": "multipart/form-data; boundary=b"},
		"--b\r\nContent-Disposition: form-data; name=method" + strings.Repeat("; a=b", 200) + "\r\n\r\nDELETE\r\n--b--\r\n",
	},
	{
		"multipart with a long word in its head", "POST", "",
		map[string]any{"Content-Type": "multipart/form-data; boundary=b"},
		"--b\r\nContent-Disposition: form-data; name=method; filename=" + strings.Repeat("a", 128) +
			"\r\n\r\nDELETE\r\n--b--\r\n",
	},
	{
		"multipart, escaped inside", "POST", "",
		map[string]any{"Content-Type": "multipart/form-data; boundary=b"},
		"--b\r\nContent-Disposition: form-data; name=\"_m\\ethod\"\r\n\r\nDELETE\r\n--b--\r\n",
	},
	{"JSON", "POST", "", map[string]any{"Content-Type": "application/json"}, `{"a":"\"","\u005fmethod":"DELETE"}`},
	{"XML", "POST", "", map[string]any{"Content-Type": "text/xml"}, "<a><_method>DELETE</_method></a>"},
	{"what is compressed", "POST", "", map[string]any{"Content-Encoding": "deflate"}, "xyz"},
	{"a body on GET", "GET", "", nil, "DELETE"},
	{"a body on OPTIONS", "OPTIONS", "", nil, "DELETE"},
	{"a body on HEAD", "HEAD", "", nil, "DELETE"},
}

// Where methods are limited, or a person is asked by method, a request is of the
// one method that it says; where every method is granted anyway it is sent.
func TestAMethodIsNotOverridden(t *testing.T) {
	for _, c := range overrides {
		req := map[string]any{"method": c.method, "url": "https://api.example.com/x" + c.query}
		if c.headers != nil {
			req["headers"] = c.headers
		}
		w := apiWorld(t)
		did := overriding(w)
		r := netRig(t, w, readPolicy)
		if hint := r.refused(req, c.body, -2, "method_not_permitted"); !strings.Contains(hint,
			"by the method that is meant") {
			t.Errorf("%s: hint %q", c.name, hint)
		}
		if last := r.log.Decisions[len(r.log.Decisions)-1]; len(*did) != 0 || !last.Deny ||
			last.Reason != "method_not_permitted" {
			t.Errorf("%s: sent %v, recorded %+v", c.name, *did, last)
		}

		asks := netRig(t, w, strings.Replace(readPolicy, `, methods = ["GET", "HEAD", "OPTIONS", "POST"]`, "", 1))
		if n, _ := asks.http(req, c.body); n < 0 || len(*did) != 1 || (c.method != "HEAD" && (*did)[0] == c.method) {
			t.Errorf("%s: control: %d, the server took it for %v", c.name, n, *did)
		}
		ask := &asker{yes: true}
		asks.host.cfg.Confirm, asks.host.cfg.ConfirmExternal = ask.confirm, true
		if asks.refused(req, c.body, -2, "method_not_permitted"); len(*did) != 1 {
			t.Errorf("%s: with confirmation sent %v", c.name, *did)
		}
	}
}

// What only looks like an override is sent.
func TestOrdinaryRequestsAreNoOverrides(t *testing.T) {
	w := apiWorld(t)
	did := overriding(w)
	r := netRig(t, w, readPolicy)
	for i, c := range []struct {
		query   string
		headers map[string]any
		body    string
	}{
		{
			"?method=flickr.test.echo&payment_method=card&verbose=DELETE",
			map[string]any{"X-Verbose": "DELETE"},
			"a method DELETE",
		},
		{
			"",
			map[string]any{"Content-Type": "application/json"},
			`{"jsonrpc":"2.0","method":"tools/list","http_method":"DELETE"}`,
		},
		{"", map[string]any{"Content-Type": "text/x-log"}, "method: DELETE, in 3 ms; " + strings.Repeat("long", 100) +
			"_method=x"},
		{"?method=", map[string]any{"Content-Type": "application/x-www-form-urlencoded"}, "method=card&methods=a"},
		{
			"?_foo=DELETE&x_a=PUT&overview=1&_method" + strings.Repeat("ological", 20) + "=DELETE",
			map[string]any{"Content-Encoding": "gzip"},
			"",
		},
		{
			"",
			map[string]any{"Content-Type": "text/x-log"},
			"\\n005fmethod xu005fverb method\r\n\r\ncard\r\n\r\nDELETE method\n \nDELETE method] =DELETE",
		},
		{"", map[string]any{"Content-Type": "text/x-log"}, "100%"},
		{"", map[string]any{"Content-Type": "text/x-log"}, "100%2"},
		{"", map[string]any{"Content-Type": "text/x-log"}, "a\\"},
		{"", map[string]any{"Content-Type": "text/x-log"}, "a\\u00"},
		{"", map[string]any{"Content-Type": "text/x-log"}, "a\\u005"},
	} {
		req := map[string]any{"method": "POST", "url": "https://api.example.com/x" + c.query, "headers": c.headers}
		if n, _ := r.http(req, c.body); n < 0 || len(*did) != i+1 {
			t.Errorf("%v: %d", c, n)
		}
	}
}

// A refusal of a method that is overridden says who is not asked about it.
func TestOverridesSayWhoIsNotAsked(t *testing.T) {
	get := webTool()
	get.Request.Method = "GET"
	r, _ := webRig(t, webPolicy, get)
	if _, d := r.useDenied("send", `{"_method":"DELETE"}`); !strings.Contains(d.Hint, "the method of an attached tool") {
		t.Errorf("%+v", d)
	}
	n := netRig(t, apiWorld(t), apiPolicy)
	n.host.cfg.Confirm, n.host.cfg.ConfirmExternal = (&asker{yes: true}).confirm, true
	req := map[string]any{"method": "POST", "url": "https://api.example.com/?_method=DELETE"}
	if hint := n.refused(req, "", -2, "method_not_permitted"); !strings.Contains(hint, "whoever confirms") {
		t.Errorf("%s", hint)
	}
}

// A lease on some methods limits methods too.
func TestALeaseOnAMethodIsNotOverridden(t *testing.T) {
	w := apiWorld(t)
	overriding(w)
	r := netRig(t, w, apiPolicy)
	g, err := caps.ParseGrant("network:https:delete@api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	req := map[string]any{
		"method": "POST", "url": "https://api.example.com/",
		"headers": map[string]string{"X-HTTP-Method": "DELETE"},
	}
	if n, _ := r.http(req, ""); n < 0 {
		t.Fatalf("control: %d", n)
	}
	leased := func(g caps.Grant) {
		t.Helper()
		if err := r.gate.Hold(&caps.Layer{Name: "late", Leases: []caps.Lease{{
			Entry:   caps.Entry{Grant: g},
			Expires: caps.Forever, MaxUses: 20,
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	// control: on something else, on all methods, or on those of another scheme
	for _, all := range []string{"kb:read:notes", "network:https:api.example.com", "network:http:delete@api.example.com"} {
		leased(grantOf(t, all))
		if n, _ := r.http(req, ""); n < 0 {
			t.Errorf("control: a lease on %s: %d", all, n)
		}
	}
	leased(g)
	r.refused(req, "", -2, "method_not_permitted")
}

// A redirect makes no other method of a request either, and goes to a host where
// methods are limited without what was free elsewhere.
func TestARedirectDoesNotOverrideAMethod(t *testing.T) {
	limited, err := caps.ParseGrant("network:https:delete@other.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, location, method, body string
		status                       int
		refused                      bool
	}{
		{"a query", "https://other.example/b?_method=DELETE", "GET", "", 302, true},
		{"a body on GET", "https://other.example/b", "GET", "a", 307, true},
		{"a form", "https://other.example/b", "POST", "_method=DELETE", 307, true},
		{"a query by verb", "https://other.example/b?verb=DELETE", "GET", "", 302, true},
		{"control: without", "https://other.example/b", "POST", "a=1", 307, false},
		{"control: where all methods are granted", "https://api.example.com/b?_method=DELETE", "GET", "", 302, false},
	} {
		w := apiWorld(t)
		seen := hops(w, c.status, c.location)
		r := netRig(t, w, keyPolicy)
		if err := r.gate.Hold(&caps.Layer{Name: "late", Deny: []caps.Entry{{Grant: limited}}}); err != nil {
			t.Fatal(err)
		}
		req := map[string]any{
			"method": c.method, "url": "https://api.example.com/a",
			"headers": map[string]any{"Content-Type": "application/x-www-form-urlencoded"},
		}
		if !c.refused {
			if n, _ := r.http(req, c.body); n < 0 || len(*seen) != 2 {
				t.Errorf("%s: %d, sent %q", c.name, n, *seen)
			}
			continue
		}
		if hint := r.refused(req, c.body, -2, "method_not_permitted"); !strings.Contains(hint, "the server redirected") ||
			len(*seen) != 1 {
			t.Errorf("%s: %q, sent %q", c.name, hint, *seen)
		}
	}
}

// The method of an attached tool is the bundle's word: neither its headers nor
// the arguments of a call name another, whatever the run is granted.
func TestAToolKeepsItsMethod(t *testing.T) {
	get := webTool()
	get.Request.Method = "GET"
	r, w := webRig(t, webPolicy, get)
	did := overriding(w)
	if n, d := r.useDenied("send", `{"_method":"DELETE"}`); n != -2 || d.Reason != "method_not_permitted" ||
		len(*did) != 0 {
		t.Errorf("%d %+v, sent %v", n, d, *did)
	}
	if n, out := r.use("send", `{"method":"card"}`); n < 0 || len(*did) != 1 {
		t.Errorf("control: %d %s", n, out)
	}
	for i, tool := range []Tool{webTool(), webTool()} {
		if err := tool.Check(); err != nil {
			t.Fatalf("control: %v", err)
		}
		own := *tool.Request
		tool.Request = &own
		if i == 0 {
			own.Headers = append([]ToolField{{Name: "x-method-override", Parts: []ToolPart{{Text: "DELETE"}}}}, own.Headers...)
		} else {
			own.URL += "&_method=DELETE"
		}
		if err := tool.Check(); err == nil || !strings.Contains(fmt.Sprint(err), "write it as method") {
			t.Errorf("%d: %v", i, err)
		}
	}
}
