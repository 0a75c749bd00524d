package kb

import (
	"context"

	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/log"
	"runloop.dev/rlp/kb/values"
	"runloop.dev/rlp/kb/wire"
)

// handlers are those of requests to the store as a whole.
var handlers = [...]wire.Handler[*engine]{
	wire.Handles[*engine, backupRequest, backupAnswer](),
	wire.Handles[*engine, restoreRequest, restoreAnswer](),
}

// serve answers a message.
func (e *engine) serve(ctx context.Context, m *message) (any, error) {
	if err := e.serves(m.Op); err != nil {
		return nil, err
	}
	if a, known, err := handle(ctx, handlers[:], e, e.codec, m); known {
		return a, err
	}
	if a, known, err := handle(ctx, log.Handlers[:], e.log, e.codec, m); known {
		return a, err
	}
	if a, known, err := handle(ctx, values.Handlers[:], e.values, e.codec, m); known {
		return a, err
	}
	return nil, wire.Invalidf("operation %d is not known", m.Op)
}

// handle answers a message if it is a request to one part of the store.
func handle[P any](ctx context.Context, hs []wire.Handler[P], part P, codec *audit.Codec, m *message,
) (any, bool, error) {
	for i := range hs {
		if hs[i].Op == m.Op {
			a, err := hs[i].Do(ctx, part, codec, m.Body)
			return a, true, err
		}
	}
	return nil, false, nil
}
