package launcher

import (
	"context"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
)

type (
	// A HostFunc is a host call of the program's own, made by [Define]. Only agents
	// whose policy grants what it touches can call it.
	HostFunc = hostcalls.Added
	// A Permit is proof that the gate allowed the request that it comes with.
	Permit = gate.Permit
	// Touching is a request that says what it touches: the mode and the scope.
	Touching = hostcalls.Touching
	// A Fail is how a host function tells the agent that it did nothing: a number and
	// a sentence that the agent may read.
	Fail = hostcalls.Fail
)

// Define makes a host function that agents import as name of module, with the
// signature of every call of runloop_v1 that takes one argument:
// (request, length, response, room) -> length of the response, or minus an error
// number.
//
// What it touches is of the family, and R says which mode and scope by its method,
// or the program does not compile. parse makes the request of a copy of the agent's
// bytes. The gate judges what the request says that it touches; a denial is
// recorded, and do never sees it. An allowed one is recorded and handed to do with
// the gate's permit. A policy's limits, leases and layers hold as for any host call,
// and the scope by which a layer hides it is "tools:MODULE.NAME".
//
// Of an error of do that is a [*Fail] the agent is told number and sentence, of any
// other that something went wrong; a panic ends the run as a fault of the host.
// do runs on the goroutine of the agent and has to end with its context. It touches
// nothing that its request does not name: a link that it follows, an address that it
// dials is judged by nobody.
func Define[R Touching](module, name string, family caps.Family, parse func(request []byte) (R, error),
	do func(ctx context.Context, permit Permit, request R) ([]byte, error),
) HostFunc {
	return hostcalls.NewAdded(module, name, family, parse, do)
}
