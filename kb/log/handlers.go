package log

import "runloop.dev/rlp/kb/wire"

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
