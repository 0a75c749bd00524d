package wasi

import (
	"context"
	"math"
	"time"
)

// A ClockID names one of WASI's clocks.
type ClockID uint32

// WASI's clocks. A guest is one thread that its host runs or not, so the two
// that count processor time count the run's.
const (
	Realtime ClockID = iota
	Monotonic
	ProcessCPU
	ThreadCPU
	numClocks
)

// A Clock is the time as one guest sees it.
type Clock interface {
	// Now is the time in nanoseconds, since 1970 or since the run began.
	// Monotonic is never 0 and never goes back. An unknown id is EINVAL.
	Now(id ClockID) (uint64, Errno)
	// Res is the resolution in nanoseconds.
	Res(id ClockID) (uint64, Errno)
	// Sleep returns nil after d, or earlier with an error when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

const (
	virtualStart = uint64(1640995200) * uint64(time.Second) // 2022-01-01T00:00:00Z
	virtualTick  = uint64(time.Microsecond)
	virtualEnd   = math.MaxInt64 - virtualStart
)

// virtualClock tells time by what the guest does and nothing else.
type virtualClock struct{ start, elapsed uint64 }

// NewVirtualClock is a clock that tells nothing about the host: it starts at
// 2022-01-01T00:00:00Z, goes on by a microsecond at each reading and by the
// whole of each sleep, which takes no time. The same run reads the same times.
func NewVirtualClock() Clock { return &virtualClock{start: virtualStart} }

// NewVirtualClockAt is a virtual clock that goes on from what another one said
// last: realtime, or 0 if it was never asked, and monotonic.
func NewVirtualClockAt(realtime, monotonic uint64) Clock {
	if realtime == 0 {
		realtime = virtualStart
	}
	return &virtualClock{start: realtime - min(monotonic, realtime), elapsed: min(monotonic, virtualEnd)}
}

func (c *virtualClock) advance(d uint64) { c.elapsed += min(d, virtualEnd-c.elapsed) }

func (c *virtualClock) Now(id ClockID) (uint64, Errno) {
	if id >= numClocks {
		return 0, EINVAL
	}
	c.advance(virtualTick)
	if id == Realtime {
		return c.start + c.elapsed, Success
	}
	return c.elapsed, Success
}

func (c *virtualClock) Res(id ClockID) (uint64, Errno) {
	if id >= numClocks {
		return 0, EINVAL
	}
	return virtualTick, Success
}

func (c *virtualClock) Sleep(ctx context.Context, d time.Duration) error {
	c.advance(uint64(max(d, 0)))
	return context.Cause(ctx)
}

// realClock is the host's.
type realClock struct{ start time.Time }

// NewRealClock is the host's clock, for a guest that was granted time.
// Monotonic counts from now.
func NewRealClock() Clock { return &realClock{start: time.Now()} }

func (c *realClock) Now(id ClockID) (uint64, Errno) {
	switch {
	case id >= numClocks:
		return 0, EINVAL
	case id == Realtime:
		return uint64(time.Now().UnixNano()), Success
	}
	return uint64(max(time.Since(c.start), 1)), Success
}

func (c *realClock) Res(id ClockID) (uint64, Errno) {
	if id >= numClocks {
		return 0, EINVAL
	}
	return 1, Success
}

func (c *realClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
