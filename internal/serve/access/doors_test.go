package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/serve/service"
)

// lines is a log that keeps its messages.
type lines struct{ strings.Builder }

func logged(o *Options) *lines {
	l := &lines{}
	o.Log = slog.New(slog.NewTextHandler(l, nil))
	return l
}

func (l *lines) has(t *testing.T, name string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(l.String(), w) {
			t.Errorf("%s: %q is not told in\n%s", name, w, l)
		}
	}
	l.Reset()
}

// Where to go after logging in is a path of the service's own, and nothing that
// a browser could take for another place.
func TestLocalPaths(t *testing.T) {
	for next, want := range map[string]string{
		"/runs": "/runs", "/runs?x=1&y=%2F": "/runs?x=1&y=%2F", "/a/../b": "/a/../b", "/": "/",
		"": "/", "runs": "/", "//x.example/": "/", "https://x.example/": "/", "https:/runs": "/", "mailto:/x": "/",
		"/\\x.example": "/", "/a\tb": "/", "/a\r\nb": "/", "/login": "/", "/login?next=/x": "/",
		"/logout": "/", "//u@/x": "/", "http:x": "/", "/%zz": "/",
	} {
		if got := localPath(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

// The form is a page of the service's own that asks nobody anything, and says
// what was wrong; each door of it says which methods there are.
func TestPagesOfTheForm(t *testing.T) {
	k := kitOf(t, nil)
	_, text := k.token(t, nil)
	h := k.Wrap(http.NotFoundHandler())
	const from = "192.0.2.1"
	for name, c := range map[string]struct {
		r        *http.Request
		status   int
		has, not string
	}{
		"the form":  {browser(t, "GET", LoginPath+"?next=/runs%22", from, nil), 200, `value="/runs%22"`, `role="alert"`},
		"elsewhere": {browser(t, "GET", LoginPath+"?next=//x.example", from, nil), 200, `value="/"`, "x.example"},
		"a guess": {
			browser(t, "POST", LoginPath, from, url.Values{"token": {wrongOf(text)}, "next": {"/runs"}}), 401,
			`<p role="alert">the token is not good here`, "error",
		},
	} {
		w := visit(t, h, c.r)
		head := w.Header()
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) || strings.Contains(w.Body.String(), c.not) ||
			head.Get("Content-Type") != "text/html; charset=utf-8" ||
			head.Get("Cache-Control") != "no-store" || head.Get("X-Content-Type-Options") != "nosniff" ||
			head.Get("Referrer-Policy") != "same-origin" || !strings.Contains(head.Get("Content-Security-Policy"),
			"default-src 'none'") {
			t.Errorf("%s: %d %v\n%s", name, w.Code, head, w.Body)
		}
	}
	program := browser(t, "POST", LoginPath, from, url.Values{"token": {wrongOf(text)}})
	program.Header.Set("Accept", "application/json")
	if w := visit(t, h, program); w.Code != 401 || !strings.Contains(w.Body.String(), `"error":"unauthorized"`) {
		t.Errorf("a program that guesses: %d %s", w.Code, w.Body)
	}
	for name, change := range map[string]func(r *http.Request){
		"no form": func(r *http.Request) { r.Header.Set("Content-Type", "application/json") },
		"broken":  func(r *http.Request) { r.URL.RawQuery = "%zz" },
		"too long": func(r *http.Request) {
			r.Body = http.NoBody
			*r = *browser(t, "POST", LoginPath, from, url.Values{"token": {text}, "x": {strings.Repeat("x", maxForm)}})
		},
		"two":  func(r *http.Request) { *r = *browser(t, "POST", LoginPath, from, url.Values{"token": {text, text}}) },
		"none": func(r *http.Request) { *r = *browser(t, "POST", LoginPath, from, url.Values{"next": {"/"}}) },
	} {
		r := browser(t, "POST", LoginPath, from, url.Values{"token": {text}})
		change(r)
		if w := visit(t, h, r); w.Code != http.StatusBadRequest || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
	for path, allow := range map[string]string{LoginPath: "GET, HEAD, POST", LogoutPath: "POST"} {
		if w := visit(t, h, browser(t, "DELETE", path, from, nil)); w.Code != http.StatusMethodNotAllowed ||
			w.Header().Get("Allow") != allow {
			t.Errorf("DELETE %s: %d %v", path, w.Code, w.Header())
		}
	}
	_, long := k.token(t, func(o *Token) { o.Name, o.Expires = "long", time.Now().Add(2*sessionLasts) })
	if cookie := logIn(t, h, long, from); cookie == nil || cookie.MaxAge != int(sessionLasts.Seconds()) {
		t.Errorf("a session of a token that is good for longer: %+v", cookie)
	}
	cookie := logIn(t, h, text, from)
	w := visit(t, h, browser(t, "POST", LogoutPath, from, nil, cookie))
	if head := w.Header(); w.Code != http.StatusSeeOther || head.Get("Location") != LoginPath ||
		head.Get("Cache-Control") != "no-store" || head.Get("Clear-Site-Data") != `"cache", "storage"` ||
		!strings.Contains(head.Get("Set-Cookie"), "Max-Age=0") || k.sessions.has(cookie.Value, time.Now()) {
		t.Errorf("logged out: %d %v", w.Code, head)
	}
	if w := visit(t, h, browser(t, "GET", "/runs", from, nil)); w.Code != http.StatusSeeOther ||
		w.Header().Get("WWW-Authenticate") != "" || w.Header().Get("Location") != "/login?next=%2Fruns" {
		t.Errorf("a page without a session: %d %v", w.Code, w.Header())
	}
}

// What a session proves ends with the first of the session and its token, chooses
// no tenant, and is asked anew while it lasts.
func TestWhatASessionProves(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	operator := strings.Repeat("o", minOperatorToken)
	k := kitOf(t, func(o *Options) {
		o.OperatorToken, o.Now = operator, func() time.Time { return now }
		o.Tokens.now = o.Now
	})
	made, _ := k.token(t, func(o *Token) { o.Expires = now.Add(2 * time.Hour) })
	for name, c := range map[string]struct {
		s     session
		until time.Duration
		id    string
	}{
		"the operator's":     {session{until: now.Add(time.Hour)}, time.Hour, "operator"},
		"ends first":         {session{token: made, until: now.Add(time.Hour)}, time.Hour, "token:" + made.ID},
		"its token does":     {session{token: made, until: now.Add(3 * time.Hour)}, 2 * time.Hour, "token:" + made.ID},
		"as long as another": {session{token: made, until: now.Add(2 * time.Hour)}, 2 * time.Hour, "token:" + made.ID},
	} {
		r := withPeer(request(t), "192.0.2.1")
		c.s.from = k.source(r)
		cookie := k.sessions.begin(c.s, now)
		p, err := k.bySession(r, []string{cookie})
		if err != nil || p.session != cookie || p.chooses || p.caller.ID != c.id || !p.caller.Until.Equal(now.Add(c.until)) ||
			p.caller.Still == nil || p.caller.Still() != nil || k.still(p) != nil {
			t.Fatalf("%s: %+v, %v", name, p, err)
		}
		k.sessions.end(cookie)
		if k.still(p) == nil {
			t.Errorf("%s: it goes on behind its end", name)
		}
		if p.caller.Still() != nil {
			t.Errorf("%s: what it began ends with it: %v", name, p.caller.Still())
		}
	}
	r := withPeer(request(t), "192.0.2.1")
	for name, change := range map[string]func(s *session){
		"no record":      func(s *session) { s.token = &Token{ID: "abcdefghij"} },
		"another secret": func(s *session) { s.token = &Token{ID: made.ID} },
		"unreadable":     func(*session) { must(t, os.Chmod(k.store.dir, 0o755)) },
	} {
		s := session{token: made, from: k.source(r), until: now.Add(time.Hour)}
		change(&s)
		p, err := k.bySession(r, []string{k.sessions.begin(s, now)})
		if d := asDenied(err); err == nil || p != nil || d.Status != http.StatusUnauthorized || !d.clear {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		must(t, os.Chmod(k.store.dir, 0o700))
	}
	r = withPeer(request(t), "192.0.2.1")
	p, err := k.bySession(r, []string{k.sessions.begin(session{token: made, from: k.source(r), until: now.Add(time.Hour)},
		now)})
	must(t, err)
	_, err = k.store.Revoke(made.ID)
	must(t, err)
	if p.caller.Still() == nil || k.still(p) == nil {
		t.Error("what a session began outlives its token")
	}
	must(t, os.Chmod(k.store.dir, 0o755))
	if err := p.caller.Still(); err == nil || !strings.Contains(err.Error(), "cannot be read now") {
		t.Errorf("a token that cannot be read: %v", err)
	}
	own := &proof{caller: service.Caller{Until: now}}
	if k.still(own) == nil {
		t.Error("what ends now goes on")
	}
	if own.caller.Until = now.Add(1); k.still(own) != nil {
		t.Error("what ends later is over")
	}
	// Of as many sessions as there may be, that which would end first makes room.
	s := newSessions()
	first := s.begin(session{until: now.Add(time.Minute)}, now)
	second := s.begin(session{until: now.Add(2 * time.Minute)}, now)
	for range maxSessions - 2 {
		s.begin(session{until: now.Add(time.Hour)}, now)
	}
	if len(s.all) != maxSessions || !s.has(first, now) {
		t.Fatalf("%d sessions", len(s.all))
	}
	if s.begin(session{until: now.Add(time.Hour)}, now); len(s.all) != maxSessions || s.has(first, now) ||
		!s.has(second, now) {
		t.Errorf("%d sessions, the first %v, the second %v", len(s.all), s.has(first, now), s.has(second, now))
	}
	now = now.Add(time.Hour)
	if s.begin(session{until: now.Add(time.Hour)}, now); len(s.all) != 1 {
		t.Errorf("%d are left when all are over", len(s.all))
	}
}

// What a token narrows is read again a second later, for another record, or when
// a clock went back; an error is told and nothing is let in by it.
func TestWhatATokenNarrowsIsReadAgain(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	reads := 0
	var fails error
	layers := []*caps.Layer{{Name: "token:ci"}}
	var log *lines
	k := kitOf(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Tokens.now = o.Now
		o.Layers = func(context.Context, *Token) ([]*caps.Layer, error) { reads++; return layers, fails }
		log = logged(o)
	})
	made, text := k.token(t, func(o *Token) { o.Profiles = []string{"local_minimal"} })
	read := func(name string, token *Token, at time.Time, want int) {
		t.Helper()
		reads = 0
		if got, err := k.layersOf(t.Context(), token, at); err != nil || len(got) != 1 || reads != want {
			t.Errorf("%s: %v, %v, read %d times", name, got, err, reads)
		}
	}
	read("first", made, now, 1)
	read("at once", made, now, 0)
	read("within a second", made, now.Add(rereadAfter-1), 0)
	read("a second later", made, now.Add(rereadAfter), 1)
	read("a clock that went back", made, now, 1)
	other := *made
	read("another record of it", &other, now, 1)
	if got, err := k.layersOf(t.Context(), &Token{ID: "x"}, now); got != nil || err != nil {
		t.Errorf("a token that narrows nothing: %v, %v", got, err)
	}
	for name, c := range map[string]struct {
		layers []*caps.Layer
		err    error
		say    string
	}{"an error": {nil, errors.New("gone"), "gone"}, "no layer": {nil, nil, "is no layer"}} {
		layers, fails = c.layers, c.err
		now = now.Add(time.Minute)
		if got := k.status(t, bearer(t, text)); got != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", name, got)
		}
		log.has(t, name, "access.unreadable", c.say, made.ID, "caller=token:ci")
	}
}

// Who is refused, and why, stands in the log, with where they came from and
// nothing of what they showed.
func TestRefusalsAreTold(t *testing.T) {
	var log *lines
	now := time.Unix(1_000_000_000, 0)
	k := kitOf(t, func(o *Options) {
		log = logged(o)
		o.Now = func() time.Time { return now }
		o.Tokens.now = o.Now
	})
	made, text := k.token(t, nil)
	over, overText := k.token(t, func(o *Token) { o.Name, o.Expires = "over", now.Add(time.Second) })
	from := func(r *http.Request) *http.Request { return withPeer(r, "192.0.2.7") }
	now = now.Add(time.Second)
	if got := k.status(t, from(bearer(t, overText))); got != 401 {
		t.Errorf("expired: %d", got)
	}
	log.has(t, "expired", "access.denied", "caller=token:over", over.ID, "why=expired")
	for range freeTries {
		if got := k.status(t, from(bearer(t, wrongOf(text)))); got != 401 {
			t.Errorf("a guess: %d", got)
		}
	}
	log.has(t, "a guess", "access.denied", "from=192.0.2.7", made.ID, `why="no such token"`)
	if got := k.status(t, from(bearer(t, wrongOf(text)))); got != 429 {
		t.Errorf("guesses: %d", got)
	}
	log.has(t, "guesses", "access.held", "from=192.0.2.7", made.ID, "wait_ms=")
	must(t, os.Chmod(k.store.dir, 0o755))
	if got := k.status(t, withPeer(bearer(t, "no token"), "192.0.2.9")); got != 401 {
		t.Errorf("what is no token needs no record: %d", got)
	}
	if got := k.status(t, withPeer(bearer(t, newToken().text), "192.0.2.8")); got != 503 {
		t.Errorf("unreadable: %d", got)
	}
	log.has(t, "unreadable", "access.unreadable", k.store.dir)
	cert := request(t)
	cert.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte("x"), NotAfter: now}}}
	if got := k.status(t, from(cert)); got != 401 {
		t.Errorf("a certificate: %d", got)
	}
	log.has(t, "a certificate", "access.denied", "from=192.0.2.7", hashOf(cert.TLS.PeerCertificates[0]),
		`why="the certificate is expired"`)
}

// Without records there is the operator's own token, and no other; without that,
// none. Guesses at it are one token's, whatever they look like.
func TestWithoutRecords(t *testing.T) {
	own := strings.Repeat("o", minOperatorToken)
	var log *lines
	k := kitOf(t, func(o *Options) { o.Tokens, o.OperatorToken = nil, own; log = logged(o) })
	if c, err := k.Authenticate(bearer(t, own)); err != nil || c.ID != "operator" || c.EveryTenant {
		t.Errorf("control: %+v, %v", c, err)
	}
	if got := k.status(t, bearer(t, newToken().text)); got != 401 {
		t.Errorf("a token: %d", got)
	}
	for i := range freeTries {
		r := withPeer(bearer(t, strings.Repeat("x", 30+i)), "192.0.2."+string(rune('1'+i%9)))
		if got := k.status(t, r); got != 401 && got != 429 {
			t.Errorf("guess %d: %d", i, got)
		}
	}
	if got := k.status(t, withPeer(bearer(t, strings.Repeat("y", 60)), "198.51.100.1")); got != 429 {
		t.Errorf("one guess more, from elsewhere: %d", got)
	}
	log.has(t, "guesses", "access.held")
	bare := kitOf(t, func(o *Options) { o.Tokens = nil })
	for range 2 * freeTries {
		if got := bare.status(t, withPeer(bearer(t, ""), "192.0.2.1")); got != 401 && got != 429 {
			t.Errorf("nothing: %d", got)
		}
	}
	if got := bare.status(t, withPeer(bearer(t, "x"), "198.51.100.1")); got != 401 {
		t.Errorf("where there is no such token others wait for it: %d", got)
	}
	for _, header := range []string{"Bearer", "bearer", own, "Basic " + own, "Bearer" + own, ""} {
		if got := k.status(t, withPeer(request(t, "Authorization", header), "203.0.113.9")); got != 401 && got != 429 {
			t.Errorf("%q: %d", header, got)
		}
	}
}

// A refusal is the page that the service has for it, where it has one.
func TestRefusalsOfTheServicesOwn(t *testing.T) {
	k := kitOf(t, func(o *Options) {
		o.Refuse = func(w http.ResponseWriter, _ *http.Request, d *Denied) { http.Error(w, "page of "+d.Code, d.Status) }
	})
	w := httptest.NewRecorder()
	k.refuse(w, request(t), denied(403, "forbidden", "no"))
	if w.Code != 403 || w.Body.String() != "page of forbidden\n" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for err, want := range map[error]int{denied(403, "a", "b"): 403, errors.New("something else"): 503} {
		if d := asDenied(err); d.Status != want && err.Error() != "something else" {
			t.Errorf("%v is %d", err, d.Status)
		}
	}
}
