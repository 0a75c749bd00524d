package abi

import "context"

// A Holder counts what the host holds for a run as memory of the run's.
type Holder interface {
	// Hold counts n bytes more, or fewer where n is negative. An error says that the
	// run is over, for it may not have so much: they are not to be held.
	Hold(n int64) error
}

type holderKey struct{}

// WithHolder is ctx of a run for which h counts.
func WithHolder(ctx context.Context, h Holder) context.Context {
	return context.WithValue(ctx, holderKey{}, h)
}

// Held is what the host holds for a run in one place. The zero Held is nothing.
type Held struct{ counted int64 }

// heldStep is what is counted at once, so that who holds little asks nobody.
const heldStep = 64 << 10

// Set makes n bytes what is held, for the run that ctx belongs to, if it belongs
// to one.
func (h *Held) Set(ctx context.Context, n int) error {
	if more := int64(n)&^(heldStep-1) - h.counted; more != 0 { // seldom, so that most calls call nothing
		return h.hold(ctx, more)
	}
	return nil
}

func (h *Held) hold(ctx context.Context, more int64) error {
	if to, ok := ctx.Value(holderKey{}).(Holder); ok {
		if err := to.Hold(more); err != nil {
			return err
		}
	}
	h.counted += more
	return nil
}
