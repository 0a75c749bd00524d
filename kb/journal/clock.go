package journal

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A Clock is the time to the millisecond, read without a system call. It runs
// until it is stopped; one serves a whole process. Where nobody looks at it for a
// while it sleeps: a thousand runs that wait keep no processor awake.
type Clock struct {
	ms   atomic.Int64 // or asleep
	now  func() time.Time
	wake chan struct{}
	stop chan struct{}
	once sync.Once
}

const (
	// asleep stands for a time that is not followed: who reads it asks now.
	asleep = math.MinInt64

	// awake is how many milliseconds a clock runs after it was last woken: to be
	// woken takes microseconds, and so at most a ten thousandth of the time.
	awake = 50
)

// NewClock starts a clock that follows now (nil: the system's).
func NewClock(now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	c := &Clock{now: now, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	c.ms.Store(now().UnixMilli())
	go c.run()
	return c
}

func (c *Clock) run() {
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for left := awake; ; {
		select {
		case <-c.stop:
			c.ms.CompareAndSwap(asleep, c.now().UnixMilli())
			return
		case <-c.wake:
			left = awake
			t.Reset(time.Millisecond)
		case <-t.C:
			if left--; left > 0 {
				c.ms.Store(c.now().UnixMilli())
				continue
			}
			t.Stop()
			c.ms.Store(asleep)
		}
	}
}

// UnixMilli returns the time, at most a few milliseconds old.
func (c *Clock) UnixMilli() int64 {
	if ms := c.ms.Load(); ms != asleep {
		return ms
	}
	return c.woken()
}

// woken has the clock run again, and returns the time.
func (c *Clock) woken() int64 {
	ms := c.now().UnixMilli()
	if !c.ms.CompareAndSwap(asleep, ms) {
		return max(c.ms.Load(), ms) // another was faster, or it is stopped; asleep is before any time
	}
	select {
	case c.wake <- struct{}{}:
	default: // it is being told already
	}
	return ms
}

// Stop ends the clock; the time stands still from then on.
func (c *Clock) Stop() { c.once.Do(func() { close(c.stop) }) }
