package program

import (
	"net/http"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/hostmcp"
	"runloop.dev/rlp/hostcalls/modelapi"
	"runloop.dev/rlp/hostcalls/routes"
)

// Inside are the names that end in ".rlp" in the network of one run: the routes of
// its policy, its models and its host calls. What h and c answer and the policy of
// the network hold one lock.
func Inside(h *hostcalls.ProgramHost, c hostmcp.Caller, list []caps.Route, now func() time.Time) *routes.Handler {
	return &routes.Handler{Sender: h, Routes: list, Services: map[string]http.Handler{
		"model": &modelapi.Handler{Asker: h, Now: now}, "host": hostmcp.New(c),
	}}
}
