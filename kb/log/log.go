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

	quit      chan struct{}
	ingesting chan struct{} // holds one token while somebody takes in journals
	inspected bool          // the log was looked at before it grew, by who has the token
	growth                  // for who has the token
	pruner    pruner        // for who has the token
	walks     walks
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
	l.walks.endAll()
}

// A Client asks for what a log has, whichever process has it open.
type Client struct{ asker wire.Asker[*Log] }

// NewClient asks the log that asker leads to.
func NewClient(asker wire.Asker[*Log]) Client { return Client{asker} }

// Handlers are those of requests to the log.
var Handlers = [...]wire.Handler[*Log]{
	wire.Handles[*Log, ingestRequest, Ingested](),
	wire.Handles[*Log, seekRequest, seekAnswer](),
	wire.Handles[*Log, pageRequest, pageAnswer](),
	wire.Handles[*Log, runsRequest, runsAnswer](),
	wire.Handles[*Log, headRequest, Head](),
	wire.Handles[*Log, sealRequest, Checkpoint](),
	wire.Handles[*Log, checkpointsRequest, checkpointsAnswer](),
	wire.Handles[*Log, inclusionRequest, inclusionAnswer](),
	wire.Handles[*Log, consistencyRequest, consistencyAnswer](),
	wire.Handles[*Log, verifyLogRequest, verifyLogAnswer](),
	wire.Handles[*Log, pruneRequest, pruneAnswer](),
	wire.Handles[*Log, marksRequest, marksAnswer](),
	wire.Handles[*Log, recordRequest, nothing](),
	wire.Handles[*Log, outcomesRequest, outcomesAnswer](),
}

// Rewrite takes the log over from whoever writes it until release is called, for
// somebody who writes to the database past it. Verifications under way are given up.
func (l *Log) Rewrite(ctx context.Context) (release func(), err error) {
	if err := l.takeIngesting(ctx); err != nil {
		return nil, err
	}
	l.edge, l.lastSealed, l.inspected = nil, Head{}, false
	l.pruner.removed = 0
	l.walks.endAll()
	return func() { <-l.ingesting }, nil
}
