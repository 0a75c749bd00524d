package mcpclient

import (
	"context"
	"errors"
	"testing"
)

// What a server says can break what reads it: that ends the session, and no more.
func TestABrokenCallEndsItsSession(t *testing.T) {
	ended := 0
	s := &Session{end: func() { ended++ }, gone: make(chan struct{})}
	if err := s.within(t.Context(), func(context.Context) error { return nil }); err != nil || ended != 0 {
		t.Fatalf("control: %v, ended %d times", err, ended)
	}
	if err := s.within(t.Context(), func(context.Context) error { panic("a reply") }); !errors.Is(err, ErrGone) ||
		ended != 1 {
		t.Errorf("%v, ended %d times", err, ended)
	}
	if err := s.within(t.Context(), func(context.Context) error { return nil }); !errors.Is(err, ErrGone) {
		t.Errorf("it is spoken with again: %v", err)
	}
}
