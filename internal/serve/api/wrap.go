package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// An answer counts what is written, and holds no more of it than its caller's
// share: whoever does not read loses the answers that would be more.
type answer struct {
	http.ResponseWriter
	note   *note
	shares *service.Shares
	status int
	bytes  int64
	lost   bool
	body   bool // the request has one
	cut    atomic.Bool
}

// cutOff ends the answer soon, whoever reads it: others need the memory. It is for
// other goroutines, while the answer is being made.
func (a *answer) cutOff() {
	a.cut.Store(true)
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) // a write that is under way ends
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
	// Who may not, or not more, keeps no place. Whoever still sends would lose the
	// answer by that, and waits until all was read.
	if !a.body && (status == http.StatusUnauthorized || status == http.StatusTooManyRequests) {
		a.Header().Set("Connection", "close")
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.cut.Load() {
		a.lost = true
		return 0, errNotTaken
	}
	if c := a.note.caller; c != nil && int64(len(p)) > max(freePiece, a.note.held) { // what anybody may read is short
		leave, err := a.shares.Take(c.Key(), int64(len(p)))
		if err != nil {
			a.lost = true
			return 0, errNotTaken
		}
		defer leave()
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// errNotTaken says that a caller takes too few of its answers.
var errNotTaken = errors.New("too many answers of this caller are not taken")

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush implements [http.Flusher], for handlers that look for it.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() } // the next write fails

// watch is outermost: what every answer has, the time that its request may take to
// arrive, the line of the log, and panics.
func (s *server) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := s.Now()
		n := &note{id: newID()}
		a := &answer{ResponseWriter: w, note: n, shares: s.answers, body: r.Body != nil && r.Body != http.NoBody}
		r = r.WithContext(service.WithCut(context.WithValue(r.Context(), noteKey{}, n), a.cutOff))
		r = r.WithContext(service.WithNames(r.Context(), slog.String("request_id", n.id)))
		n.trace, _ = traceOf(r)
		defaults(a.Header(), n.id)
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(time.Time{}) // that of the request before on this connection
		s.timely(w, r)
		defer func() {
			if what := recover(); what != nil {
				s.broke(a, r, n, what)
			}
			if a.status < http.StatusInternalServerError && a.status != 0 {
				_ = c.SetWriteDeadline(s.Now().Add(s.Patience)) // what is still in the buffer
			}
			s.log(r, a, n, began)
			if a.status >= http.StatusBadRequest {
				s.readOut(r)
			}
			if a.lost {
				panic(http.ErrAbortHandler) // it must not look whole
			}
		}()
		if len(r.TransferEncoding) > 0 { // beside it a length may have stood, by which a proxy would end the body elsewhere
			a.Header().Set("Connection", "close")
		}
		next.ServeHTTP(a, r)
	})
}

// defaults are the headers of every answer; pages have their own policy instead.
func defaults(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// broke answers for a handler that panicked. What it panicked with may quote a
// request, so that only the runtime's own words are logged.
func (s *server) broke(a *answer, r *http.Request, n *note, what any) {
	if err, is := what.(error); is && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	text := fmt.Sprintf("a panic of type %T", what)
	var fault runtime.Error
	if err, is := what.(error); is && errors.As(err, &fault) {
		text = fault.Error()
	}
	s.Log.LogAttrs(context.Background(), slog.LevelError, "a request broke the service", slog.String("request_id", n.id),
		slog.String("route", n.route),
		slog.String("what", text), slog.String("where", string(debug.Stack())))
	if a.status != 0 {
		panic(http.ErrAbortHandler) // the answer was begun, and must not look whole
	}
	s.fail(a, r, errBroke)
}

// log writes the line of a request.
func (s *server) log(r *http.Request, a *answer, n *note, began time.Time) {
	attrs := []slog.Attr{
		slog.String("request_id", n.id), slog.String("method", methodWord(r.Method)), slog.String("route", n.route),
		slog.Int("status", a.status),
		slog.Int64("bytes", a.bytes), slog.Float64("ms", float64(s.Now().Sub(began).Microseconds())/1000),
	}
	if n.caller != nil {
		attrs = append(attrs, slog.String("tenant", n.caller.Tenant), slog.String("caller", n.caller.Name))
	}
	if n.run != "" {
		attrs = append(attrs, slog.String("run_id", n.run))
	}
	if n.trace != "" {
		attrs = append(attrs, slog.String("trace_id", n.trace))
	}
	level := slog.LevelInfo
	if a.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	s.Log.LogAttrs(context.Background(), level, "request", attrs...)
}

// methodWord is a method that there is: the log holds no words of strangers.
func methodWord(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions,
		http.MethodPatch:
		return m
	}
	return "other"
}
