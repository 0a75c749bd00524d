package hostcalls

import (
	"context"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

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
