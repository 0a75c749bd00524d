package mcpserver

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostUntold bounds what waits to be told to one client of one call. What comes
// then is not told: it is in the log, and the answer counts what was denied.
const mostUntold = 16

// A teller tells a client how a run goes on, and holds up nobody who has
// something to tell. Of what is told in passing it tells one each tellEach, and
// the last of it, behind which there may be nothing for long.
type teller struct {
	now   func() time.Time
	waits chan told
	over  chan struct{}

	mu    sync.Mutex
	last  time.Time   // when something was told in passing
	held  *told       // what is told in passing and has to wait
	timer *time.Timer // of held; nil: it does not run
	ended bool
}

// told is a record in one line, and its number.
type told struct {
	n       uint64
	message string
}

// tellEach is how often a client is told in passing at most: agents decide what
// there is to tell, and how much.
const tellEach = 100 * time.Millisecond

// newTeller tells by send until ctx ends, or nobody listens any more.
func newTeller(ctx context.Context, now func() time.Time, send func(context.Context, told) error) *teller {
	t := &teller{now: now, waits: make(chan told, mostUntold), over: make(chan struct{})}
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
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = nil // it is older, and was not waited for
	t.put(m)
}

// mention tells m in passing.
func (t *teller) mention(m told) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); now.Sub(t.last) >= tellEach {
		t.last, t.held = now, nil
		t.put(m)
		return
	}
	t.held = &m
	if t.timer == nil && !t.ended {
		t.timer = time.AfterFunc(tellEach, t.late)
	}
}

// late tells what had to wait.
func (t *teller) late() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = nil
	if t.held != nil && !t.ended {
		t.put(*t.held)
		t.last, t.held = t.now(), nil
	}
}

// put has m told. The caller holds the lock.
func (t *teller) put(m told) {
	select {
	case t.waits <- m:
	default:
	}
}

// end waits until all is told, or ctx ends. Nothing may be told behind it.
func (t *teller) end(ctx context.Context) {
	t.mu.Lock()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
	close(t.waits)
	t.mu.Unlock()
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
		return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(m.n),
			Message: m.message,
		})
	}
}
