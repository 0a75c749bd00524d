package service

import (
	"errors"
	"testing"
)

// take takes, and fails the test unless that ends as it should.
func take(t *testing.T, s *Shares, key string, n int64, want error) (leave func()) {
	t.Helper()
	leave, err := s.Take(key, n)
	if !errors.Is(err, want) || (err == nil) != (leave != nil) {
		t.Fatalf("%s takes %d: %v, want %v", key, n, err, want)
	}
	return leave
}

// One caller has its share, all together have no more than there is, and what is
// given back is there for the next.
func TestShares(t *testing.T) {
	s := NewShares(8, 4)
	leave := take(t, s, "a", 2, nil)
	take(t, s, "a", 1, ErrShareUsed)
	take(t, s, "b", 3, ErrShareUsed)
	for _, key := range []string{"b", "c", "d"} {
		take(t, s, key, 2, nil)
	}
	take(t, s, "e", 1, ErrAllUsed)
	leave()
	take(t, s, "e", 1, nil)
	take(t, s, "a", 1, nil)
	take(t, s, "a", 1, ErrAllUsed)
	if s.all != 8 || s.by["a"] != 1 || len(s.by) != 5 {
		t.Errorf("%+v", s)
	}
	if least := NewShares(2, 8); least.Each() != 1 {
		t.Errorf("a share is %d", least.Each())
	}
}

// Of bytes, who uses none gets what they ask for, even if others use all of it,
// and nothing beside it.
func TestByteShares(t *testing.T) {
	s := NewByteShares(8, 4)
	leave := take(t, s, "a", 100, nil)
	take(t, s, "a", 1, ErrShareUsed)
	take(t, s, "b", 2, nil)
	take(t, s, "b", 1, ErrShareUsed)
	leave()
	take(t, s, "a", 1, nil)
	take(t, s, "a", 1, nil)
	if s.all != 4 || len(s.by) != 2 {
		t.Errorf("%+v", s)
	}
}
