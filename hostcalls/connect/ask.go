package connect

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/internal/effect/proxy"
	"runloop.dev/rlp/internal/effect/web"
)

// mostBodies bounds what the bodies that are looked at hold together, in bytes.
const mostBodies = 2 * hostcalls.MaxRequestBody

// An inquiry is a target with what was read of it.
type inquiry struct {
	proxy.Target
	body  string
	other string // how a request asks its server for another method, or may; "": it does not
	free  func() // of the memory that the body holds
}

// read reads the body of a request where it can matter what it says, and puts what
// was read in its place. The error is the program's, which went away. The lock is not
// held while the program sends, and while what it sent is looked through.
func (p *Policy) read(t proxy.Target) (*inquiry, error) {
	q := &inquiry{Target: t, free: func() {}}
	switch r := t.Request; {
	case r == nil:
		return q, nil
	case r.ContentLength == 0: // there is no body, which would be of -1 bytes where nobody says how many
		q.other = q.claim().Other()
		return q, nil
	case !p.methodMatters(t) || !p.cfg.Gate.Would(p.op, p.request(t)):
		q.other = unread // should it matter later
		return q, nil
	}
	p.cfg.Lock.Unlock()
	defer p.cfg.Lock.Lock()
	var err error
	q.body, q.free, err = p.bodies.Read(t.Request.Body, hostcalls.MaxRequestBody, mostBodies)
	t.Request.Body = io.NopCloser(strings.NewReader(q.body))
	if errors.Is(err, lend.ErrLong) || errors.Is(err, lend.ErrFull) {
		q.other = unread + ": " + err.Error()
		return q, nil
	}
	q.other = q.claim().Other()
	return q, err
}

const unread = "its body was not looked at, and may ask the server for another method"

// claim is all of a request by which it can ask for another method.
func (q *inquiry) claim() *web.Claim {
	r := q.Request
	return &web.Claim{
		Place: web.Place{URL: r.URL}, Method: r.Method, Body: q.body,
		Headers: slices.Concat(slices.Collect(maps.Keys(r.Header)), slices.Collect(maps.Keys(r.Trailer))),
	}
}

// methodMatters reports whether a request of plain HTTP has to be of the method that
// it says: some are not allowed, or only so often, or a person is asked by method.
func (p *Policy) methodMatters(t proxy.Target) bool {
	return t.Request != nil && (p.cfg.Confirm != nil || p.cfg.Gate.Set().MethodsMatter("http", t.Host))
}

// confirm has a person asked, where one is to be asked about q and the policy allows
// it. It says how they said yes, or why q is refused. The lock is not held meanwhile.
func (p *Policy) confirm(ctx context.Context, q *inquiry, r caps.Request) (consent, refused string) {
	reads := caps.EffectOf(caps.Net, r.Mode)&caps.IOWrite == 0
	if p.cfg.Confirm == nil || q.Way == proxy.HTTP && reads || !p.cfg.Gate.Would(p.op, r) {
		return "", ""
	}
	target := q.String() // in which anything can be said
	if q.Request != nil {
		target = q.Request.Method + " " + target + q.Request.URL.RequestURI()
	}
	return p.cfg.Confirm(ctx, hostcalls.Question{Tool: toolName, Target: target, Arguments: q.body})
}
