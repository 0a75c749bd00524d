package access

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// errOver is why the context of a request ended: who asked is nobody any more.
var errOver = errors.New("the caller's proof is over")

// farewell is how long a handler may write once its caller is nobody.
const farewell = 5 * time.Second

// Wrap is next for those who may ask: it refuses what another site made a
// browser send, serves /login and /logout, and puts the caller into the context
// of every other request ([service.CallerOf]). Paths that are open have no
// caller but the operator at the socket. A request whose caller's proof ends is ended with it, however long it
// would go on.
func (a *Access) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d := a.guard(r); d != nil {
			a.tell(slog.LevelWarn, "access.refused", "from", a.source(r), "why", d.Code)
			a.refuse(w, r, d)
			return
		}
		switch {
		case r.URL.Path == LoginPath:
			a.login(w, r)
			return
		case r.URL.Path == LogoutPath:
			a.logout(w, r)
			return
		case a.open[r.URL.Path] && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			next.ServeHTTP(w, a.atSocket(r))
			return
		}
		p, err := a.prove(r)
		if err != nil {
			a.refuse(w, r, asDenied(err))
			return
		}
		a.serve(w, r, p, next)
	})
}

// atSocket is r with the operator as its caller, if it came from them by the
// socket: where nobody has to prove anything, nothing else is looked at.
func (a *Access) atSocket(r *http.Request) *http.Request {
	p := peerOf(r.Context())
	if p == nil || !p.local || isForwarded(r) || r.Header["Authorization"] != nil {
		return r
	}
	if uid, state := p.user(); state != peerKnown || uid != a.o.UID && uid != 0 {
		return r
	}
	proved, err := a.byPeer(r)
	if err != nil {
		return r
	}
	return r.WithContext(service.WithCaller(r.Context(), &proved.caller))
}

func asDenied(err error) *Denied {
	var d *Denied
	if errors.As(err, &d) {
		return d
	}
	return denied(http.StatusUnauthorized, "unauthorized", "who asks could not be proved")
}

// busy refuses who has as many connections as one caller may, all in use.
func busy() *Denied {
	d := denied(http.StatusTooManyRequests, "busy",
		"as many connections as may be are in use, of this caller or of all who are known; end a request or a stream "+
			"first, and ask again")
	d.RetryAfter = 10 * time.Second
	return d
}

// serve runs next for as long as p holds.
func (a *Access) serve(w http.ResponseWriter, r *http.Request, p *proof, next http.Handler) {
	if !peerOf(r.Context()).serves(&p.caller) {
		a.refuse(w, r, busy())
		return
	}
	ctx := service.WithCaller(r.Context(), &p.caller)
	if p.token == nil && p.session == "" && p.caller.Until.IsZero() {
		next.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &lease{ResponseWriter: w}
	done := make(chan struct{})
	over := make(chan struct{})
	check := time.AfterFunc(a.lookAgain(p), func() {
		defer close(over)
		for a.still(p) == nil {
			select {
			case <-done:
				return
			case <-time.After(a.lookAgain(p)):
			}
		}
		cancel(errOver)
		a.tell(slog.LevelInfo, "access.over", "caller", p.caller.Name)
		time.AfterFunc(farewell, func() { out.over.Store(true) })
		c := http.NewResponseController(w)
		_ = c.SetReadDeadline(a.o.Now()) // the handler may be waiting for a body
		_ = c.SetWriteDeadline(a.o.Now().Add(farewell))
	})
	defer func() {
		close(done)
		if !check.Stop() {
			<-over // nothing touches w after its handler
		}
	}()
	next.ServeHTTP(out, r.WithContext(ctx))
}

// A lease is an answer that can be taken away from a handler which goes on
// writing whatever its context says, and moves its deadlines.
type lease struct {
	http.ResponseWriter
	over atomic.Bool
}

func (l *lease) Write(p []byte) (int, error) {
	if l.over.Load() {
		return 0, errOver
	}
	return l.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (l *lease) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// Flush implements [http.Flusher], for handlers that look for it.
func (l *lease) Flush() { _ = http.NewResponseController(l.ResponseWriter).Flush() } // the next write fails

// lookAgain is when to ask whether a proof still holds.
func (a *Access) lookAgain(p *proof) time.Duration {
	wait := rereadAfter
	if u := p.caller.Until; !u.IsZero() {
		wait = min(wait, u.Sub(a.o.Now()))
	}
	return max(wait, time.Millisecond)
}
