package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/runs"
)

// A failure is an answer that says what was wrong and what to do.
type failure struct {
	Status int          `json:"-"`
	Code   string       `json:"error"`
	Text   string       `json:"message"`
	Field  string       `json:"field,omitempty"`
	Fields []fieldError `json:"fields,omitempty"`

	RunID      string               `json:"run_id,omitempty"`
	TraceID    string               `json:"trace_id,omitempty"`
	Violations []launcher.Violation `json:"violations,omitempty"`
	Warnings   []string             `json:"warnings,omitempty"`

	after  time.Duration // Retry-After; 0: none
	allow  string        // Allow
	cause  error         // for the log
	closes bool          // the rest of the body is not read
}

type fieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (f *failure) Error() string { return f.Text }

var (
	errNoPath = &failure{
		Status: http.StatusNotFound, Code: "not_found",
		Text: "there is no such path here; GET /openapi.json lists them",
	}
	errBroke = &failure{
		Status: http.StatusInternalServerError, Code: "internal",
		Text: "the service broke while it answered; its log says where, by the X-Request-Id of this answer",
	}
	errLarge = &failure{
		Status: http.StatusTooManyRequests, Code: "busy",
		Text: "too many large bodies come at a time; send this one again in a moment", after: time.Second, closes: true,
	}
	errBodies = &failure{
		Status: http.StatusTooManyRequests, Code: "busy",
		Text: "as much of this caller as may is being read already; wait for the end of one of its requests, and send this " +
			"again", after: time.Second, closes: true,
	}
	errNobody = &failure{
		Status: http.StatusUnauthorized, Code: "unauthorized",
		Text: "nobody was proved to ask: send Authorization: Bearer TOKEN, which the operator makes with rlp token new",
	}
)

// invalid is one field that is wrong.
func invalid(field, format string, args ...any) error {
	return service.FieldErrors{{Field: field, Why: fmt.Sprintf(format, args...)}}
}

// failureOf is how an error is answered.
func failureOf(err error) *failure {
	var own *failure
	var fields service.FieldErrors
	var policy *service.ViolationError
	var large *http.MaxBytesError
	var busy *service.BusyError
	var away *service.UnavailableError
	var noRun *service.NoRunError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &fields):
		return invalidRequest(fields)
	case errors.As(err, &policy):
		return violations(policy)
	case errors.As(err, &large):
		return &failure{
			Status: http.StatusRequestEntityTooLarge, Code: "too_large",
			Text: fmt.Sprintf("a body has at most %d MiB; install the bundle with rlp agent install and name its agent",
				large.Limit>>20), closes: true,
		}
	case errors.As(err, &busy):
		return &failure{Status: http.StatusTooManyRequests, Code: "busy", Text: busy.Error(), after: max(busy.RetryAfter,
			time.Second)}
	case errors.Is(err, service.ErrDraining):
		return &failure{
			Status: http.StatusServiceUnavailable, Code: "draining",
			Text: "the service is about to end and takes nothing more; ask the one that follows it", after: 5 * time.Second,
		}
	case errors.Is(err, service.ErrForbidden):
		return &failure{Status: http.StatusForbidden, Code: "forbidden", Text: err.Error() +
			"; ask the operator for a token that may (rlp token new --may, with those of run, read, operate that it takes)"}
	case errors.As(err, &noRun):
		return &failure{
			Status: http.StatusNotFound, Code: "not_found",
			Text: noRun.Error() + "; GET /runs lists those that there are",
		}
	case errors.Is(err, service.ErrNotFound):
		return &failure{Status: http.StatusNotFound, Code: "not_found", Text: err.Error()}
	case errors.Is(err, service.ErrConflict):
		return &failure{Status: http.StatusConflict, Code: "conflict", Text: err.Error() + "; send another Idempotency-Key"}
	case errors.As(err, &away):
		return &failure{
			Status: http.StatusServiceUnavailable, Code: "unavailable", Text: away.Error(),
			after: 5 * time.Second,
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &failure{
			Status: http.StatusServiceUnavailable, Code: "unavailable",
			Text: "the request was ended before it was answered", after: time.Second,
		}
	}
	return &failure{Status: errBroke.Status, Code: errBroke.Code, Text: errBroke.Text, cause: err}
}

// invalidRequest tells all fields that are wrong, each once.
func invalidRequest(fields service.FieldErrors) *failure {
	f := &failure{Status: http.StatusBadRequest, Code: "invalid_request"}
	for _, e := range fields {
		told := fieldError{e.Field, e.Why}
		if !slices.Contains(f.Fields, told) {
			f.Fields = append(f.Fields, told)
		}
	}
	if len(f.Fields) > mostProblems {
		f.Fields = f.Fields[:mostProblems]
	}
	first := f.Fields[0]
	f.Field, f.Text = first.Field, strings.TrimPrefix(first.Field+": "+first.Message, ": ")
	return f
}

func violations(v *service.ViolationError) *failure {
	f := &failure{
		Status: http.StatusForbidden, Code: "policy_violation", RunID: v.RunID, TraceID: v.TraceID,
		Violations: v.Violations, Warnings: v.Warnings,
	}
	if f.Violations == nil {
		f.Violations = []launcher.Violation{}
	}
	f.Text = "policy refuses the run and nothing of it was executed; each violation says why, with the capability and " +
		"the layer where there is one, GET /capabilities shows what is left"
	if i := slices.IndexFunc(v.Violations, func(v launcher.Violation) bool { return v.Capability != "" }); i >= 0 {
		asked := runs.Asked{Bundle: cmp.Or(v.Agent, runs.Unknown), Flags: runs.FlagsOf("", v.Tenant)}
		f.Text += ", and so does: " + asked.Explain(v.RunID, &runs.Denial{Request: v.Violations[i].Capability})
	}
	if v.ByDoor {
		f.Text += "; what requests start from is the operator's to say: [security] run_grant in config.toml, and GET " +
			"/capabilities shows which profile it names"
	}
	return f
}

// fail answers with an error, unless an answer was begun.
func (a *responder) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := *failureOf(err)
	n := noteOf(r)
	if f.TraceID == "" {
		f.TraceID = n.trace
	}
	if f.RunID == "" {
		f.RunID = n.run
	} else {
		n.run, n.trace = f.RunID, f.TraceID
	}
	if f.cause != nil {
		a.opt.Log.LogAttrs(context.Background(), slog.LevelError, "request failed", slog.String("request_id", n.id),
			slog.String("route", n.route), slog.String("kind", fmt.Sprintf("%T", f.cause)))
	}
	h := w.Header()
	if f.after > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.after.Seconds()))))
	}
	if f.allow != "" {
		h.Set("Allow", f.allow)
	}
	if f.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="rlp"`)
	}
	if f.closes {
		h.Set("Connection", "close")
	}
	a.json(w, r, f.Status, &f)
}

// otherMethod answers a method that a path lacks.
func (a *responder) otherMethod(path string, allowed []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := noteOf(r)
		n.route, n.caller = path, service.CallerOf(r.Context())
		list := strings.Join(allowed, ", ")
		a.fail(w, r, &failure{
			Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Text: path + " takes " + list,
			allow: list,
		})
	})
}
