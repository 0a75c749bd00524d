package main

import (
	"context"
	"errors"

	"runloop.dev/rlp/kb"
)

// openToKnow opens the store of a launch, to say why it cannot be; "" if it can.
// Whoever ended without closing it, or changed its files, has left it so that
// nobody knows.
func (a *app) openToKnow(ctx context.Context, c *composition) string {
	var err error
	if a.kept != nil {
		var k *keptStore
		if k, err = a.kept.stores.take(c.home, c.config); k != nil {
			a.kept.stores.giveBack(k)
		}
	} else {
		var s *kb.Store
		if s, err = kb.Open(ctx, storeOptions(c.home, c.config)); err == nil {
			err = s.Close()
		}
	}
	if !errors.Is(err, kb.ErrDamaged) {
		return "" // who needs the store says what else is the matter
	}
	return err.Error()
}
