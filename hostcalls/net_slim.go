//go:build slim

package hostcalls

import (
	"context"

	"runloop.dev/rlp/hostcalls/gate"
)

// HTTP is nothing here: the small program launches no agent that may reach a
// host, and links neither HTTP nor TLS. What an agent asks for is decoded,
// judged and recorded all the same.
type HTTP interface {
	Vet(host string, named bool) error
}

// send is never permitted here.
func (h *Host) send(context.Context, gate.Permit, *httpReq) (out []byte, status int, err error) {
	return nil, 0, errUnavailable
}
