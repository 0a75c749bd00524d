package api

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"

	"runloop.dev/rlp/internal/serve/service"
)

// A note is what the log will say of a request.
type note struct {
	id, route, run, trace string
	caller                *service.Caller
	held                  int64 // bytes that are in the caller's share for a piece of the answer already
}

type noteKey struct{}

func noteOf(r *http.Request) *note {
	n, _ := r.Context().Value(noteKey{}).(*note)
	if n == nil { // not below watch
		n = &note{}
	}
	return n
}

func newID() string {
	var p [8]byte
	rand.Read(p[:]) //nolint:errcheck // it never fails
	return hex.EncodeToString(p[:])
}

// traceOf is the trace and the span that a request comes from, as the header
// traceparent says; one that says it wrong begins a trace.
func traceOf(r *http.Request) (trace, span string) {
	all := r.Header["Traceparent"]
	if len(all) != 1 {
		return "", ""
	}
	return service.ParseTraceParent(all[0])
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}
