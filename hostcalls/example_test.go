package hostcalls_test

import (
	"context"
	"fmt"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
)

type closing struct{ ticket string }

// Touches is the scope of kb_write that closing a ticket needs.
func (closing) Touches() (caps.Mode, string) { return 0, "events" }

// Every function that a guest may import is of a family: without a grant of that the
// gate denies the call. An embedding program's is no exception.
func ExampleImports() {
	closes := hostcalls.NewAdded("acme", "ticket_close", caps.KBWrite,
		func(request []byte) (closing, error) { return closing{string(request)}, nil },
		func(_ context.Context, _ gate.Permit, c closing) ([]byte, error) {
			return []byte("closed " + c.ticket), nil
		})
	for _, im := range hostcalls.Imports(closes) {
		if im.Family == caps.KBWrite && im.Gated {
			fmt.Println(im.Module, im.Name, "needs", im.Family)
		}
	}
	fmt.Println(closes.Scope())
	// Output:
	// runloop_v1 kb_put needs kb_write
	// runloop_v1 kb_cas needs kb_write
	// runloop_v1 kb_delete needs kb_write
	// acme ticket_close needs kb_write
	// tools:acme.ticket_close
}
