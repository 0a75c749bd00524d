package db

import (
	"fmt"
	"sync"
	"time"

	"runloop.dev/rlp/kb/wire"
)

const (
	maxSessions = 4
	keepSession = time.Minute // that nobody asks to go on
)

// A View is what a session reads from, and where it is.
type View interface{ Discard() }

// Sessions are views of one moment of the database, of which each is read page by
// page, and by one request at a time.
type Sessions struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]session
}

type session struct {
	View
	next uint64 // page
	used time.Time
}

// Begin gives a new session its number, unless too many of what they are for are open.
func (s *Sessions) Begin(what string) (id uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(func(o session) bool { return time.Since(o.used) > keepSession })
	if len(s.open) >= maxSessions {
		return 0, fmt.Errorf("%w: %d %s are under way", wire.ErrUnavailable, len(s.open), what)
	}
	s.last++
	return s.last, nil
}

// Take takes a session out, if it is there and comes to this page next.
func (s *Sessions) Take(id, page uint64) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.open[id]
	if !ok || o.next != page || time.Since(o.used) > keepSession {
		return nil, false
	}
	delete(s.open, id)
	return o.View, true
}

// Put puts a session back, which has read a page.
func (s *Sessions) Put(id, page uint64, v View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[uint64]session{}
	}
	s.open[id] = session{v, page + 1, time.Now()}
}

// EndAll gives all sessions up.
func (s *Sessions) EndAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(func(session) bool { return true })
}

// end gives up those that are over; the caller holds s.mu.
func (s *Sessions) end(over func(o session) bool) {
	for id, o := range s.open {
		if over(o) {
			o.Discard()
			delete(s.open, id)
		}
	}
}
