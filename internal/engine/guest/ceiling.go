package guest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrFull says that the runs of this process may have all the memory that there
// is for runs.
var ErrFull = errors.New("the process has no memory left for another run")

// ceiling is how much memory the runs of a process may have together. Each takes
// what it may have at most before it begins, so that none ends for what another
// has; who comes first has it first. The zero ceiling bounds nothing.
type ceiling struct {
	mu      sync.Mutex
	most    int64
	held    int64
	waiting []*seat
}

// seat is one run that waits for its memory; has is closed when it has it.
type seat struct {
	n   int64
	has chan struct{}
}

// ofItsOwn is what a run takes beside what its limit counts: what is free beside
// its memory, and what is made of its output and of an answer for a moment.
const ofItsOwn = besideFree + 3<<20

func (c *ceiling) bound(most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = max(most, 0)
}

func (c *ceiling) cut(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most == 0 {
		return n
	}
	return max(min(n, c.most-ofItsOwn), 0)
}

// room reports whether a run of at most n bytes need not wait.
func (c *ceiling) room(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most == 0 || len(c.waiting) == 0 && c.held+n+ofItsOwn <= c.most
}

// take waits until n bytes are to be had, if it may wait, and returns what gives
// them back.
func (c *ceiling) take(ctx context.Context, n int64, wait bool) (free func(), err error) {
	s := &seat{n: n + ofItsOwn, has: make(chan struct{})}
	c.mu.Lock()
	if c.most == 0 {
		c.mu.Unlock()
		return func() {}, nil
	}
	c.waiting = append(c.waiting, s)
	c.seatLocked()
	held, most := c.held, c.most
	c.mu.Unlock()
	free = sync.OnceFunc(func() { c.leave(s) })
	select {
	case <-s.has:
		return free, nil
	default:
	}
	if !wait {
		free()
		return nil, fmt.Errorf("%w: %d of %d MiB are taken, and it may have %d", ErrFull, held>>20, most>>20, n>>20)
	}
	select {
	case <-s.has:
		return free, nil
	case <-ctx.Done():
		free()
		return nil, context.Cause(ctx)
	}
}

// leave gives back what s has, or the place where it waits.
func (c *ceiling) leave(s *seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.waiting, s); at >= 0 {
		c.waiting = slices.Delete(c.waiting, at, at+1)
	} else {
		c.held -= s.n
	}
	c.seatLocked()
}

// seatLocked gives those who waited longest what they wait for.
func (c *ceiling) seatLocked() {
	for len(c.waiting) > 0 && c.held+c.waiting[0].n <= max(c.most, c.waiting[0].n) {
		s := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.held += s.n
		close(s.has)
	}
}

// Bound makes most the memory that the runs of modules of the library may have
// together; 0 bounds nothing.
func (l *Library) Bound(most int64) { l.memory.bound(most) }

// Room reports whether a run that may have n bytes could begin at once.
func (l *Library) Room(n int64) bool { return l.memory.room(l.memory.cut(n)) }

// Reserve takes the memory that the module's run may have, of what its library
// may give out, and waits for it if it may: one that runs within another must not,
// for the other waits for it. free gives it back, once the guest has stopped.
func (m *Module) Reserve(ctx context.Context, wait bool) (free func(), err error) {
	if m.ceiling == nil {
		return func() {}, nil
	}
	m.memoryBytes = m.ceiling.cut(m.memoryBytes)
	return m.ceiling.take(ctx, m.memoryBytes, wait)
}

// MemoryBytes is how much memory the module's run may have: after Reserve no more
// than there is.
func (m *Module) MemoryBytes() int64 { return m.memoryBytes }
