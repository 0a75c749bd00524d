package hostcalls

import (
	"context"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
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
