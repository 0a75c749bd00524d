// Package console is the service as pages: what ran, why it was denied, what is
// left to each agent, and whether the log is what was recorded.
//
// Everything that an agent wrote is untrusted here: it reaches a page through
// html/template alone, with what steers or hides made visible ([shown]), and cut
// to a size. No page has a script or a style of its own, loads anything from
// elsewhere, or needs a script to be read. A page computes nothing that a
// command computes: it asks the [Host].
package console

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/ask"
)

// Runs is what the pages need of the service: the runs that are under way or
// ended lately, of the tenant of the caller. A [service.Service] is one.
type Runs interface {
	// Runs are those in memory, the newest first.
	Runs(ctx context.Context, c *service.Caller) []service.State
	// Run returns one of them, else [service.ErrNotFound].
	Run(ctx context.Context, c *service.Caller, id string) (*service.Run, error)
	// Submit takes a request of c, as HTTP's does; the same key is the same run.
	Submit(ctx context.Context, c *service.Caller, q *service.Request, key string) (*service.Run, error)
	// Cancel ends a run that c may end.
	Cancel(ctx context.Context, c *service.Caller, id string) error
}

// Options are what the pages are made from. All but Log are needed.
type Options struct {
	Runs Runs
	Host Host
	Now  func() time.Time
	Log  *slog.Logger // what went wrong that a page only names; nil: nobody reads it
}

// console is the handler with what its pages remember.
type console struct {
	Options
	pages  map[string]*template.Template
	assets assets
	mux    *http.ServeMux

	heavy    sync.Mutex     // what takes long is done once at a time
	told     sync.Mutex     // guards what follows
	lanes    ask.LaneSurvey // as they were tried last
	lanesAt  time.Time
	verified map[string]verifiedAt // by tenant
}

// A verifiedAt is how the log was found when it was verified last.
type verifiedAt struct {
	*ask.Verification
	At   time.Time
	Took time.Duration
}

// A route is a page, and the rights that a caller needs for it: all of them. One
// without rights is refused to everybody.
type route struct {
	pattern string
	may     service.Rights
	page    page
}

// policyOfPages lets a page load its own style and script, talk to this service,
// and nothing else; no text becomes a script.
const policyOfPages = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP implements [http.Handler].
func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policyOfPages)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	c.mux.ServeHTTP(w, r)
}

// A view is a page that is ready to be written, or where to go instead.
type view struct {
	Page   string // its template
	Title  string
	Status int    // 0: 200
	Goto   string // 303 to this path of the console
	Data   any

	// What every page has.
	Nav      string
	Tenant   string
	Who      string
	ByToken  bool // it is nobody of this host
	Operates bool
	Launches bool
	Now      time.Time
	Problem  *problem
}

// A problem is what kept a page from being whole.
type problem struct{ Title, Text string }

// A page reads a request of a caller that has the rights of its route, and makes a
// view of it.
type page func(*http.Request, *service.Caller) (*view, error)

// most bounds how much a form may bring: an override has 64 KiB at most, and a
// form three times that.
const most = 256 << 10

func (c *console) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := service.CallerOf(r.Context())
		r.Body = http.MaxBytesReader(w, r.Body, most)
		var v *view
		err := service.ErrForbidden
		if caller.Can(rt.may) {
			v, err = rt.page(r, caller)
		}
		if err != nil {
			v = c.failed(r, err)
		}
		if v.Goto != "" {
			http.Redirect(w, r, v.Goto, http.StatusSeeOther)
			return
		}
		if caller != nil {
			v.Tenant, v.Who, v.ByToken = caller.Tenant, caller.Name, !ofHost(caller)
		}
		v.Operates, v.Launches, v.Now = caller.Can(service.Operate), caller.Can(service.Launch), c.Now().UTC()
		c.write(w, r, v)
	})
}

// failed is the page of an error.
func (c *console) failed(r *http.Request, err error) *view {
	v := &view{Page: "problem", Title: "Something went wrong", Status: http.StatusInternalServerError}
	var fault *ask.Error
	var wrong *ask.TextError
	var bad *badRequest
	var unavailable *service.UnavailableError
	text := "It is written to the service's log."
	switch {
	case errors.Is(err, service.ErrNotFound):
		v.Status, v.Title, text = http.StatusNotFound, "There is no such page",
			"What it was about may have been removed, or belong to another tenant."
	case errors.Is(err, service.ErrForbidden):
		v.Status, v.Title, text = http.StatusForbidden, "Not permitted",
			"Your token has not the right to do this. Whoever runs this service makes one that has: rlp token new --may."
	case errors.As(err, &bad):
		v.Status, v.Title, text = http.StatusBadRequest, "That could not be understood", bad.why
	case errors.As(err, &wrong):
		v.Status, v.Title, text = http.StatusBadRequest, "That could not be understood", wrong.Error()
	case errors.As(err, &fault):
		v.Status, v.Title, text = http.StatusUnprocessableEntity, "That could not be done", fault.Error()
	case errors.As(err, &unavailable):
		v.Status, v.Title, text = http.StatusServiceUnavailable, "Not available now", unavailable.Error()
	case errors.Is(err, context.Canceled):
		v.Status = 499
	default:
		c.Log.Error("console page", "path", r.URL.Path, "error", err.Error())
	}
	v.Problem = &problem{Title: v.Title, Text: text}
	return v
}

// A badRequest is a field of a form or of a search that is not understood.
type badRequest struct{ why string }

func (e *badRequest) Error() string { return e.why }

func (c *console) write(w http.ResponseWriter, r *http.Request, v *view) {
	var page bytes.Buffer
	if err := c.pages[v.Page].ExecuteTemplate(&page, "layout", v); err != nil {
		c.Log.Error("console page", "path", r.URL.Path, "error", err.Error())
		http.Error(w, "This page could not be made; the service's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	if v.Status != 0 {
		w.WriteHeader(v.Status)
	}
	_, _ = w.Write(page.Bytes()) // who went away does not read it
}

// ofHost reports whether a caller is a person on this host rather than a token.
func ofHost(c *service.Caller) bool { return strings.HasPrefix(c.Name, "user:") }

// whole reports whether s is made of letters that ids and names are made of.
func whole(s, letters string) bool { return s != "" && len(s) <= 128 && strings.Trim(s, letters) == "" }

const (
	lowerHex   = "0123456789abcdef-"
	nameLetter = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
)
