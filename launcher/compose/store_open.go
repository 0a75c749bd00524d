package compose

import (
	"context"
	"errors"

	"runloop.dev/rlp/kb"
)

// openToKnow opens the store of a launch, to say why it cannot be; "" if it can.
// Whoever ended without closing it, or changed its files, has left it so that
// nobody knows.
func (a *Runner) openToKnow(ctx context.Context, c *Composition) string {
	var err error
	if a.Kept != nil {
		var k *KeptStore
		if k, err = a.Kept.Stores.Take(c.Home, c.Config); k != nil {
			a.Kept.Stores.GiveBack(k)
		}
	} else {
		var s *kb.Store
		if s, err = kb.Open(ctx, StoreOptions(c.Home, c.Config)); err == nil {
			err = s.Close()
		}
	}
	if !errors.Is(err, kb.ErrDamaged) {
		return "" // who needs the store says what else is the matter
	}
	return err.Error()
}
