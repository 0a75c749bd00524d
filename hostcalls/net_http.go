package hostcalls

import (
	"context"
	"crypto/tls"
	"net/http"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// HTTP sends what net_http was permitted to. It knows addresses; which hosts
// may be reached is the gate's word.
type HTTP interface {
	// Vet reports why host, a canonical host:port, must not be reached whatever
	// it resolves to; nil for a name. named says that a grant has exactly this
	// host in it, which is what an address that is not public needs.
	Vet(host string, named bool) error
	// Send sends one request and returns its answer, following no redirect; it
	// decompresses what comes as gzip when the request says that it takes gzip. An
	// error with a method AddressNotPermitted() is a refusal for the address
	// that the host has; no error holds anything of request or answer. Where
	// req.TLS is set, nothing is sent over a connection of a lower version.
	Send(req *http.Request, named bool) (*http.Response, error)
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

// minTLS is the version that a connection must have, as [HTTP] takes it; nil
// for what the component itself wants.
func (h *Host) minTLS() *tls.ConnectionState {
	v, _ := h.condition(caps.NetMinTLS)
	switch {
	case v <= 12:
		return nil
	case v == 13:
		return &tls.ConnectionState{Version: tls.VersionTLS13}
	}
	return &tls.ConnectionState{Version: 0xffff} // none that there is
}
