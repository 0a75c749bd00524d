package hostcalls

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/internal/effect/web"
)

// netHTTPName is the import's name.
const netHTTPName = "net_http"

var netHTTP = define(netHTTPName, 2, caps.Net, httpCall).taking(MaxRequestHead + MaxRequestBody)

// httpCall is how a request is judged and sent, for whoever asks: net_http, and
// the attached tools that are requests.
var httpCall = gated[httpReq]{
	decode:  decodeHTTP,
	resolve: resolveHTTP,
	touches: func(r httpReq) (caps.Request, string) {
		return caps.Request{Family: caps.Net, Mode: r.mode, Name: r.Host}, r.Shown
	},
	payload: func(r httpReq) [][]byte { return [][]byte{bytesOf(r.text), bytesOf(r.body)} },
	budget: func(h *Host, r httpReq) (caps.Code, bool) {
		if code, unmet := h.unmet(r.Scheme, r.body); unmet {
			return code, true
		}
		return h.net.over(h, r.mode, r.Host, r.size())
	},
	confirm: func(h *Host, r httpReq) (Question, bool) {
		if !h.cfg.ConfirmExternal || !writes(r.mode) {
			return Question{}, false
		}
		return Question{Tool: netHTTPName, Target: r.method + " " + r.URL.String(), Arguments: r.body}, true
	},
	done: true, framed: true,
	do: func(ctx context.Context, h *Host, p gate.Permit, r httpReq) ([]byte, error) {
		out, _, err := h.send(ctx, p, &r)
		return out, err
	},
}

// send sends what p permits, and returns the response of the call and the
// status of the answer.
func (h *Host) send(ctx context.Context, p gate.Permit, r *httpReq) (out []byte, status int, err error) {
	x, err := h.exchange(h.net.deadline.start(ctx, h.timeLeft(caps.NetTimeoutMS, r.timeout)), r)
	defer h.net.deadline.stop()
	if err != nil {
		return nil, 0, err
	}
	defer x.end()
	resp, err := x.follow(p)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	out, err = x.answer(resp)
	return out, resp.StatusCode, err
}

// start is the context of a call within run that may last so long. Its cause is
// context.DeadlineExceeded once that is over.
func (d *deadline) start(run context.Context, within time.Duration) context.Context {
	if d.ctx != nil && d.run == run {
		d.timer.Reset(within)
		return d.ctx
	}
	if d.cancel != nil {
		d.cancel(nil)
	}
	ctx, cancel := context.WithCancelCause(run)
	d.run, d.ctx, d.cancel = run, ctx, cancel
	d.timer = time.AfterFunc(within, func() { cancel(context.DeadlineExceeded) })
	return ctx
}

// stop ends the call. A context whose time came serves no other.
func (d *deadline) stop() {
	if !d.timer.Stop() {
		d.ctx = nil
	}
}

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
		return fmt.Errorf("%w: %w", x.refuse(caps.AddressNotPermitted, ""), err)
	case context.Cause(x.ctx) == context.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return &Fail{Errno: TimedOut, Hint: "no answer in time; timeout_ms says how long to wait"}
	case x.ctx.Err() != nil:
		return x.ctx.Err()
	}
	return &Fail{Errno: IO, Hint: err.Error()}
}

// refuse records that the request is refused after all, and why.
func (x *exchange) refuse(code caps.Code, why string) error {
	return x.h.cfg.refuse(x.op, x.request(), x.Shown, code, why)
}

// request is what the gate is asked.
func (x *exchange) request() caps.Request {
	return caps.Request{Family: caps.Net, Mode: x.mode, Name: x.Host}
}
