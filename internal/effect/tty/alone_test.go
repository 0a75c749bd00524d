package tty

import (
	"context"
	"errors"
	"testing"
)

// While somebody is asked nothing passes, and nobody is where a pipe leads to others;
// who does not wait any longer leaves no trace.
func TestAlone(t *testing.T) {
	passes := func() bool { return Pass(func() {}) }
	asked := false
	if err := Alone(t.Context(), func() { asked = !passes() }); err != nil || !asked || !passes() {
		t.Errorf("%v, asked alone: %v", err, asked)
	}
	end := Pipe()
	if err := Alone(t.Context(), func() { t.Error("asked") }); !errors.Is(err, ErrPiped) {
		t.Error(err)
	}
	end()
	ctx, cancel := context.WithCancel(t.Context())
	Pass(func() { // a piece is under way, and does not end
		cancel()
		if err := Alone(ctx, func() { t.Error("asked") }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	if err := Alone(t.Context(), func() {}); err != nil {
		t.Error(err)
	}
}
