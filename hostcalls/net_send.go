package hostcalls

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/internal/effect/web"
)

// exchange prepares what was admitted: secrets are put in now, and for this
// host alone.
func (h *Host) exchange(ctx context.Context, r *httpReq) (*exchange, error) {
	if h.net.op == nil {
		op, err := h.cfg.Gate.Op(netHTTPName)
		if err != nil {
			return nil, fmt.Errorf("naming a request: %w", err)
		}
		h.net.op = op
	}
	x := &exchange{
		ctx: ctx, h: h, op: cmp.Or(r.op, h.net.op), fixed: r.op != nil, Place: r.Place, method: r.method, mode: r.mode,
		body: r.body,
	}
	if err := x.fill(r); err != nil {
		return nil, err
	}
	x.loan = lend.Of(x.body)
	return x, nil
}

// end takes the body back: the arguments of this call are the guest's again,
// whatever a connection may still want to read of them.
func (x *exchange) end() { x.loan.End() }

// follow sends the request and what redirects make of it, each admitted by the
// gate like the first, and returns the last answer.
func (x *exchange) follow(p gate.Permit) (*http.Response, error) {
	for hop := 0; ; hop++ {
		resp, err := x.send(p)
		if err != nil {
			return nil, err
		}
		location := x.to
		if location == "" || !x.h.mayFollow() {
			return resp, nil
		}
		drain(resp)
		if hop == MaxRedirects {
			return nil, &Fail{Errno: IO, Hint: fmt.Sprintf("redirected more than %d times", MaxRedirects)}
		}
		if err := x.turn(resp.StatusCode, location); err != nil {
			return nil, err
		}
		if p, err = x.admit(); err != nil {
			return nil, err
		}
	}
}

// send sends one request, which p permits.
func (x *exchange) send(p gate.Permit) (*http.Response, error) {
	req, err := x.begin(p)
	if err != nil {
		return nil, err
	}
	resp, err := x.h.cfg.HTTP.Send(req, x.h.net.named)
	return x.take(resp, err)
}

// begin makes the request that p permits, and counts it as sent.
func (x *exchange) begin(p gate.Permit) (*http.Request, error) {
	if !p.OK() {
		return nil, errDenied
	}
	req := (&http.Request{
		Method: x.method, URL: x.URL, Host: x.URL.Host, Header: x.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, TLS: x.h.minTLS(),
	}).WithContext(x.ctx)
	if x.body != "" {
		req.ContentLength = int64(len(x.body))
		req.GetBody = func() (io.ReadCloser, error) { return x.loan.Reader(), nil }
		req.Body = x.loan.Reader()
		// A server that does not read such a body takes it for the next request.
		req.Close = web.Bodiless(x.method)
	}
	x.h.sending(x.size())
	return req, nil
}

// take looks at what came of a request before anybody has it: which secrets it may
// hold, whether it marks the run, what it counts.
func (x *exchange) take(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, x.failed(err)
	}
	x.h.hear(x.ctx, x.Host)
	x.to, resp.Header = redirect(resp), x.h.headWithout(resp.Header)
	if err := x.takeInAnswer(); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	x.h.budget.Take(caps.NetBytes, headerSize(resp.Header))
	if !x.h.budget.Allows(caps.NetBytes, 0) {
		_ = resp.Body.Close()
		return nil, x.refuse(caps.BudgetExhausted, "")
	}
	return resp, nil
}

// size is what the request counts for net_bytes: the values of secrets count as
// what stands for them, or the limit would tell how long they are.
func (x *exchange) size() int64 {
	query := len(x.h.scrubText(x.URL.RawQuery))
	return int64(len(x.method)+len(x.Shown)+query+len(x.body)-x.longer-x.extra) + headerSize(x.header)
}

func headerSize(h http.Header) int64 {
	n := 0
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return int64(n)
}

// redirect is where resp leads on to, "" when it is an answer itself.
func redirect(resp *http.Response) string {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return resp.Header.Get("Location")
	}
	return ""
}

// drain reads the little that a redirect has to say, so that its connection can
// be used again.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 2<<10)
	_ = resp.Body.Close()
}

// turn makes of the request what a redirect by status to location asks for.
func (x *exchange) turn(status int, location string) error {
	next, err := x.resolve(location)
	if refused := x.carry(location, next); refused != nil {
		return refused
	}
	if err != nil {
		x.h.cfg.Gate.Refuse(x.op, caps.Request{Family: caps.Net}, "", caps.InvalidRequest)
		return &Fail{Errno: Inval, Hint: "redirected to what net_http does not take: " + err.Error()}
	}
	x.header = x.header.Clone() // a connection may still read what was sent
	keep := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
	if !keep && x.method != http.MethodGet && x.method != http.MethodHead {
		x.method, x.body, x.secret, x.extra = http.MethodGet, "", false, 0
		for _, name := range []string{"Content-Type", "Content-Language", "Content-Encoding", "Content-Location"} {
			x.header.Del(name)
		}
	}
	from := x.Place
	x.Place = next
	x.Shown = x.h.scrubText(x.Shown) // a server can put into a path what it was sent
	x.mode, _ = caps.NetMode(x.Scheme, x.method)
	if from.Scheme == x.Scheme && from.Host == x.Host {
		return nil
	}
	if x.fixed {
		return x.refuse(caps.HostNotPermitted, "the server redirected to another host, where this tool does not go")
	}
	if x.secret {
		return x.refuse(caps.SecretNotPermitted,
			"the server redirected to another host, where a body with a secret in it does not go")
	}
	x.forget()
	return nil
}

func (x *exchange) resolve(location string) (web.Place, error) {
	if err := web.CheckURL(location); err != nil {
		return web.Place{}, err
	}
	ref, err := url.Parse(location)
	if err != nil {
		return web.Place{}, web.ErrURL
	}
	return web.Canonical(x.URL.ResolveReference(ref))
}

// forget drops the headers that another host has no business with: all but
// those that are known to hold no credentials. They do not come back.
func (x *exchange) forget() {
	for name := range x.header {
		if !harmless(name) || slices.Contains(x.filled, name) {
			delete(x.header, name)
		}
	}
	x.longer = 0
	if _, kept := x.header["User-Agent"]; !kept {
		x.header["User-Agent"] = []string{userAgent} // or the transport names itself
	}
}

// harmless reports whether a header is known to hold no credentials.
func harmless(name string) bool {
	switch name {
	case "Accept", "Accept-Charset", acceptEncoding, "Accept-Language", "Cache-Control", "Content-Encoding",
		"Content-Language",
		"Content-Type", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since",
		"Pragma", "Range", "User-Agent":
		return true
	}
	return false
}

// admit asks for a request that a redirect made: limits, then the gate, as
// define does for the first.
func (x *exchange) admit() (gate.Permit, error) {
	code, over := x.h.unmet(x.Scheme, x.body)
	if !over {
		code, over = x.h.net.over(x.h, x.mode, x.Host, x.size())
	}
	if over {
		return gate.Permit{}, x.refuse(code, "")
	}
	claim := web.Claim{
		Place: x.Place, Method: x.method, Headers: slices.Collect(maps.Keys(x.header)), Body: x.body, Tool: x.fixed,
	}
	if why := x.h.disguised(&claim); why != "" && x.h.cfg.Gate.Would(x.op, x.request()) {
		return gate.Permit{}, x.refuse(caps.MethodNotPermitted, "the server redirected, and "+
			why)
	}
	if x.h.cfg.ConfirmExternal && !x.fixed && writes(x.mode) && x.h.cfg.Gate.Would(x.op, x.request()) {
		q := Question{
			Tool: netHTTPName, Target: x.method + " " + x.URL.String() + ", to which the server redirected",
			Arguments: x.body,
		}
		if why := x.h.unconfirmed(x.ctx, q); why != "" {
			return gate.Permit{}, x.refuse(caps.NotConfirmed, why)
		}
	}
	args := x.h.cfg.Gate.ArgsHash(x.op, []byte(x.method), []byte(x.URL.String()), bytesOf(x.body))
	return x.h.cfg.permit(x.op, x.request(), x.Shown, &args)
}

// carry refuses a redirect that would take a value of this run along, in its
// URL, to where that may not go. location is as the server wrote it, since a
// host is folded and mapped in its canonical spelling; next is what came of it,
// the zero place if nothing did. To the very server that redirects the value may
// go if it may be put into a request to it; each such use passes the gate.
func (x *exchange) carry(location string, next web.Place) error {
	ids := x.h.valuesIn(location)
	if next.URL != nil {
		ids = append(ids, x.h.valuesIn(next.URL.String())...)
	}
	if len(ids) == 0 {
		return nil
	}
	if next.Scheme != x.Scheme || next.Host != x.Host {
		// Recorded of the server that redirects: the other's name may be the value.
		return x.h.cfg.refuse(x.op, x.request(), x.h.scrubText(x.Shown), caps.SecretNotPermitted,
			"the server redirected to another host with a secret in the URL, which does not go there")
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		use := Destination{Host: x.Host}.request(id)
		if _, err := x.h.cfg.permit(x.op, use, x.h.cfg.shown(use), nil); err != nil {
			return err
		}
	}
	return nil
}
