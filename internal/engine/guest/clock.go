package guest

import (
	"sync"
	"time"

	"runloop.dev/rlp/internal/engine/abi"
)

// A stopwatch counts a run's wall time: all that passes from its beginning on,
// but for what the host waits for a person. It tells when the time is over.
type stopwatch struct {
	over  func(wall time.Duration) // may be called more than once
	above abi.Clock                // of the run that launched this one; nil: nobody did

	mu      sync.Mutex
	given   time.Duration
	gone    time.Duration // of given, before the beginning
	wall    time.Duration // given, or less
	began   time.Time     // zero: not yet
	stopped time.Time     // zero: it goes
	waited  time.Duration
	timer   *time.Timer
	ended   bool
}

// start begins to count.
func (w *stopwatch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.wall = time.Now().Add(-w.gone), w.given
	w.timer = time.AfterFunc(w.wall-w.gone, w.ring)
}

func (w *stopwatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// ring looks whether the time is over, and comes back when it is not.
func (w *stopwatch) ring() {
	w.mu.Lock()
	left := w.left()
	if left > 0 && w.stopped.IsZero() && !w.ended {
		w.timer.Reset(left)
	}
	wall := w.wall
	w.mu.Unlock()
	if left <= 0 {
		w.over(wall)
	}
}

// left is what is left; mu is held.
func (w *stopwatch) left() time.Duration { return w.wall - w.counted() }

func (w *stopwatch) counted() time.Duration {
	now := w.stopped
	if now.IsZero() {
		now = time.Now()
	}
	return now.Sub(w.began) - w.waited
}

// look rings if the time is over: the timer may come late.
func (w *stopwatch) look() {
	w.mu.Lock()
	over := w.left() <= 0
	wall := w.wall
	w.mu.Unlock()
	if over {
		w.over(wall)
	}
}

// read is what was counted, and how long the host waited beside it.
func (w *stopwatch) read() (counted, waited time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited = w.waited
	if !w.stopped.IsZero() {
		waited += time.Since(w.stopped)
	}
	return w.counted(), waited
}

// Stop stops the watch until the function that it returns is called. The
// guest's one goroutine waits for one thing at a time.
func (w *stopwatch) Stop() (goOn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped.IsZero() {
		return func() {}
	}
	w.stopped = time.Now()
	w.timer.Stop()
	if w.above == nil {
		return sync.OnceFunc(w.goOn)
	}
	goOnAbove := w.above.Stop() // who waits for this run waits for the person, too
	return sync.OnceFunc(func() { w.goOn(); goOnAbove() })
}

func (w *stopwatch) goOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waited += time.Since(w.stopped)
	w.stopped = time.Time{}
	if !w.ended {
		w.timer.Reset(max(w.left(), 0))
	}
}

// Bound makes the wall time wall, but never more than the run was given.
func (w *stopwatch) Bound(wall time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wall = min(wall, w.given)
	if w.stopped.IsZero() && !w.ended {
		w.timer.Reset(max(w.left(), 0))
	}
}
