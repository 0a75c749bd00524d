package hostcalls

import (
	"context"
	"slices"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/web"
)

// Bounds of a request and its answer.
const (
	MaxRequestHead  = 64 << 10 // bytes of JSON
	MaxRequestBody  = 64 << 20 // bytes
	MaxResponseBody = 64 << 20 // bytes, after decompression
	MaxRedirects    = 5

	defaultTimeout = 30 * time.Second
	longestTimeout = 10 * time.Minute
)

// An httpReq is one request as the gate judges it and the component sends it.
type httpReq struct {
	web.Place
	method  string
	mode    caps.Mode
	header  []httpField
	timeout time.Duration
	body    string // a view, valid for the call
	text    string // the request as it came: a view as well

	op *gate.Op // of the attached tool that asks; nil: net_http
}

// An httpField is one header of a request, by its canonical name.
type httpField struct {
	name   string
	values []string
}

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

// size is what the request counts for net_bytes: all that the guest chose.
func (r *httpReq) size() int64 {
	n := len(r.method) + r.Place.Size() + len(r.body)
	for _, f := range r.header {
		for _, v := range f.values {
			n += len(f.name) + len(v)
		}
	}
	return int64(n)
}

// isForm reports whether the body is a form, whose values may be handles.
func (r *httpReq) isForm() bool {
	for _, f := range r.header {
		if f.name == contentType {
			return len(f.values) == 1 && isForm(f.values)
		}
	}
	return false
}

// isForm reports whether a Content-Type among these is a form's.
func isForm(contentTypes []string) bool {
	return slices.ContainsFunc(contentTypes, func(v string) bool {
		kind, _, _ := strings.Cut(v, ";")
		return strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded")
	})
}

const contentType = "Content-Type"
