package access

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// Denied is why a request is not answered. Its message says what to do, and
// nothing of what there is.
type Denied struct {
	Status     int // of HTTP
	Code       string
	Message    string
	RetryAfter time.Duration // 0: none
	clear      bool          // the cookie that came is over
	location   string        // where a browser may go instead
}

func (d *Denied) Error() string { return d.Message }

// Unwrap is [service.ErrForbidden].
func (d *Denied) Unwrap() error { return service.ErrForbidden }

func denied(status int, code, message string) *Denied {
	return &Denied{Status: status, Code: code, Message: message}
}

func (a *Access) unauthorized(message string) *Denied {
	return denied(http.StatusUnauthorized, "unauthorized", message)
}

// needsToken refuses who brought no proof; that is no attempt.
func (a *Access) needsToken(r *http.Request, why string) *Denied {
	a.tell(slog.LevelInfo, "access.anonymous", "from", a.source(r), "why", why)
	return a.unauthorized(why + ": send Authorization: Bearer TOKEN, which the operator makes with rlp token new")
}

// refuse answers a request that is not let in.
func (a *Access) refuse(w http.ResponseWriter, r *http.Request, d *Denied) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if d.clear {
		a.dropCookie(w, r)
	}
	if d.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(d.RetryAfter.Seconds()))))
	}
	if d.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="rlp"`)
	}
	switch {
	case d.location != "":
		http.Redirect(w, r, d.location, http.StatusTemporaryRedirect)
	case d.Status == http.StatusUnauthorized && wantsPage(r):
		h.Del("WWW-Authenticate")
		http.Redirect(w, r, LoginPath+"?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
	case a.o.Refuse != nil:
		a.o.Refuse(w, r, d)
	default:
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(d.Status)
		body, _ := json.Marshal(map[string]string{"error": d.Code, "message": d.Message}) // strings always have a form
		fmt.Fprintf(w, "%s\n", body)
	}
}

// wantsPage reports whether a browser's user looks at a page and can log in. Who
// shows a certificate is judged by that, and would be led to the form for ever.
func wantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && len(r.Header["Authorization"]) == 0 &&
		(r.TLS == nil || len(r.TLS.PeerCertificates) == 0) && r.Header.Get("Sec-Fetch-Mode") != "cors" &&
		strings.Contains(r.Header.Get("Accept"), "text/html")
}
