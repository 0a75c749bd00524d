package kb

import (
	"fmt"
	"sync/atomic"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

// An engine is the store in the process that owns it.
type engine struct {
	db        *db.Database
	codec     *audit.Codec
	log       *log.Log
	values    *values.Values
	shut      atomic.Bool  // a restore is under way, or was interrupted
	flushes   *db.Listener // of those that failed
	snapshots db.Sessions
	agreement agreement // with those who ask from other processes
}

// close commits what is waiting and closes the database.
func (e *engine) close() error {
	e.values.Close()
	e.log.Close()
	e.snapshots.EndAll()
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

// serves is why no request of a kind is answered now.
func (e *engine) serves(op wire.Opcode) error {
	if op == wire.OpRestore {
		return nil
	}
	return e.mayServe()
}

// mayServe is an error while a restore is under way.
func (e *engine) mayServe() error {
	if e.shut.Load() {
		return fmt.Errorf("%w: a restore is under way or was interrupted; rlp kb restore begins it again",
			wire.ErrUnavailable)
	}
	return nil
}
