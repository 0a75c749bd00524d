package access

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// browser is a request of the console's own pages.
func browser(t testing.TB, method, path, from string, form url.Values, cookies ...*http.Cookie) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Host = "127.0.0.1:8770"
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://127.0.0.1:8770")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return withPeer(r, from)
}

// logIn begins a session and returns its cookie; nil if it did not begin.
func logIn(t testing.TB, h http.Handler, token, from string) *http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, browser(t, "POST", LoginPath, from, url.Values{"token": {token}, "next": {"/runs?x=1"}}))
	if w.Code != http.StatusSeeOther {
		return nil
	}
	if w.Header().Get("Location") != "/runs?x=1" {
		t.Errorf("leads to %q", w.Header().Get("Location"))
	}
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%v", cookies)
	}
	return cookies[0]
}

func whoAsks(h *string) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { *h = service.CallerOf(r.Context()).Name })
}

func visit(t testing.TB, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A browser that showed a token has what the token has, for as long as it has
// it, from where it showed it.
func TestSessions(t *testing.T) {
	k := kitOf(t, nil)
	made, text := k.token(t, nil)
	who := ""
	h := k.Wrap(whoAsks(&who))
	const here, elsewhere = "192.0.2.1", "192.0.2.2"
	cookie := logIn(t, h, text, here)
	if cookie == nil {
		t.Fatal("control: the token begins no session")
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" ||
		strings.Contains(cookie.Value, text[16:30]) || cookie.MaxAge <= 0 {
		t.Errorf("%+v", cookie)
	}
	if w := visit(t, h, browser(t, "GET", "/runs", here, nil, cookie)); w.Code != 200 || who != "token:ci" {
		t.Fatalf("control: %d %q", w.Code, who)
	}
	other := &http.Cookie{Name: cookie.Name, Value: strings.Repeat("A", 43)}
	for name, r := range map[string]*http.Request{
		"no cookie":           browser(t, "GET", "/runs", here, nil),
		"another cookie":      browser(t, "GET", "/runs", here, nil, other),
		"two cookies":         browser(t, "GET", "/runs", here, nil, cookie, other),
		"two, the other way":  browser(t, "GET", "/runs", here, nil, other, cookie),
		"from elsewhere":      browser(t, "GET", "/runs", elsewhere, nil, cookie),
		"the token as cookie": browser(t, "GET", "/runs", here, nil, &http.Cookie{Name: cookie.Name, Value: text}),
		"the cookie as token": withPeer(bearer(t, cookie.Value), here),
		"another name":        browser(t, "GET", "/runs", here, nil, &http.Cookie{Name: "__Host-rlp", Value: cookie.Value}),
	} {
		who = ""
		if w := visit(t, h, r); who != "" || w.Code != http.StatusSeeOther && w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %q", name, w.Code, who)
		}
	}
	// The operator's own connection makes a bad cookie no better.
	r := asUser(browser(t, "GET", "/runs", here, nil, other), 1000)
	if w := visit(t, h, r); w.Code == 200 || !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("a bad cookie of the operator: %d %v", w.Code, w.Header())
	}
	if _, err := k.store.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	if w := visit(t, h, browser(t, "GET", "/runs", here, nil, cookie)); w.Code == 200 {
		t.Error("a session outlives its token")
	}
}

// Another user of this machine who got the cookie, which goes to every port, is
// another user.
func TestASessionIsOfItsUser(t *testing.T) {
	k := kitOf(t, nil)
	_, text := k.token(t, nil)
	who := ""
	h := k.Wrap(whoAsks(&who))
	w := visit(t, h, asUser(browser(t, "POST", LoginPath, "127.0.0.1", url.Values{"token": {text}}), 2000))
	cookie := w.Result().Cookies()[0]
	if w := visit(t, h, asUser(browser(t, "GET", "/runs", "127.0.0.1", nil, cookie), 2000)); w.Code != 200 ||
		who != "token:ci" {
		t.Fatalf("control: %d %q", w.Code, who)
	}
	if w := visit(t, h, asUser(browser(t, "GET", "/runs", "127.0.0.1", nil, cookie), 2001)); w.Code == 200 {
		t.Error("another user has the session")
	}
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kitOf(t, nil)
		_, text := k.token(t, nil)
		_, short := k.token(t, func(o *Token) { o.Name, o.Expires = "short", time.Now().Add(time.Hour) })
		who := ""
		h := k.Wrap(whoAsks(&who))
		const here = "192.0.2.1"
		long, brief, left := logIn(t, h, text, here), logIn(t, h, short, here), logIn(t, h, text, here)
		open := func(c *http.Cookie) bool {
			return visit(t, h, browser(t, "GET", "/runs", here, nil, c)).Code == 200
		}
		if !open(long) || !open(brief) || !open(left) {
			t.Fatal("control: they do not begin")
		}
		w := visit(t, h, browser(t, "POST", LogoutPath, here, nil, left))
		if w.Code != http.StatusSeeOther || open(left) || !open(long) {
			t.Error("logging out ends another session, or none")
		}
		if visit(t, h, browser(t, "GET", LogoutPath, here, nil, long)).Code != http.StatusMethodNotAllowed || !open(long) {
			t.Error("a link logs out")
		}
		stream := follow(t, k, browser(t, "GET", "/events", here, nil, brief))
		if stream < 59*time.Minute || stream > 61*time.Minute {
			t.Errorf("a stream of a session ends after %v", stream)
		}
		if open(brief) || !open(long) {
			t.Error("a session outlives its token, or ends before")
		}
		time.Sleep(sessionLasts)
		if open(long) {
			t.Error("a session does not end")
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	s := newSessions()
	now := time.Unix(1_000_000_000, 0)
	first := s.begin(session{until: now.Add(time.Minute)}, now)
	last := ""
	for i := range 2 * maxSessions {
		last = s.begin(session{from: strconv.Itoa(i), until: now.Add(time.Hour + time.Duration(i))}, now)
	}
	if len(s.all) != maxSessions || s.has(first, now) || !s.has(last, now) {
		t.Errorf("%d are kept; the oldest %v, the newest %v", len(s.all), s.has(first, now), s.has(last, now))
	}
}

// Guesses in the form are slowed as others are, and no session begins by a form
// of another site.
func TestGuessesInTheForm(t *testing.T) {
	k := kitOf(t, nil)
	_, text := k.token(t, nil)
	h := k.Wrap(http.NotFoundHandler())
	if logIn(t, h, text, "192.0.2.1") == nil {
		t.Fatal("control: the token begins no session")
	}
	evil := browser(t, "POST", LoginPath, "192.0.2.1", url.Values{"token": {text}})
	evil.Header.Set("Origin", "https://evil.example")
	if w := visit(t, h, evil); w.Code != http.StatusForbidden || len(w.Result().Cookies()) != 0 {
		t.Errorf("a form of another site: %d", w.Code)
	}
	for name, form := range map[string]url.Values{"none": {}, "two": {"token": {text, text}}} {
		if w := visit(t, h, browser(t, "POST", LoginPath, "192.0.2.1", form)); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	asQuery := browser(t, "POST", LoginPath+"?token="+text, "192.0.2.1", url.Values{})
	if w := visit(t, h, asQuery); w.Code != http.StatusBadRequest {
		t.Errorf("a token in the address: %d", w.Code)
	}
	for range freeTries {
		if w := visit(t, h, browser(t, "POST", LoginPath, "198.51.100.1",
			url.Values{"token": {"x<script>"}})); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(),
			"<script>") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := visit(t, h, browser(t, "POST", LoginPath, "198.51.100.1",
		url.Values{"token": {text}})); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d", w.Code)
	}
}

// After logging in a browser goes to a page of the service, and nowhere else.
func TestWhereLoginLeads(t *testing.T) {
	for next, want := range map[string]string{
		"/": "/", "/runs?x=1": "/runs?x=1", "/runs/1#x": "/runs/1",
		"": "/", "https://evil.example/": "/", "//evil.example/": "/", `/\evil.example/`: "/", `\\evil.example`: "/",
		"/\tevil": "/", "javascript:alert(1)": "/", "runs": "/",
		"/login": "/", "/logout": "/", "///evil.example": "/", "http:/x": "/", "/%zz": "/",
	} {
		if got := localPath(next); got != want {
			t.Errorf("%q leads to %q", next, got)
		}
	}
}

// A person who opens the console is led to the form; a program is told.
func TestTheForm(t *testing.T) {
	k := kitOf(t, nil)
	h := k.Wrap(http.NotFoundHandler())
	w := visit(t, h, browser(t, "GET", "/runs?a=b&c=d", "192.0.2.1", nil))
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/login?next=%2Fruns%3Fa%3Db%26c%3Dd" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	w = visit(t, h, browser(t, "GET", `/login?next=/"><script>`, "192.0.2.1", nil))
	if w.Code != 200 || strings.Contains(w.Body.String(), "<script>") ||
		!strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	_, style, _ := strings.Cut(w.Body.String(), "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style)) // a browser takes that style, and no other
	if csp := w.Header().Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") ||
		!strings.Contains(csp, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("the policy of the form is %s", csp)
	}
	if w := visit(t, h, request(t)); w.Code != http.StatusUnauthorized {
		t.Errorf("%d", w.Code)
	}
}

// Who is judged by a certificate is told what is wrong with it: no form helps.
func TestACertificateIsLedToNoForm(t *testing.T) {
	ours := newAuthority(t, "our CA")
	cert, _, _, _ := ours.sign("browser", nil, false)
	k := kitOf(t, func(o *Options) { o.ClientCAs = pool(ours) })
	h := k.Wrap(http.NotFoundHandler())
	r := browser(t, "GET", "/runs", "192.0.2.1", nil)
	r.TLS = &tls.ConnectionState{}
	if w := visit(t, h, r); w.Code != http.StatusSeeOther {
		t.Fatalf("control: %d", w.Code)
	}
	r = browser(t, "GET", "/runs", "192.0.2.1", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	if w := visit(t, h, r); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(),
		"rlp token new --cert") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
