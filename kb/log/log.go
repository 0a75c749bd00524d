// Package log is the append-only audit log of a store. A record enters it once, in the
// order in which its run made it, gets the next number, and is never changed; its leaf
// enters the log's tree with it and stays when the record is pruned, which is on record.
//
// A [Log] is in the process that owns the store; a [Client] asks it from any.
package log

import (
	"context"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// Options are those of a store's log.
type Options struct {
	Tenant  string
	Journal string // the folder of its journals

	Seal            func(size uint64, root [32]byte) (note []byte, err error)
	SealMark        func(size uint64, root [32]byte, lines []string) (note []byte, err error)
	Signed          func() bool
	CheckpointEvery int
	Now             func() time.Time
}

// A Log is the audit log in the process that owns the store. It is written by
// whoever holds ingesting.
type Log struct {
	db    *db.Database
	codec *audit.Codec
	opt   Options

	quit       chan struct{}
	ingesting  chan struct{} // holds one token while somebody takes in journals
	inspected  bool          // the log was looked at before it grew, by who has the token
	growth                   // for who has the token
	pruner     pruner        // for who has the token
	walks      db.Sessions
	verifyStep time.Duration // 0: db.VerifyStep
}

// New is the log in a database.
func New(db *db.Database, codec *audit.Codec, o Options) (*Log, error) {
	leafer, err := newLeafer()
	if err != nil {
		return nil, err
	}
	if o.CheckpointEvery <= 0 {
		o.CheckpointEvery = defaultEvery
	}
	l := &Log{
		growth: growth{leafer: leafer}, db: db, codec: codec, opt: o,
		quit: make(chan struct{}), ingesting: make(chan struct{}, 1),
	}
	l.pruner.Log = l
	return l, nil
}

// Close waits for who writes the log, for the last time.
func (l *Log) Close() {
	close(l.quit)
	l.ingesting <- struct{}{}
	l.walks.EndAll()
}

// A Client asks for what a log has, whichever process has it open.
type Client struct{ asker wire.Asker[*Log] }

// NewClient asks the log that asker leads to.
func NewClient(asker wire.Asker[*Log]) Client { return Client{asker} }

// Rewrite takes the log over from whoever writes it until release is called, for
// somebody who writes to the database past it. Verifications under way are given up.
func (l *Log) Rewrite(ctx context.Context) (release func(), err error) {
	if err := l.takeIngesting(ctx); err != nil {
		return nil, err
	}
	l.edge, l.lastSealed, l.inspected = nil, Head{}, false
	l.pruner.removed = 0
	l.walks.EndAll()
	return func() { <-l.ingesting }, nil
}

// A growth is what is known of the log between two intakes.
type growth struct {
	leafer     *leafer
	edge       *tree // of the log as it was committed last
	lastSealed Head  // of which edge was made longer
	owed       bool  // a checkpoint was due and could not be made
}

// A pruner removes records, for who has the token. What it knows of what it removed
// may be forgotten.
type pruner struct {
	*Log
	removed uint64 // up to which record it has removed them
	unfreed int    // how many of them still take room
}

// takeIngesting waits for the token of whoever writes the log.
func (l *Log) takeIngesting(ctx context.Context) error {
	select {
	case l.ingesting <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.quit:
		return wire.ErrClosed
	}
}

// defaultEvery is how many records there are at most between two checkpoints.
const defaultEvery = 10_000
