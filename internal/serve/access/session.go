package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Where the browser of an operator elsewhere proves who they are.
const (
	LoginPath  = "/login"  // POST token=...; GET is the form
	LogoutPath = "/logout" // POST
)

const (
	sessionLasts = 12 * time.Hour
	maxSessions  = 1024
	maxForm      = 4 << 10
)

// sessions are browsers that showed a token. They are kept in memory alone, by
// the digest of what the cookie holds.
type sessions struct {
	mu  sync.Mutex
	all map[digest]session
}

// A session is good where it began and while its token is.
type session struct {
	token *Token // nil: the operator's own
	from  string
	until time.Time
}

func newSessions() *sessions { return &sessions{all: make(map[digest]session)} }

func keyOf(cookie string) digest { return sum256([]byte("rlp session v1\x00" + cookie)) }

// begin returns what the cookie holds.
func (s *sessions) begin(new session, now time.Time) string {
	var raw [32]byte
	rand.Read(raw[:])
	cookie := base64.RawURLEncoding.EncodeToString(raw[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= maxSessions {
		s.makeRoom(now)
	}
	s.all[keyOf(cookie)] = new
	return cookie
}

// makeRoom forgets what is over, or else what would be over first.
func (s *sessions) makeRoom(now time.Time) {
	var first digest
	var at time.Time
	for k, v := range s.all {
		if !now.Before(v.until) {
			delete(s.all, k)
		} else if at.IsZero() || v.until.Before(at) {
			first, at = k, v.until
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, first)
	}
}

func (s *sessions) get(cookie string, now time.Time) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.all[keyOf(cookie)] // none is over
	return v, now.Before(v.until)
}

func (s *sessions) has(cookie string, now time.Time) bool {
	_, ok := s.get(cookie, now)
	return ok
}

func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, keyOf(cookie))
}

// cookieName is the name of the cookie. Over TLS browsers keep its prefix for
// cookies that this host set itself, for itself and for TLS alone.
func (a *Access) cookieName(r *http.Request) string {
	if r.TLS != nil || a.o.BehindProxy {
		return "__Host-rlp"
	}
	return "rlp_session"
}

// cookies are the values of every cookie that could be a session.
func (a *Access) cookies(r *http.Request) []string {
	var values []string
	for _, c := range r.CookiesNamed(a.cookieName(r)) {
		values = append(values, c.Value)
	}
	return values
}

// bySession judges a cookie.
func (a *Access) bySession(r *http.Request, cookies []string) (*proof, error) {
	over := &Denied{
		Status: http.StatusUnauthorized, Code: "unauthorized", clear: true,
		Message: "the session is over; log in again",
	}
	s, ok := a.sessions.get(cookies[0], a.o.Now())
	// A cookie goes to every port of a host: what another user of it received
	// is of no use to them.
	if !ok || len(cookies) > 1 || s.from != a.source(r) {
		return nil, over
	}
	var p *proof
	if s.token == nil {
		p = a.operatorProof("operator", "token:operator")
		p.chooses = false
	} else {
		now, err := a.o.Tokens.byID(s.token.ID)
		if err != nil || now == nil || now.secret != s.token.secret {
			return nil, over
		}
		if p, err = a.byRecord(r.Context(), now); err != nil {
			return nil, err
		}
	}
	p.session = cookies[0]
	// What is launched in a session goes on behind it, for as long as the token is.
	p.caller.Still = func() error { return a.stands(p, a.o.Now()) }
	if p.caller.Until.IsZero() || s.until.Before(p.caller.Until) {
		p.caller.Until = s.until
	}
	return p, nil
}

// login shows the form, or begins a session.
func (a *Access) login(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		a.loginPage(w, http.StatusOK, r.URL.Query().Get("next"), "")
		return
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		a.refuse(w, r, denied(http.StatusMethodNotAllowed, "bad_method", "send POST "+LoginPath))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if mime := r.Header.Get("Content-Type"); !strings.HasPrefix(mime, "application/x-www-form-urlencoded") ||
		r.ParseForm() != nil || len(r.PostForm["token"]) != 1 {
		a.refuse(w, r, denied(http.StatusBadRequest, "invalid_request", "send the field token in a form, once"))
		return
	}
	next := r.PostForm.Get("next")
	p, err := a.byToken(r, strings.TrimSpace(r.PostForm.Get("token")))
	if err != nil {
		d := asDenied(err)
		if strings.Contains(r.Header.Get("Accept"), "text/html") && d.RetryAfter == 0 {
			a.loginPage(w, d.Status, next, d.Message)
			return
		}
		a.refuse(w, r, d)
		return
	}
	now := a.o.Now()
	s := session{token: p.token, from: a.source(r), until: now.Add(sessionLasts)}
	if u := p.caller.Until; !u.IsZero() && u.Before(s.until) {
		s.until = u
	}
	for _, old := range a.cookies(r) {
		a.sessions.end(old)
	}
	http.SetCookie(w, a.cookie(r, a.sessions.begin(s, now), int(s.until.Sub(now).Seconds())))
	w.Header().Set("Cache-Control", "no-store")
	a.tell(slog.LevelInfo, "access.login", "caller", p.caller.Name, "from", s.from)
	http.Redirect(w, r, localPath(next), http.StatusSeeOther)
}

// logout ends a session.
func (a *Access) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		a.refuse(w, r, denied(http.StatusMethodNotAllowed, "bad_method", "send POST "+LogoutPath))
		return
	}
	for _, c := range a.cookies(r) {
		a.sessions.end(c)
	}
	a.dropCookie(w, r)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	http.Redirect(w, r, LoginPath, http.StatusSeeOther)
}

func (a *Access) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: a.cookieName(r), Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: r.TLS != nil || a.o.BehindProxy, SameSite: http.SameSiteStrictMode,
	}
}

func (a *Access) dropCookie(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, a.cookie(r, "", -1))
}

// localPath is where to go after logging in: a path of the service's own.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") || u.Path == LoginPath ||
		u.Path == LogoutPath {
		return "/"
	}
	return u.RequestURI()
}

// loginPage is the form. It needs nothing from elsewhere and runs nothing.
func (a *Access) loginPage(w http.ResponseWriter, status int, next, message string) {
	sum := sha256.Sum256([]byte(loginStyle))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	if message != "" {
		message = `<p role="alert">` + html.EscapeString(message) + `</p>`
	}
	fmt.Fprintf(w, loginHTML, loginStyle, message, html.EscapeString(localPath(next)))
}

// loginStyle is that of the console's pages, as far as one form needs it.
const loginStyle = `:root{color-scheme:light dark;--paper:#fbfaf7;--raised:#fff;--line:#e0dcd2;--ink:#1f1e1b;--soft:#625d54;
--bad:#a32a22;--bad-paper:#fbe9e6;--accent:#20513f;--on:#fff}
@media (prefers-color-scheme:dark){:root{--paper:#161715;--raised:#1d1f1c;--line:#363934;--ink:#ebe8e0;--soft:#a9a598;
--bad:#f2a097;--bad-paper:#3a201d;--accent:#93d1b4;--on:#10201a}}
*{box-sizing:border-box}
body{font:1rem/1.55 system-ui,sans-serif;margin:0;padding:1rem;background:var(--paper);color:var(--ink)}
main{max-width:27rem;margin:10vh auto 0;background:var(--raised);border:1px solid var(--line);border-radius:12px;
padding:.5rem 1.5rem 1rem}
h1{font-size:1.5rem;margin:1rem 0}
label{font-weight:600}
input,button{font:inherit;width:100%;padding:.55rem .7rem;margin:.3rem 0 1rem;border:1px solid var(--soft);
border-radius:7px;background:var(--paper);color:var(--ink)}
button{background:var(--accent);border-color:var(--accent);color:var(--on);font-weight:600;cursor:pointer}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
p{color:var(--soft)}
[role=alert]{color:var(--bad);background:var(--bad-paper);border-radius:7px;padding:.5rem .8rem}`

const loginHTML = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Log in · rlp</title>
<style>%s</style>
<main><h1>Log in to rlp</h1>%s
<form method="post" action="/login"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" spellcheck="false" required>
<input type="hidden" name="next" value="%s"><button>Log in</button></form>
<p>The operator makes a token with <code>rlp token new</code>. On the machine itself, the user that runs the service needs none.</p></main></html>
`
