package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/internal/effect/web"
)

// An exchange is one net_http: a request, and those that redirects make of it.
type exchange struct {
	ctx  context.Context
	h    *Host
	op   *gate.Op
	loan *lend.Loan // of the body

	web.Place
	method string
	mode   caps.Mode
	header http.Header
	body   string
	filled []string // the headers that a secret was put into
	longer int      // by how much that made the headers longer
	extra  int      // and the body
	to     string   // where the last answer leads on to, as it is written; "": it is an answer itself
	secret bool     // a secret was put into the body
	fixed  bool     // to this host and to no other, wherever it redirects
}

// failed is what the guest is told of an error of the component's. Which
// address a name led to is for the operator's record.
func (x *exchange) failed(err error) error {
	var address interface{ AddressNotPermitted() }
	switch {
	case errors.As(err, &address):
		return fmt.Errorf("%w: %w", x.refuse(caps.AddressNotPermitted), err)
	case context.Cause(x.ctx) == context.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return &Fail{Errno: TimedOut, Hint: "no answer in time; timeout_ms says how long to wait"}
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	}
	return &Fail{Errno: IO, Hint: err.Error()}
}

// refuse records that the request is refused after all, and why.
func (x *exchange) refuse(code caps.Code) error {
	return x.h.refuse(x.op, x.request(), x.Shown, code, "")
}

// request is what the gate is asked.
func (x *exchange) request() caps.Request {
	return caps.Request{Family: caps.Net, Mode: x.mode, Name: x.Host}
}
