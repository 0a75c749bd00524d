package web

import (
	"errors"
	"net/netip"
	"net/url"
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
		p, err := Parse(raw)
		if err != nil || p.URL.String()+" "+p.Host != want {
			t.Errorf("%.60s: %.90s %s, %v", raw, p.URL, p.Host, err)
		}
	}
	for raw, want := range map[string]error{
		"https://[::1/":                          ErrURL,
		"https:a.example":                        ErrURL,
		"https:///a":                             ErrURL,
		"https://a/\xff":                         ErrURL,
		"https://a/\x7f":                         errChars,
		"https://a/\x1f":                         errChars,
		"https://a/" + strings.Repeat("p", 8182): errLong,
		"https://a/?" + strings.Repeat("<", 2727) + "x": errLong,
		"https://１.2.3.4/":                              errDisguise,
	} {
		if p, err := Parse(raw); !errors.Is(err, want) {
			t.Errorf("%.60s: %+v, %v, want %v", raw, p, err, want)
		}
	}
	if p, err := Parse("https://xn--a-ecp.ru--/"); err == nil {
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

// Whatever spelling a URL has, what is judged is what is sent: the place reads
// the same once more, its host is canonical, and nothing of the query is shown.
func FuzzPlace(f *testing.F) {
	for _, s := range []string{
		"https://api.example.com/", "http://[::ffff:127.0.0.1]:8080/a?b=c#d", "https://EXAMPLE.com.:443",
		"https://ä.example/%2f/ü?%zz=<>",
		"https://127.0.0.1:80/", "https://h/?secret", "http://0177.1/", "https://h:0443/", "https://h//evil/..//\xff",
		"https://ａ.example/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := Parse(raw)
		if err != nil {
			return
		}
		again, err := Parse(p.URL.String())
		if err != nil || again.Host != p.Host || again.Shown != p.Shown || again.URL.String() != p.URL.String() {
			t.Fatalf("%q is %+v, which is %+v, %v", raw, p, again, err)
		}
		if host, err := caps.HostPort(p.Scheme, p.URL.Host); err != nil || host != p.Host {
			t.Fatalf("%q: sent to %q, judged as %q (%v)", raw, host, p.Host, err)
		}
		if p.URL.User != nil || p.URL.Opaque != "" || strings.ContainsAny(p.Shown, "?# \r\n\\") {
			t.Fatalf("%q: %q", raw, p.Shown)
		}
		if u, err := url.Parse(p.URL.String()); err != nil || u.RequestURI() != p.URL.RequestURI() ||
			strings.ContainsFunc(u.RequestURI(), func(c rune) bool { return c <= ' ' || c > '~' }) {
			t.Fatalf("%q: %q, %v", raw, p.URL.RequestURI(), err)
		}
		name := strings.Trim(p.Host[:strings.LastIndexByte(p.Host, ':')], "[]")
		if a, err := netip.ParseAddr(name); err == nil && a.Is4In6() {
			t.Fatalf("%q: %s in disguise", raw, a)
		}
	})
}
