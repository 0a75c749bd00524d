package compose

import (
	"errors"

	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/kb/journal"
)

// Kept is what a process that does many launches keeps for all of them: what is
// compiled, what brings their journals to the disk together, and the stores. An
// invocation that is its own process keeps nothing.
type Kept struct {
	Modules  *guest.Library
	Journals *journal.Group
	shelf
}

// Close waits for what is done behind the launches and gives everything up. An
// error says which store, journal or module could not be closed.
func (k *Kept) Close() error {
	return errors.Join(k.Stores.Close(), k.Modules.Close(), k.Journals.Close())
}
