package hostcalls

import (
	"errors"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// A URL that is refused says why; one that is taken has one spelling, and is as
// long as it may be.
func TestPlacesHaveOneSpelling(t *testing.T) {
	for raw, want := range map[string]string{ // what is sent; and as whom it is judged
		"https://a.example":                       "https://a.example/ a.example:443",
		"https://a.example/p?q#part":              "https://a.example/p?q a.example:443",
		"http://a.example:80/%2f":                 "http://a.example/%2f a.example:80",
		"https://a.example:80":                    "https://a.example:80/ a.example:80",
		"https://[::ffff:192.0.2.1]:80/":          "https://192.0.2.1:80/ 192.0.2.1:80",
		"https://[::1]:80/":                       "https://[::1]:80/ [::1]:80",
		"https://a.example/?<":                    "https://a.example/?%3C a.example:443",
		"https://a/" + strings.Repeat("p", 8181):  "https://a/" + strings.Repeat("p", 8181) + " a:443",
		"https://a/?" + strings.Repeat("<", 2727): "https://a/?" + strings.Repeat("%3C", 2727) + " a:443",
	} {
		p, err := parsePlace(raw)
		if err != nil || p.url.String()+" "+p.host != want {
			t.Errorf("%.60s: %.90s %s, %v", raw, p.url, p.host, err)
		}
	}
	for raw, want := range map[string]error{
		"https://[::1/":                          errURL,
		"https:a.example":                        errURL,
		"https:///a":                             errURL,
		"https://a/\xff":                         errURL,
		"https://a/\x7f":                         errChars,
		"https://a/\x1f":                         errChars,
		"https://a/" + strings.Repeat("p", 8182): errLong,
		"https://a/?" + strings.Repeat("<", 2727) + "x": errLong,
		"https://１.2.3.4/":                              errDisguise,
	} {
		if p, err := parsePlace(raw); !errors.Is(err, want) {
			t.Errorf("%.60s: %+v, %v, want %v", raw, p, err, want)
		}
	}
	if p, err := parsePlace("https://xn--a-ecp.ru--/"); err == nil {
		t.Errorf("a name that is none: %+v", p)
	}
	for in, want := range map[string]string{
		"::ffff:192.0.2.1": "::ffff:192.0.2.1", "192.0.2.1:80": "192.0.2.1:80", "[::1]:80": "[::1]:80",
		"[::ffff:192.0.2.1%eth0]:80": "[::ffff:192.0.2.1%eth0]:80", "[::ffff:192.0.2.1]:80": "192.0.2.1:80", "[a]": "[a]",
	} {
		if got := unmap(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

// What has no place in a path or query is escaped, and nothing else.
func TestEscapes(t *testing.T) {
	for c := range 256 {
		in, want := string([]byte{'a', byte(c), 'b'}), string([]byte{'a', byte(c), 'b'})
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>`{}|^", byte(c)) >= 0 {
			const hex = "0123456789ABCDEF"
			want = "a%" + string([]byte{hex[c/16], hex[c%16]}) + "b"
		}
		if got := escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A refusal says what a policy would have to say over http too.
func TestMethodLines(t *testing.T) {
	for _, c := range []struct{ scheme, method, host, want string }{
		{"https", "POST", "a.example:443", `net = { hosts = ["a.example"], methods = ["POST"] }`},
		{"http", "PUT", "a.example:80", `net = { hosts = ["a.example"], allow_http = true, methods = ["PUT"] }`},
		{"http", "GET", "a.example:8080", `net = { hosts = ["a.example:8080"], allow_http = true, methods = ["GET"] }`},
		{"https", "PURGE", "a.example:443", `net = ["a.example"]`},
	} {
		mode, ok := caps.NetMode(c.scheme, c.method)
		if got := methodLine(caps.Request{Family: caps.Net, Mode: mode, Name: c.host}); !ok || got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
