package ask

import "time"

// A ChangedServer is an MCP server that says something else of its tools than it is
// known by: runs are refused its tools until somebody accepts them.
type ChangedServer struct {
	Server string
	At     time.Time // when it was seen to say so
	Tools  []string  // that are new, gone or described otherwise
}
