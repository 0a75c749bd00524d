package abi

import (
	"context"
	"time"
)

// A Clock is what a run's wall time is counted by, as a host function may touch
// it: it can say that a while is not the guest's, and leave it less time than its
// launch did, never more.
type Clock interface {
	// Stop stops the clock until the function that it returns is called: for as
	// long as the host waits for a person. What a guest can cause by itself is no
	// reason to stop it, or the guest would be without a deadline.
	Stop() (goOn func())
	// Bound makes the run's wall time wall, from its beginning on, but never more
	// than it was given at its launch.
	Bound(wall time.Duration)
}

type clockKey struct{}

// WithClock is ctx of a run that c counts.
func WithClock(ctx context.Context, c Clock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// ClockOf is the clock of the run that ctx belongs to; one that counts nothing
// where there is none.
func ClockOf(ctx context.Context) Clock {
	if c, ok := ctx.Value(clockKey{}).(Clock); ok {
		return c
	}
	return uncounted{}
}

type uncounted struct{}

func (uncounted) Stop() (goOn func()) { return func() {} }
func (uncounted) Bound(time.Duration) {}
