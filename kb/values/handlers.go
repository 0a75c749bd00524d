package values

import "runloop.dev/rlp/kb/wire"

// Handlers are those of requests to values.
var Handlers = [...]wire.Handler[*Values]{
	wire.Handles[*Values, getRequest, valueAnswer](),
	wire.Handles[*Values, changeRequest, changeAnswer](),
	wire.Handles[*Values, putAllRequest, putAllAnswer](),
	wire.Handles[*Values, listRequest, listAnswer](),
	wire.Handles[*Values, searchRequest, searchAnswer](),
	wire.Handles[*Values, whyRequest, Chain](),
	wire.Handles[*Values, tallyRequest, tallyAnswer](),
	wire.Handles[*Values, verifyRequest, verifyAnswer](),
}
