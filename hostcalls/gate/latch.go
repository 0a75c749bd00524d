package gate

import (
	"errors"
	"sync/atomic"

	"runloop.dev/rlp/caps"
)

// ErrClosed says that the gate was closed: the run is over.
var ErrClosed = errors.New("the run is over, and its record is closed")

// A latch keeps two goroutines apart: the guest's, which enters and leaves, and
// the one that shuts it because the guest did not stop when it was told to. Entering
// costs each call, shutting a run that was left behind: so the guest's goroutine
// writes its word without a fence, and who shuts has all processors pass one.
// Both of the guest's are small enough to be inlined where they are called.
type latch struct {
	inside atomic.Uint32 // how often it was entered and not left; the guest's goroutine alone writes it
	shut   atomic.Bool
	left   chan struct{} // takes one without a reader
}

func newLatch() latch { return latch{left: make(chan struct{}, 1)} }

// enter is true when what follows, up to leave, is done before anybody has shut
// the latch, and false once that is so. It may be entered again from within.
func (l *latch) enter() bool {
	add(&l.inside, 1)
	return !l.shut.Load() || l.late()
}

// late leaves a latch that was shut when it was entered.
//
//go:noinline
func (l *latch) late() bool {
	l.leave()
	return false
}

func (l *latch) leave() {
	add(&l.inside, ^uint32(0))
	if l.shut.Load() {
		l.tell()
	}
}

//go:noinline
func (l *latch) tell() {
	select {
	case l.left <- struct{}{}:
	default: // it was told, and has not looked yet
	}
}

// close shuts the latch and waits until nobody is inside. What was done there
// happens before its return, and nothing after it. ended is closed when the other
// goroutine ends, which may be by a panic from within; nil: it has ended.
func (l *latch) close(ended <-chan struct{}) {
	l.shut.Store(true)
	if ended == nil {
		return
	}
	fence() // whoever is inside is seen there, and whoever comes sees that it is shut
	for l.inside.Load() != 0 {
		select {
		case <-l.left:
		case <-ended:
			return
		}
	}
}

// over refuses r, since the gate is closed.
func over(r *caps.Request) Answer {
	return Answer{Denial: Denial{Request: *r, Code: caps.AuditUnavailable}}
}

// Close ends the gate, whatever the guest's goroutine is about: a request that is
// being decided is decided and recorded first, and none after it. ended is closed
// when that goroutine ends; nil: it has. What note does is recorded for whoever
// closes, who is the only one left to use the sink.
func (g *Gate) Close(ended <-chan struct{}) (note func(Note) error) {
	g.latch.close(ended)
	return g.note
}
