package kb

import (
	"context"
	"time"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/wire"
)

// logOptions are those of a store's log.
type logOptions struct {
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
	opt   logOptions

	quit      chan struct{}
	ingesting chan struct{} // holds one token while somebody takes in journals
	inspected bool          // the log was looked at before it grew, by who has the token
	growth                  // for who has the token
	pruner    pruner        // for who has the token
	walks     walks
}

// newLog is the log in a database.
func newLog(db *db.Database, codec *audit.Codec, o logOptions) (*Log, error) {
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

// close waits for who writes the log, for the last time.
func (l *Log) close() {
	close(l.quit)
	l.ingesting <- struct{}{}
	l.walks.endAll()
}

// A logClient asks for what a log has, whichever process has it open.
type logClient struct{ asker wire.Asker[*Log] }

func newLogClient(asker wire.Asker[*Log]) logClient { return logClient{asker} }

// logHandlers are those of requests to the log.
var logHandlers = [...]wire.Handler[*Log]{
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
