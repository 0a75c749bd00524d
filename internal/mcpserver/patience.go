package mcpserver

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A patient answer gives its reader so long for each piece: one who takes nothing
// is given up, and holds neither a call nor what it was to be told.
type patient struct {
	http.ResponseWriter
	c        *http.ResponseController
	patience time.Duration
}

func patiently(w http.ResponseWriter, patience time.Duration) *patient {
	return &patient{w, http.NewResponseController(w), patience}
}

// Write implements [http.ResponseWriter]. Between two pieces there is no hurry.
func (p *patient) Write(piece []byte) (int, error) {
	defer p.hurry()()
	return p.ResponseWriter.Write(piece)
}

// FlushError is for [http.ResponseController].
func (p *patient) FlushError() error {
	defer p.hurry()()
	return p.c.Flush()
}

// Flush implements [http.Flusher].
func (p *patient) Flush() { _ = p.FlushError() } // the next write fails

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// hurry ends what is being written when the patience does, until rest is called.
func (p *patient) hurry() (rest func()) {
	over := make(chan struct{})
	late := time.AfterFunc(p.patience, func() {
		defer close(over)
		_ = p.c.SetWriteDeadline(time.Unix(1, 0)) // long ago; not each writer has one
	})
	return func() {
		if !late.Stop() {
			<-over
			_ = p.c.SetWriteDeadline(time.Time{})
		}
	}
}

// mostUntold bounds what waits to be told to one client of one call. What comes
// then is not told: it is in the log, and the answer counts what was denied.
const mostUntold = 16

// A teller tells a client how a run goes on, and holds up nobody who has
// something to tell.
type teller struct {
	waits chan told
	over  chan struct{}
}

// told is a record in one line, and its number.
type told struct {
	n       uint64
	message string
}

// newTeller tells by send until ctx ends, or nobody listens any more.
func newTeller(ctx context.Context, send func(context.Context, told) error) *teller {
	t := &teller{make(chan told, mostUntold), make(chan struct{})}
	go func() {
		defer close(t.over)
		for m := range t.waits {
			if ctx.Err() != nil || send(ctx, m) != nil {
				return
			}
		}
	}()
	return t
}

// tell tells m, if there is room for it.
func (t *teller) tell(m told) {
	select {
	case t.waits <- m:
	default:
	}
}

// end waits until all is told, or ctx ends. Nothing may be told behind it.
func (t *teller) end(ctx context.Context) {
	close(t.waits)
	select {
	case <-t.over:
	case <-ctx.Done():
	}
}

// progressOf tells the client of a call that wants to know.
func progressOf(req *mcp.CallToolRequest) func(context.Context, told) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return func(ctx context.Context, m told) error {
		return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(m.n), Message: m.message})
	}
}
