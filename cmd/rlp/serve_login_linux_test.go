package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A visitor is a browser of somebody elsewhere: it keeps cookies, follows
// redirects of the service itself, and says what it is about as browsers do.
type visitor struct {
	*http.Client
	t    *testing.T
	base string
}

func newVisitor(t *testing.T, base string, by http.RoundTripper) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &visitor{&http.Client{Transport: by, Jar: jar, CheckRedirect: stay}, t, base}
}

// A visit is what a browser got.
type visit struct {
	*http.Response
	text string
}

// visit asks for a page, or sends a form; change may change the head of it.
func (v *visitor) visit(method, path string, form url.Values, change func(http.Header)) visit {
	v.t.Helper()
	answer := v.open(method, path, form, change)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return visit{answer, string(text)}
}

func (v *visitor) open(method, path string, form url.Values, change func(http.Header)) *http.Response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header = http.Header{
		"Via": {"1.1 elsewhere"}, "Accept": {"text/html,application/xhtml+xml"},
		"Sec-Fetch-Site": {"same-origin"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"},
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", v.base)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r.Header)
	}
	answer, err := v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer
}

// session is the cookie that the browser would send, "" if none.
func (v *visitor) session() string {
	v.t.Helper()
	at, err := url.Parse(v.base)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range v.Jar.Cookies(at) {
		if strings.Contains(c.Name, "rlp") {
			return c.Name + "=" + c.Value
		}
	}
	return ""
}

// logIn logs in, and is the cookie as the service set it.
func (v *visitor) logIn(token string) *http.Cookie {
	v.t.Helper()
	got := v.visit(http.MethodPost, "/login", url.Values{"token": {token}, "next": {"/ui/agents"}}, nil)
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/ui/agents" || len(got.Cookies()) != 1 ||
		got.Header.Get("Cache-Control") != "no-store" {
		v.t.Fatalf("logging in: %d %v %s", got.StatusCode, got.Header, got.text)
	}
	return got.Cookies()[0]
}

// shut holds that no page shows anything, and that none was kept by a browser.
func (v *visitor) shut(what string) {
	v.t.Helper()
	for _, path := range []string{"/", "/ui/agents", "/ui/audit", "/ui/log", "/runs", "/audit", "/events"} {
		got := v.visit(http.MethodGet, path, nil, nil)
		if got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/login?next=") ||
			got.Header.Get("Cache-Control") != "no-store" || strings.Contains(got.text, "probe") {
			v.t.Errorf("%s: %s is shown: %d %v %s", what, path, got.StatusCode, got.Header, got.text)
		}
	}
}

// shown holds that pages are shown, and kept by nobody on the way.
func (v *visitor) shown(what string) {
	v.t.Helper()
	for path, has := range map[string]string{
		"/": "probe", "/ui/agents": "probe", "/ui/agents/probe/policy": "probe",
		"/ui/audit": "probe", "/ui/log": "Verify", "/ui/lanes": "lane", "/runs": `"agent":"probe"`, "/audit": "run.start",
		"/capabilities": "families",
	} {
		got := v.visit(http.MethodGet, path, nil, nil)
		if got.StatusCode != http.StatusOK || got.Header.Get("Cache-Control") != "no-store" || !strings.Contains(got.text,
			has) {
			v.t.Errorf("%s: %s: %d %v, without %q: %s", what, path, got.StatusCode, got.Header, has, got.text)
		}
	}
}

// Whoever shows a token in a browser has a session until they leave, and what
// other pages have the browser send changes nothing of it.
//
//rlp:holds K71
func TestLoginInABrowser(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	s, ours, _ := m.overTLS(t)
	if r := start(t, s.env, "rlp", "launch", "--remote", "probe", "--", "args"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	token, id := s.newToken(t, "--name", "ana", "--may", "read")
	tls := strings.Replace(s.said.Addresses[1], "0.0.0.0", "127.0.0.2", 1)
	v := newVisitor(t, tls, ours.client("", 0).Transport)
	v.shut("nobody")
	if got := v.visit(http.MethodGet, "/login?next=%2F", nil, nil); got.StatusCode != 200 || !strings.Contains(got.text,
		`action="/login"`) || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the form: %d %v %s", got.StatusCode, got.Header, got.text)
	}
	if got := v.visit(http.MethodPost, "/login", url.Values{"token": {token + "a"}}, nil); got.StatusCode != 401 ||
		len(got.Cookies()) != 0 || strings.Contains(got.text, token) {
		t.Errorf("another token: %d %s", got.StatusCode, got.text)
	}

	// The cookie is new, whatever the browser was made to send before.
	planted := "__Host-rlp=" + strings.Repeat("A", 43)
	jarOf, err := url.Parse(tls)
	if err != nil {
		t.Fatal(err)
	}
	v.Jar.SetCookies(jarOf, []*http.Cookie{{Name: "__Host-rlp", Value: strings.Repeat("A", 43), Path: "/", Secure: true}})
	c := v.logIn(token)
	if c.Name != "__Host-rlp" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" ||
		c.Domain != "" || c.MaxAge <= 0 || c.MaxAge > 12*60*60 {
		t.Errorf("the cookie: %+v", c)
	}
	if v.session() == planted || strings.Contains(v.session(), secretOf(token)) {
		t.Errorf("the session is %s", v.session())
	}
	v.shown("logged in")
	first := v.session()
	v.logIn(token)
	for name, old := range map[string]string{"planted": planted, "of the login before": first} {
		w := newVisitor(t, tls, v.Transport)
		got := w.visit(http.MethodGet, "/ui/agents", nil, func(h http.Header) { h.Set("Cookie", old) })
		if got.StatusCode != http.StatusSeeOther {
			t.Errorf("a session that was %s: %d", name, got.StatusCode)
		}
	}

	// Pages of others: no logging out, no logging in as somebody else.
	for name, change := range map[string]func(http.Header){
		"another origin": func(h http.Header) { h.Set("Origin", "https://evil.example") },
		"another port":   func(h http.Header) { h.Set("Origin", "https://127.0.0.2:1") },
		"no origin":      func(h http.Header) { h.Set("Origin", "null") },
		"another site":   func(h http.Header) { h.Set("Sec-Fetch-Site", "cross-site") },
		"the same site":  func(h http.Header) { h.Set("Sec-Fetch-Site", "same-site") },
		"one of old":     func(h http.Header) { h.Del("Sec-Fetch-Site"); h.Set("Origin", "http://evil.example") },
	} {
		for _, path := range []string{"/logout", "/login"} {
			if got := v.visit(http.MethodPost, path, url.Values{"token": {token}},
				change); got.StatusCode != http.StatusForbidden || len(got.Cookies()) != 0 {
				t.Errorf("%s: %s: %d %v", name, path, got.StatusCode, got.Header)
			}
		}
	}
	if got := v.visit(http.MethodGet, "/logout", nil, nil); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a link to /logout: %d", got.StatusCode)
	}
	v.shown("after what others sent")

	// Leaving.
	last := v.session()
	got := v.visit(http.MethodPost, "/logout", nil, nil)
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/login" || v.session() != "" ||
		!strings.Contains(got.Header.Get("Clear-Site-Data"), "cache") {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	v.shut("after leaving")
	v.Jar.SetCookies(jarOf, []*http.Cookie{{
		Name: c.Name, Value: strings.TrimPrefix(last, c.Name+"="), Path: "/",
		Secure: true,
	}})
	v.shut("with the cookie of before")

	// The end of the token is the session's, and that of what is open by it.
	v.logIn(token)
	stream := v.open(http.MethodGet, "/events", nil, nil)
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("control: %d", stream.StatusCode)
	}
	s.revoke(t, id)
	_, _ = io.Copy(io.Discard, stream.Body) // until it is over
	stream.Body.Close()
	soon(t, "the session ends with its token", func() bool {
		return v.visit(http.MethodGet, "/ui/agents", nil, nil).StatusCode != http.StatusOK
	})
	v.shut("revoked")
	if got := v.visit(http.MethodPost, "/login", url.Values{"token": {token}}, nil); got.StatusCode != 401 ||
		!strings.Contains(got.text, "revoked") {
		t.Errorf("%d %s", got.StatusCode, got.text)
	}
	if text := s.own(t); strings.Contains(text, secretOf(token)) ||
		strings.Contains(text, strings.TrimPrefix(last, c.Name+"=")) {
		t.Error("the log has the token, or a cookie")
	}
}

// A session ends when its token does, and its cookie says so.
func TestASessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	s := h.serving(t)
	if r := start(t, h.env, "rlp", "launch", "--remote", "probe", "--", "args"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	token, id := h.newToken(t, "--name", "ana", "--may", "read", "--expires", "1h")
	v := newVisitor(t, s.said.Addresses[1], http.DefaultTransport)
	c := v.logIn(token)
	if c.Name != "rlp_session" || !c.HttpOnly || c.Secure || c.SameSite != http.SameSiteStrictMode || c.MaxAge <= 0 ||
		c.MaxAge > 60*60 {
		t.Errorf("on this machine: %+v", c)
	}
	v.shown("before")
	record := filepath.Join(h.home, "tokens", id+".toml")
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	over := regexp.MustCompile(`(?m)^(created|expires) = .*$`).ReplaceAllStringFunc(string(text),
		func(line string) string {
			key, _, _ := strings.Cut(line, " ")
			back := map[string]time.Duration{"created": -2 * time.Hour, "expires": -time.Hour}[key]
			return key + " = " + time.Now().UTC().Add(back).Format(time.RFC3339)
		})
	if err := os.WriteFile(record, []byte(over), 0o600); err != nil || over == string(text) {
		t.Fatal(err)
	}
	soon(t, "it ends", func() bool { return v.visit(http.MethodGet, "/ui/agents", nil, nil).StatusCode != http.StatusOK })
	v.shut("expired")
}
