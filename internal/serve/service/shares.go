package service

import (
	"errors"
	"sync"
)

var (
	// ErrShareUsed says that whoever asks has used up their share.
	ErrShareUsed = errors.New("this caller's share is in use")
	// ErrAllUsed says that there is no more for anybody.
	ErrAllUsed = errors.New("all of it is in use")
)

// Shares are a bounded amount of something, of which each caller has a part at
// most: connections, streams, requests, bytes.
type Shares struct {
	most, each int64
	first      bool

	mu  sync.Mutex
	all int64
	by  map[string]int64 // what is in use, by the key of who uses it
}

// NewShares is an amount of most, of which one caller has at most one part in
// parts, and at least one.
func NewShares(most, parts int64) *Shares {
	return &Shares{most: most, each: max(1, most/parts), by: map[string]int64{}}
}

// NewByteShares is the same in bytes. Who uses none gets as many as they ask for,
// whatever is in use: others who use all of it keep nobody from one answer.
func NewByteShares(most, parts int64) *Shares {
	s := NewShares(most, parts)
	s.first = true
	return s
}

// Each is the most that one caller has.
func (s *Shares) Each() int64 { return s.each }

// Full reports whether the caller of a key has their share, or has some where all
// of it is in use.
func (s *Shares) Full(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.by[key]
	return used >= s.each || used > 0 && s.all >= s.most
}

// Take takes n of it for the caller of a key, until leave is called, once. The
// error is [ErrShareUsed] or [ErrAllUsed].
func (s *Shares) Take(key string, n int64) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.by[key]
	switch {
	case s.first && used == 0:
	case n > s.each-used:
		return nil, ErrShareUsed
	case n > s.most-s.all:
		return nil, ErrAllUsed
	}
	return s.add(key, n), nil
}

// Add takes n for the caller of a key, whatever is in use: it is there already.
func (s *Shares) Add(key string, n int64) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(key, n)
}

func (s *Shares) add(key string, n int64) (leave func()) {
	s.all += n
	s.by[key] += n
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all -= n
		if s.by[key] -= n; s.by[key] == 0 {
			delete(s.by, key)
		}
	}
}
