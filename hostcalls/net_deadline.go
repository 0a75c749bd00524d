package hostcalls

import (
	"context"
	"time"
)

// start is the context of a call within run that may last so long. Its cause is
// context.DeadlineExceeded once that is over.
func (d *deadline) start(run context.Context, within time.Duration) context.Context {
	if d.ctx != nil && d.run == run {
		d.timer.Reset(within)
		return d.ctx
	}
	if d.cancel != nil {
		d.cancel(nil)
	}
	ctx, cancel := context.WithCancelCause(run)
	d.run, d.ctx, d.cancel = run, ctx, cancel
	d.timer = time.AfterFunc(within, func() { cancel(context.DeadlineExceeded) })
	return ctx
}

// stop ends the call. A context whose time came serves no other.
func (d *deadline) stop() {
	if !d.timer.Stop() {
		d.ctx = nil
	}
}
