package program

import (
	"net/http"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/modelapi"
	"runloop.dev/rlp/hostcalls/routes"
)

// Inside are the names that end in ".rlp" in the network of one run: the routes of
// its policy, and the services of its host. What h answers and the policy of the
// network hold the same lock.
func Inside(h *hostcalls.ProgramHost, list []caps.Route, now func() time.Time) *routes.Handler {
	return &routes.Handler{Sender: h, Routes: list, Services: map[string]http.Handler{
		"model": &modelapi.Handler{Asker: h, Now: now},
	}}
}
