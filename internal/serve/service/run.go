package service

import (
	"context"
	"fmt"
	"sync"

	"runloop.dev/rlp/launcher"
)

// A Run is one that the service took.
type Run struct {
	id, tenant string
	caller     *Caller
	size       int64 // of its request, in bytes
	ctx        context.Context
	cancel     context.CancelCauseFunc
	inputs     *inputs // nil: it takes none
	root       *Run    // of a delegate: the run that was asked for; nil: this one
	trail      *trail
	done       chan struct{}
	key        *key // by which it can be asked for again
	unread     *unread
	held       holding

	mu      sync.Mutex
	request *Request // what it may be asked for again by, when it has ended; nil: nothing
	state   State
	kids    map[string]*Run // delegates, theirs too
	report  *launcher.Report
	err     error
}

// ID is the run's id.
func (r *Run) ID() string { return r.id }

// State is what is known now.
func (r *Run) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// StateFor is what c may know now.
func (r *Run) StateFor(c *Caller) State {
	st := r.State()
	st.told(c)
	return st
}

// Done is closed when the run has ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// Report is how the run ended, or why nothing was begun: one of the errors of
// [Host.Launch], as c may know it. It is for after Done. A report that is no longer
// kept, or that of a delegate, is [ErrNotFound].
func (r *Run) Report(c *Caller) (*launcher.Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.state.Ended() {
		return nil, fmt.Errorf("run %s has not ended", r.id)
	}
	if r.report != nil && r.report.Told != nil && !c.Can(Operate) {
		return r.report.Told, r.err
	}
	return r.report, r.err
}

// owns reports whether c asked for the run.
func (r *Run) owns(c *Caller) bool { return c.Tenant == r.tenant && c.who() == r.caller.who() }

// seen reports whether c may know of the run.
func (r *Run) seen(c *Caller) bool {
	if c == nil || c.Tenant != r.tenant {
		return false
	}
	return c.Can(Read) || c.Can(Operate) || c.Can(Launch) && r.owns(c)
}

// forgotten is r as it is kept without its report. Who holds r still has it.
func (r *Run) forgotten() *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Run{
		id: r.id, tenant: r.tenant, caller: r.caller, root: r.root, trail: r.trail, done: r.done, key: r.key,
		unread: r.unread,
		state:  r.state, err: fmt.Errorf("the report of run %s is no longer kept: %w", r.id, ErrNotFound),
	}
}

// mostAgain bounds the requests that are kept of runs that have ended, in bytes.
const mostAgain = 32 << 10

// repeatable is what is kept of a request when its run has ended; nil: it is too long,
// brought its own bundle, or its input came in turns.
func repeatable(q *Request, size int64) *Request {
	if q == nil || q.Agent == "" || q.Turns || size > mostAgain {
		return nil
	}
	return q
}

// Again is the request of a run that has ended, for who asked for it or may operate;
// nil: it is not kept, as that of a run that the service was not asked for.
func (r *Run) Again(c *Caller) *Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.request == nil || !r.state.Ended() || r.root != nil || !r.seen(c) || !r.owns(c) && !c.Can(Operate) {
		return nil
	}
	q := *r.request
	return &q
}

// keeps is about how much memory the request of a run that has ended takes.
func (r *Run) keeps() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.request == nil {
		return 0
	}
	return r.size
}
