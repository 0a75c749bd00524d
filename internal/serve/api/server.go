package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"runloop.dev/rlp/internal/serve/service"
)

// Access lets in who may ask: it puts the caller into the context
// ([service.WithCaller]) of what it hands on, and answers all else itself.
type Access interface {
	Wrap(next http.Handler) http.Handler
}

// Options are what [Handler] is made from. Service, Host, Access and
// Now are needed.
type Options struct {
	Service *service.Service
	Host    service.Host
	Access  Access
	Metrics http.Handler // of GET /metrics; nil: there are none
	MCP     http.Handler // of /mcp; nil: it is not offered
	Console http.Handler // of every other path; nil: there is none
	// Ready says of each tenant why no run of it can be taken now, such as a log that
	// cannot be written; nil: nothing is asked.
	Ready func(context.Context) []service.TenantState
	// Waiting is how many journals wait for the log; nil: nobody knows.
	Waiting func() int
	Log     *slog.Logger     // a line for each request; nil: nobody reads it
	Now     func() time.Time // the clock
	// Heartbeat is how often a silent stream is told that it lives; 0: 15 s.
	Heartbeat time.Duration
	// Patience is how long a reader may take for one piece of an answer, and a
	// writer for a body; 0: 60 s.
	Patience time.Duration
	Largest  int64 // bytes of a body, but for /input and /mcp; 0: 64 MiB
	Streams  int   // that are open at a time; 0: 1024, and an eighth of them a caller
	// Held is how many bytes are in memory at a time for bodies that have not come
	// whole, and as many again for answers that nobody has taken; 0: 128 MiB, and a
	// quarter of them a caller.
	Held int64
}

// A server is Options with what requests share.
type server struct {
	Options
	responder
	intake
	streams *service.Shares
	answers *service.Shares // bytes of answers that nobody has taken
	openapi []byte
}

// A responder writes answers: documents, and what was wrong.
type responder struct {
	opt  *Options
	zips sync.Pool
}

// An intake reads bodies, bounded together.
type intake struct {
	opt    *Options
	large  chan struct{}   // a place for each large body that is being read
	bodies *service.Shares // bytes of bodies that come
}

// mcpPath is where MCP is served.
const mcpPath = "/mcp"

// Bounds of requests.
const (
	mostBody   = 64 << 20
	mostMCP    = 8 << 20
	smallBody  = 1 << 20 // a larger one needs a place
	largeAtime = 2
)
