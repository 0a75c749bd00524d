package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// Only a connection of the operator or of root, or one of this host where the
// system tells no user, needs no token; behind a proxy only a Unix socket.
func TestWhoNeedsNoToken(t *testing.T) {
	const far, near = "192.0.2.1:1", "127.0.0.1:1"
	for _, c := range []struct {
		name   string
		proxy  bool
		from   string
		p      *peer
		status int
		say    string
	}{
		{"operator", false, near, &peer{uid: 1000, state: peerKnown}, 200, ""},
		{"root", false, near, &peer{uid: 0, state: peerKnown}, 200, ""},
		{"another user", false, near, &peer{uid: 1001, state: peerKnown}, 401, "user 1001"},
		{"unknown", false, near, &peer{uid: 1000}, 401, "from elsewhere"},
		{"untold, here", false, near, &peer{state: peerUntold}, 200, ""},
		{"untold, socket", false, far, &peer{state: peerUntold, local: true}, 200, ""},
		{"untold, elsewhere", false, far, &peer{state: peerUntold}, 401, "from elsewhere"},
		{"operator behind a proxy", true, near, &peer{uid: 1000, state: peerKnown}, 401, "through a proxy"},
		{"socket behind a proxy", true, near, &peer{uid: 1000, state: peerKnown, local: true}, 200, ""},
		{"nothing known behind a proxy", true, near, nil, 401, "from elsewhere"},
	} {
		k := kitOf(t, func(o *Options) { o.BehindProxy = c.proxy })
		r := request(t)
		if c.p != nil {
			c.p.conn = fakeConn{remote: netip.MustParseAddrPort(c.from), local: netip.MustParseAddrPort(near)}
			c.p.once.Do(func() {})
			r = r.WithContext(context.WithValue(r.Context(), peerKey{}, c.p))
		}
		caller, err := k.Authenticate(r)
		if (err == nil) != (c.status == 200) || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %+v, %v", c.name, caller, err)
		}
		if c.name == "untold, here" && err == nil && caller.ID != "user:1000" {
			t.Errorf("%s: %s", c.name, caller.ID)
		}
		r.Header.Set("X-Forwarded-For", "198.51.100.7")
		want := c.p.source()
		if c.proxy && (c.p == nil || !c.p.local) {
			want = "198.51.100.7"
		}
		if got := k.source(r); got != want {
			t.Errorf("%s: comes from %s, want %s", c.name, got, want)
		}
	}
}

// A host is read in one way or not at all, at each bound of its parts.
func TestPlaces(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Repeat(label+".", 3) + label[:61]
	for s, want := range map[string]string{
		"a": "a 80", "A:1": "a 1", "a:65535": "a 65535", "10.0.0.1": "10.0.0.1 80", "[::1]:9": "::1 9", "[0:0::1]": "::1 80",
		"a_b-1.c": "a_b-1.c 80", label: label + " 80", long: long + " 80",
		"a9": "a9 80", "9a.b": "9a.b 80",
		"": "", ":1": "", "a:": "", "a:0": "", "a:65536": "", "a:+1": "", "a:01": "", "a:x": "", "[::1": "", "[::1]x": "",
		"[::1]:": "", "[zz]": "", "[10.0.0.1]": "", "[::1%lo]": "",
		"[::ffff:10.0.0.1]": "", label + "a": "", long + "a": "", "a..b": "", "a.": "", "b.0": "", "b.9": "", "b.0x1": "",
		"10.0.0.256": "", "a b": "", "a/": "", "é": "",
	} {
		got := ""
		if p, ok := parsePlace(s, 80); ok {
			got = p.host + " " + strconv.Itoa(int(p.port))
			if p.addr.IsValid() && p.addr.String() != p.host {
				t.Errorf("%q: address %v", s, p.addr)
			}
		} else if p != (place{}) {
			t.Errorf("%q: something of what is no place: %+v", s, p)
		}
		if got != want {
			t.Errorf("%.20q: %q, want %q", s, got, want)
		}
	}
	h := hosts{names: map[string]bool{"a": true}, port: 8770}
	for _, c := range []struct {
		host       string
		tls, proxy bool
		want       bool
	}{
		{"a", false, false, true},
		{"a:80", true, false, false},
		{"a:443", true, false, true},
		{"a:443", false, true, true},
		{"a:443", false, false, false},
		{"a:80", false, true, false},
	} {
		if h.proxy = c.proxy; h.has(c.host, c.tls, netip.AddrPort{}) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

// A link may lead here by GET or HEAD and to a page alone; nothing that lacks one
// of its signs is a link.
func TestWhatIsALink(t *testing.T) {
	k := kitOf(t, nil)
	for method, want := range map[string]bool{"GET": true, "HEAD": true, "POST": false, "DELETE": false} {
		link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
		r := request(t, link...)
		r.Method = method
		if k.isCross(r) == want {
			t.Errorf("%s is a link: %v", method, !want)
		}
		for _, sign := range []string{"Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
			r = request(t, link...)
			r.Method = method
			r.Header.Set(sign, "cors")
			if !k.isCross(r) {
				t.Errorf("%s is a link with another %s", method, sign)
			}
		}
	}
}

// A browser is sent from localhost to the address by a link alone, and not where
// TLS, a proxy or a Unix socket says who answers.
func TestWhoIsSentToTheAddress(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *http.Request, p *peer)
		proxy  bool
		passes bool
		leads  bool
	}{
		"page":  {func(*http.Request, *peer) {}, false, false, true},
		"fetch": {func(r *http.Request, _ *peer) { r.Header.Set("Sec-Fetch-Mode", "cors") }, false, false, false},
		"origin": {
			func(r *http.Request, _ *peer) { r.Header = http.Header{"Origin": {"http://localhost:8770"}} }, false,
			false, false,
		},
		"TLS":    {func(r *http.Request, _ *peer) { r.TLS = &tls.ConnectionState{} }, false, true, false},
		"proxy":  {func(r *http.Request, _ *peer) { r.Host = "localhost:8770" }, true, true, false},
		"socket": {func(_ *http.Request, p *peer) { p.local = true }, false, true, false},
	} {
		k := kitOf(t, func(o *Options) { o.BehindProxy = c.proxy })
		r := asUser(request(t, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate"), 1000)
		r.Host = "localhost:8770"
		p := peerOf(r.Context())
		p.conn = fakeConn{local: netip.MustParseAddrPort("127.0.0.1:8770"), remote: netip.MustParseAddrPort("127.0.0.1:1")}
		c.change(r, p)
		d := k.guard(r)
		if (d == nil) != c.passes || d != nil && (d.Code != "use_address" || (d.location != "") != c.leads) {
			t.Errorf("%s: %+v", name, d)
		}
		if c.leads {
			w := visit(t, k.Wrap(http.NotFoundHandler()), r)
			if w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != "http://127.0.0.1:8770/runs" {
				t.Errorf("%s: %d %v", name, w.Code, w.Header())
			}
		}
	}
}

// What is proved stands while the record is the one that was proved, and its
// holder may as much as before.
func TestWhatStands(t *testing.T) {
	k := kitOf(t, nil)
	made, _ := k.token(t, nil)
	now := time.Now()
	for name, c := range map[string]struct {
		change func(*Token)
		want   bool
	}{
		"the same":      {func(*Token) {}, true},
		"more now":      {func(o *Token) { o.May = service.Read }, true},
		"less now":      {func(o *Token) { o.May |= service.Operate }, false},
		"other secret":  {func(o *Token) { o.secret[0]++ }, false},
		"other hash":    {func(o *Token) { o.CertHash = "x" }, false},
		"other cert":    {func(o *Token) { o.CertName = "x" }, false},
		"other tenant":  {func(o *Token) { o.Tenant = "other" }, false},
		"another token": {func(o *Token) { o.ID = "abcdefghij" }, false},
	} {
		was := *made
		c.change(&was)
		if err := k.stands(&proof{token: &was}, now); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, os.Chmod(k.store.dir, 0o755))
	if k.stands(&proof{token: made}, now) == nil {
		t.Error("what cannot be read stands")
	}
}

// A certificate without a name is nobody's, and of two records of one certificate
// one counts: that of its hash, then a good one, then one id.
func TestWhichRecordACertificateProves(t *testing.T) {
	k := kitOf(t, nil)
	k.token(t, nil)
	if found, err := k.store.byCert(&x509.Certificate{Raw: []byte("x")}); found != nil || err != nil {
		t.Errorf("%+v, %v", found, err)
	}
	cert := &x509.Certificate{Raw: []byte("y"), Subject: pkix.Name{CommonName: "runner"}}
	made, _ := k.token(t, func(o *Token) { o.Name, o.CertName = "r", "runner" })
	if found, err := k.store.byCert(cert); err != nil || found == nil || found.ID != made.ID {
		t.Errorf("control: %+v, %v", found, err)
	}
	for _, same := range []func(*Token){func(o *Token) { o.Name, o.CertName = "r2", "runner" }, func(o *Token) {
		o.Name,
			o.CertName = "r", "other"
	}} {
		second := Token{Tenant: "acme", May: service.Read}
		same(&second)
		if _, _, err := k.store.New(second); err == nil || !strings.Contains(err.Error(), made.ID) {
			t.Errorf("%+v: %v", second, err)
		}
	}
	hash, good, over := &Token{ID: "c", CertHash: "x", Revoked: time.Now()}, &Token{ID: "b", CertName: "x"},
		&Token{ID: "a", CertName: "x", Revoked: time.Now()}
	order := []*Token{hash, good, {ID: "bb", CertName: "x"}, over, {ID: "aa", CertName: "x", Revoked: time.Now()}}
	for i, a := range order {
		for j, b := range order {
			if k.store.better(a, b) != (i < j) {
				t.Errorf("%s before %s: %v", a.ID, b.ID, i >= j)
			}
		}
	}
}

// A record keeps its bounds, each at the last that it may have.
func TestBoundsOfRecords(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		change func(*Token, int)
	}{
		{"name", 64, func(o *Token, n int) { o.Name = strings.Repeat("a", n) }},
		{"cert_name", 256, func(o *Token, n int) { o.stated, o.CertName = false, strings.Repeat("a", n) }},
		{"profiles", 64, func(o *Token, n int) { o.Profiles = make([]string, n) }},
		{"grant", 64 << 10, func(o *Token, n int) { o.Grant = strings.Repeat(" ", n) }},
		{"a sign of the name in a certificate", 0x7e, func(o *Token, n int) {
			o.stated, o.CertName = false,
				string(rune(n))
		}},
	} {
		for extra, good := range map[int]bool{0: true, 1: false} {
			o := aRecord()
			if c.change(o, c.n+extra); (o.check() == nil) != good {
				t.Errorf("%s, %d: %v", c.name, c.n+extra, o.check())
			}
		}
	}
	for _, bad := range []string{"\xff", "a\x1fb", "\x00"} {
		o := aRecord()
		if o.stated, o.CertName = false, bad; o.check() == nil {
			t.Errorf("%q is a name", bad)
		}
	}
}

// A session is the host's own over TLS, ends at its instant and where it was
// begun anew, and makes room by what is over first.
func TestBoundsOfSessions(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	s := newSessions()
	over := s.begin(session{until: now.Add(time.Second)}, now)
	if !s.has(over, now.Add(time.Second-1)) || s.has(over, now.Add(time.Second)) {
		t.Error("it does not end at its instant")
	}
	early := s.begin(session{until: now.Add(time.Minute)}, now)
	for range maxSessions - 2 {
		s.begin(session{until: now.Add(time.Hour)}, now)
	}
	now = now.Add(time.Second)
	if s.begin(session{until: now.Add(time.Hour)}, now); !s.has(early, now) {
		t.Error("a good one is forgotten for one that is over")
	}
	for _, proxy := range []bool{false, true} {
		k := kitOf(t, func(o *Options) { o.BehindProxy, o.Hosts = proxy, []string{"127.0.0.1:8770"} })
		_, text := k.token(t, func(o *Token) { o.Expires = time.Now().Add(time.Hour).Truncate(time.Second) })
		h := k.Wrap(http.NotFoundHandler())
		post := func(cookies ...*http.Cookie) *http.Cookie {
			r := browser(t, "POST", LoginPath, "192.0.2.1", url.Values{"token": {" " + text + " "}}, cookies...)
			if !proxy {
				r.TLS = &tls.ConnectionState{}
				r.Header.Set("Origin", "https://127.0.0.1:8770")
			} else {
				r.Header.Set("Origin", "https://127.0.0.1:8770")
				r.Host = "127.0.0.1:8770"
			}
			w := visit(t, h, r)
			if got := w.Result().Cookies(); len(got) == 1 && w.Header().Get("Cache-Control") == "no-store" {
				return got[0]
			}
			t.Fatalf("proxy %v: %d %s", proxy, w.Code, w.Body)
			return nil
		}
		first := post()
		if first.Name != "__Host-rlp" || !first.Secure || first.MaxAge > 3600 || first.MaxAge < 3500 {
			t.Errorf("proxy %v: %+v", proxy, first)
		}
		if second := post(first); k.sessions.has(first.Value, time.Now()) || !k.sessions.has(second.Value, time.Now()) {
			t.Error("a session goes on behind the one that took its place")
		}
	}
}

// A refusal says when to come again only where there is a time, and how to prove
// oneself only where that helps; no browser guesses what it is.
func TestHeadersOfRefusals(t *testing.T) {
	k := kitOf(t, nil)
	for _, d := range []*Denied{denied(401, "a", "b"), denied(403, "a", "b"), {
		Status: 429, Code: "a",
		RetryAfter: 1500 * time.Millisecond,
	}} {
		w := httptest.NewRecorder()
		k.refuse(w, request(t), d)
		h := w.Header()
		if w.Code != d.Status || (h.Get("WWW-Authenticate") != "") != (d.Status == 401) ||
			(h.Get("Retry-After") == "2") != (d.Status == 429) || h.Get("Retry-After") == "0" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") != "application/json; charset=utf-8" ||
			h.Get("Cache-Control") != "no-store" {
			t.Errorf("%d: %v", w.Code, h)
		}
	}
	for name, change := range map[string]func(*http.Request){
		"control": func(*http.Request) {}, "POST": func(r *http.Request) { r.Method = "POST" },
		"token":   func(r *http.Request) { r.Header.Set("Authorization", "x") },
		"script":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Mode", "cors") },
		"program": func(r *http.Request) { r.Header.Del("Accept") },
	} {
		r := browser(t, "GET", "/runs", "192.0.2.1", nil)
		if change(r); wantsPage(r) != (name == "control") {
			t.Errorf("%s wants a page: %v", name, wantsPage(r))
		}
	}
}

// Only a connection within this host is asked for its user, and what has no
// address is nobody's.
func TestSources(t *testing.T) {
	if got := SourceOf(fakeConn{remote: netip.MustParseAddrPort("192.0.2.1:1")}); got != "192.0.2.1" {
		t.Errorf("from %s", got)
	}
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	if got := SourceOf(one); got != "unknown" {
		t.Errorf("without an address: %s", got)
	}
}
