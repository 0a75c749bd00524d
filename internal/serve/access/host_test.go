package access

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// A name that leads here but is not ours is how a page of another site asks
// through its reader's browser. Without the guard each of these would be the
// operator, which is the control.
func TestHostsOfOthersAreRefused(t *testing.T) {
	k := kitOf(t, func(o *Options) { o.Hosts = []string{"agents.example", "other.example:8443", "2001:db8::5"} })
	for host, want := range map[string]bool{
		"127.0.0.1:8770": true, "localhost:8770": true, "LOCALHOST:8770": true, "[::1]:8770": true, "127.0.0.2:8770": true,
		"192.0.2.80:8770": true,
		"agents.example":  true, "agents.example:8770": true, "AGENTS.example:80": true, "other.example:8443": true,
		"[2001:db8::5]": true,

		"": false, "evil.example": false, "evil.example:8770": false, "127.0.0.1": false, "localhost": false,
		"localhost:80": false, "127.0.0.1:8771": false,
		"127.0.0.1:08770": false, "127.0.0.1:+8770": false, "127.0.0.1:": false, "127.0.0.1:8770:8770": false,
		"localhost.:8770": false, "localhost.evil.example:8770": false,
		"127.0.0.1.evil.example:8770": false, "127.1:8770": false, "2130706433:8770": false, "0x7f000001:8770": false,
		"0:8770": false, "0.0.0.0:8770": false, "[::]:8770": false,
		"[::ffff:127.0.0.1]:8770": false, "[::1%25lo]:8770": false, "[::1%lo]:8770": false, "::1:8770": false, "[::1]": false,
		"[::1]8770": false, "[127.0.0.1]:8770": false,
		"192.0.2.81:8770": false, "10.0.0.1:8770": false, "agents.example:443": false, "agents.example:8443": false,
		"other.example": false, "other.example:8770": false,
		"sub.agents.example": false, "agents.example.": false, "agents.example@evil.example": false,
		"evil.example#@127.0.0.1:8770": false, "127.0.0.1:8770/": false,
		"127.0.0.1:8770 ": false, "127.0.0.1\x00:8770": false, "localhost:8770,evil": false, "lоcalhost:8770": false,
		"*": false,
	} {
		r := asUser(request(t), 1000)
		r.Host = host
		peerOf(r.Context()).conn = fakeConn{
			local:  netip.MustParseAddrPort("192.0.2.80:8770"),
			remote: netip.MustParseAddrPort("192.0.2.80:1"),
		}
		if got := k.status(t, r); got != http.StatusOK {
			t.Fatalf("control: %q: without the guard it is not let in: %d", host, got)
		}
		if d := k.guard(r); (d == nil) != want {
			t.Errorf("%q: %v, want ok %v", host, d, want)
		}
	}
}

// HTTP/2 may say two names.
func TestTwoHosts(t *testing.T) {
	k := kitOf(t, nil)
	r := asUser(request(t), 1000)
	r.Header["Host"] = []string{"127.0.0.1:8770"}
	if d := k.guard(r); d != nil {
		t.Errorf("control: %v", d)
	}
	for _, second := range [][]string{{"evil.example"}, {"127.0.0.1:8770", "127.0.0.1:8770"}, {""}} {
		r.Header["Host"] = second
		if d := k.guard(r); d == nil || d.Status != http.StatusBadRequest {
			t.Errorf("%q: %v", second, d)
		}
	}
}

// What a page of another site makes a browser send is refused, in whatever
// manner; what the console sends, and what no browser sends, is not. The control
// of each is that the same request is the operator's without the guard.
func TestRequestsOfOtherSitesAreRefused(t *testing.T) {
	k := kitOf(t, func(o *Options) { o.Hosts = []string{"agents.example"} })
	const own = "http://127.0.0.1:8770"
	for _, c := range []struct {
		name, method string
		headers      []string
		want         bool
	}{
		{"curl", "POST", nil, true},
		{"curl", "GET", nil, true},
		{"console, form", "POST", []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, true},
		{"console, an older browser", "POST", []string{"Origin", own}, true},
		{"console, events", "GET", []string{
			"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Accept",
			"text/event-stream",
		}, true},
		{"typed address", "GET", []string{
			"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
			"document",
		}, true},
		{"a link from elsewhere", "GET", []string{
			"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document",
		}, true},

		{"form of another site", "POST", []string{
			"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document",
		}, false},
		{"form, an older browser", "POST", []string{"Origin", "https://evil.example"}, false},
		{"form of no origin", "POST", []string{"Origin", "null"}, false},
		{"form without origin", "POST", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{
			"another port of this host", "POST",
			[]string{"Origin", "http://127.0.0.1:9999", "Sec-Fetch-Site", "same-site"},
			false,
		},
		{"another port, an older browser", "POST", []string{"Origin", "http://127.0.0.1:9999"}, false},
		{"another port without origin", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, false},
		{"another scheme", "POST", []string{"Origin", "https://127.0.0.1:8770"}, false},
		{"another name of this host", "POST", []string{"Origin", "http://localhost:8770"}, false},
		{"user in the origin", "POST", []string{"Origin", "http://127.0.0.1:8770@evil.example"}, false},
		{"path in the origin", "POST", []string{"Origin", own + "/"}, false},
		{"longer name", "POST", []string{"Origin", "http://127.0.0.1:8770.evil.example"}, false},
		{"empty origin", "POST", []string{"Origin", ""}, false},
		{"two origins", "POST", []string{"Origin", own, "Origin", "https://evil.example"}, false},
		{"an origin twice", "POST", []string{"Origin", own, "Origin", own}, false},
		{"two sites", "POST", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"}, false},
		{"an unknown site", "POST", []string{"Sec-Fetch-Site", "elsewhere"}, false},
		{"events of another site", "GET", []string{"Origin", "https://evil.example", "Accept", "text/event-stream"}, false},
		{"events without origin", "GET", []string{
			"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Accept",
			"text/event-stream",
		}, false},
		{
			"WebSocket", "GET",
			[]string{"Origin", "https://evil.example", "Connection", "Upgrade", "Upgrade", "websocket"},
			false,
		},
		{"WebSocket that looks like a link", "GET", []string{
			"Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document",
		}, false},
		{
			"picture", "GET",
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
			false,
		},
		{
			"script", "GET",
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"},
			false,
		},
		{
			"frame", "GET",
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
			false,
		},
		{"deletion", "DELETE", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"preflight", "OPTIONS", []string{"Origin", "https://evil.example"}, false},
		{"tunnel", "CONNECT", nil, false},
		{"trace", "TRACE", nil, false},
	} {
		r := asUser(request(t, c.headers...), 1000)
		r.Method = c.method
		peerOf(r.Context()).conn = fakeConn{
			local:  netip.MustParseAddrPort("127.0.0.1:8770"),
			remote: netip.MustParseAddrPort("127.0.0.1:1"),
		}
		if got := k.status(t, r); got != http.StatusOK {
			t.Fatalf("control: %s: without the guard it is not let in: %d", c.name, got)
		}
		if d := k.guard(r); (d == nil) != c.want {
			t.Errorf("%s: %v, want ok %v", c.name, d, c.want)
		}
	}
}

// Over TLS, and behind a proxy that speaks it, the console's origin is https.
func TestOriginsOverTLS(t *testing.T) {
	h := hosts{port: 8770}
	proxied := hosts{port: 8770, proxy: true}
	for _, c := range []struct {
		h            *hosts
		origin, host string
		tls, want    bool
	}{
		{&h, "https://a.example:8770", "a.example:8770", true, true},
		{&h, "http://a.example:8770", "a.example:8770", true, false},
		{&h, "https://a.example:8770", "a.example:8770", false, false},
		{&h, "https://a.example", "a.example:443", true, true},
		{&h, "https://a.example:8770", "b.example:8770", true, false},
		{&proxied, "https://a.example", "a.example", false, true},
		{&proxied, "https://b.example", "a.example", false, false},
		{&h, "file://", "a.example", false, false},
		{&h, "chrome-extension://abc", "a.example", false, false},
		{&h, "http://[::1]:8770", "[::1]:8770", false, true},
		{&h, "http://[::1%25lo]:8770", "[::1]:8770", false, false},
	} {
		if got := c.h.sameOrigin(c.origin, c.host, c.tls); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// localhost is 127.0.0.1 and ::1; another user can listen at the one that the
// service has not, and show a page of the very origin. A browser uses the
// address; programs, which run no page, may use the name.
func TestBrowsersUseTheAddress(t *testing.T) {
	k := kitOf(t, nil)
	r := asUser(request(t), 1000)
	peerOf(r.Context()).conn = fakeConn{
		local:  netip.MustParseAddrPort("127.0.0.1:8770"),
		remote: netip.MustParseAddrPort("127.0.0.1:1"),
	}
	r.Host = "localhost:8770"
	if d := k.guard(r); d != nil {
		t.Fatalf("control: a program: %v", d)
	}
	r.Header.Set("Sec-Fetch-Site", "none")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	if d := k.guard(r); d == nil || d.location != "http://127.0.0.1:8770/runs" {
		t.Errorf("a page: %+v", d)
	}
	r.Method = "POST"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Origin", "http://localhost:8770")
	if d := k.guard(r); d == nil || d.Code != "use_address" || d.location != "" {
		t.Errorf("a form: %+v", d)
	}
}

// Whatever a Host or an Origin says, it is one of our names or refused, and no
// origin but the host's own passes.
func FuzzHostAndOrigin(f *testing.F) {
	f.Add("127.0.0.1:8770", "http://127.0.0.1:8770")
	f.Add("[::ffff:127.0.0.1]:8770", "null")
	f.Add("agents.example", "http://agents.example:80")
	f.Add("localhost:8770", "http://LOCALHOST:8770")
	h := hosts{names: map[string]bool{"agents.example": true}, port: 8770}
	f.Fuzz(func(t *testing.T, host, origin string) {
		ok := h.has(host, false, netip.AddrPort{})
		if ok {
			name := strings.ToLower(host)
			addr, err := netip.ParseAddrPort(host)
			switch {
			case name == "localhost:8770", strings.TrimSuffix(strings.TrimSuffix(name, ":8770"), ":80") == "agents.example":
			case err == nil && addr.Port() == 8770 && addr.Addr().IsLoopback() && !addr.Addr().Is4In6() &&
				addr.Addr().Zone() == "":
			default:
				t.Fatalf("%q is a name of ours", host)
			}
		}
		if h.sameOrigin(origin, host, false) {
			rest, found := strings.CutPrefix(origin, "http://")
			if !found || !strings.EqualFold(strings.TrimSuffix(rest, ":80"), strings.TrimSuffix(host, ":80")) {
				a, ok1 := parsePlace(rest, 80)
				b, ok2 := parsePlace(host, 80)
				if !found || !ok1 || !ok2 || a != b {
					t.Fatalf("%q is the origin of %q", origin, host)
				}
			}
		}
	})
}
