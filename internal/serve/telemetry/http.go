package telemetry

import (
	"net/http"
	"strconv"
	"strings"
)

// Requests counts the requests that next answers.
func (t *Telemetry) Requests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		defer func() {
			if a.status == 0 {
				a.status = http.StatusOK
			}
			t.metrics.requests.Add(r.Context(), 1, labels("route", routeOf(r.URL.Path), "status", strconv.Itoa(a.status)))
			if a.status == http.StatusUnauthorized {
				t.metrics.strangers.Add(r.Context(), 1)
			}
		}()
		next.ServeHTTP(a, r)
	})
}

// routeOf is the route of a path, one of few: what is in a path is a stranger's.
func routeOf(path string) string {
	switch path {
	case "/", "/run", "/runs", "/capabilities", "/agents", "/events", "/audit", "/audit/head", "/healthz", "/readyz",
		"/metrics", "/openapi.json", "/mcp", "/login", "/logout":
		return path
	}
	rest, is := strings.CutPrefix(path, "/runs/")
	if !is {
		return other
	}
	_, what, more := strings.Cut(rest, "/")
	switch {
	case !more:
		return "/runs/{id}"
	case what == "events" || what == "cancel" || what == "input":
		return "/runs/{id}/" + what
	}
	return other
}

// An answer remembers its status.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader remembers the status that comes first.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush implements [http.Flusher].
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() } // the next write fails
