package journal

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Clock is the time to the millisecond, read without a system call. It runs
// until it is stopped; one serves a whole process.
type Clock struct {
	ms   atomic.Int64
	stop chan struct{}
	once sync.Once
}

// NewClock starts a clock that follows now (nil: the system's).
func NewClock(now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	c := &Clock{stop: make(chan struct{})}
	c.ms.Store(now().UnixMilli())
	go c.run(now)
	return c
}

func (c *Clock) run(now func() time.Time) {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
			c.ms.Store(now().UnixMilli())
		}
	}
}

// UnixMilli returns the time, at most a few milliseconds old.
func (c *Clock) UnixMilli() int64 { return c.ms.Load() }

// Stop ends the clock; the time stands still from then on.
func (c *Clock) Stop() { c.once.Do(func() { close(c.stop) }) }
