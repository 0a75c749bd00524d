// Package connect has the connections of programs pass the gate: each is decided and
// recorded (net.connect) before anything is looked up or sent, counts for the limits
// of its run, and is cut when what allowed it is held no more.
//
// A connection that nobody looks into is held to nothing but host and port. Where
// methods, or conditions on requests, are a layer's word, none is made.
package connect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/hints"
	"runloop.dev/rlp/internal/effect/proxy"
	"runloop.dev/rlp/internal/effect/web"
	"runloop.dev/rlp/internal/record/audit"
)

// What records call making a connection, and the tool that layers can hide.
const (
	opName   = "connect"
	toolName = "web:connect"
)

// A Config is the run whose programs connect. Whoever else asks the gate holds Lock.
type Config struct {
	Gate   *gate.Gate
	Lock   sync.Locker
	Budget *budget.Budget
	Now    func() time.Time
	// Trusted holds the hosts whose answers do not mark the run as holding untrusted
	// content.
	Trusted caps.Set
}

// A Policy decides on the connections of one run, by its gate. Any goroutine may use
// it.
type Policy struct {
	cfg  Config
	op   *gate.Op
	open map[*held]struct{}
}

// A held is a connection, or a request of plain HTTP, that was allowed and has not
// ended.
type held struct {
	request caps.Request
	cut     context.CancelCauseFunc
}

// New makes the policy of a run.
func New(cfg Config) (*Policy, error) {
	cfg.Lock.Lock()
	defer cfg.Lock.Unlock()
	op, err := cfg.Gate.OpAs(opName, caps.ConnectName, toolName)
	if err != nil {
		return nil, err
	}
	return &Policy{cfg: cfg, op: op, open: map[*held]struct{}{}}, nil
}

// errTaken is why an open connection ends whose grant is gone.
var errTaken = errors.New("what allowed it was taken away")

// Review cuts what is open and allowed no more: it is called after whatever changed
// what the run holds, and now and then for leases that end.
func (p *Policy) Review() {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	for h := range p.open {
		if !p.cfg.Gate.Would(p.op, h.request) {
			h.cut(errTaken)
		}
	}
}

// Knows implements [proxy.Policy].
func (p *Policy) Knows(name string) bool {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	return slices.ContainsFunc(p.cfg.Gate.Set().Grants(), func(g caps.Grant) bool {
		host, _, _ := strings.Cut(g.Scope, ":")
		return g.Family == caps.Net && caps.BoundTo(host, name)
	})
}

// Unknown implements [proxy.Policy]: a program that was told that there is no such
// name asks for nothing more, and its operator wants to know what it was.
func (p *Policy) Unknown(name string) {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	t, code := proxy.Target{Way: proxy.TLS, Host: name + ":443"}, caps.HostNotPermitted
	if caps.IsOwnName(name) {
		t, code = proxy.Target{Way: proxy.HTTP, Host: name + ":80"}, caps.RouteNotPermitted
	}
	p.cfg.Gate.Refuse(p.op, p.request(t), t.String(), code)
}

// Ways implements [proxy.Policy].
func (p *Policy) Ways(hostPort string) (ways proxy.Ways) {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	if p.isConditional() {
		return 0
	}
	if p.allows(hostPort, caps.TCP) {
		ways |= proxy.Bytes
	}
	if p.allows(hostPort, caps.HTTPS) && !p.countsMethods(hostPort, caps.HTTPS) {
		ways |= proxy.TLS
	}
	for m := range caps.Bytes {
		if caps.HTTP.Has(m) && p.allows(hostPort, caps.Modes(m)) {
			return ways | proxy.HTTP
		}
	}
	return ways
}

// allows reports whether every one of modes is allowed.
func (p *Policy) allows(hostPort string, modes caps.ModeSet) bool {
	for m := range caps.Bytes + 1 {
		if modes.Has(m) && !p.cfg.Gate.Would(p.op, caps.Request{Family: caps.Net, Mode: m, Name: hostPort}) {
			return false
		}
	}
	return true
}

// isConditional reports whether a layer says of requests what no connection can be
// held to.
func (p *Policy) isConditional() bool {
	c := p.cfg.Gate.Set().Constraints()
	return slices.ContainsFunc([]caps.Constraint{
		caps.NetMaxRequestBytes, caps.NetMaxResponseBytes, caps.NetTimeoutMS, caps.NetMinTLS,
	}, func(key caps.Constraint) bool { _, set := c.Get(key); return set })
}

// countsMethods reports whether a lease of a place bounds some of modes and not others.
func (p *Policy) countsMethods(hostPort string, modes caps.ModeSet) bool {
	return slices.ContainsFunc(p.cfg.Gate.Set().Leases(), func(l caps.Lease) bool {
		return l.Grant.Family == caps.Net && l.Grant.Modes&modes != modes && l.Grant.Modes&modes != 0 &&
			caps.BoundTo(l.Grant.Scope, hostPort)
	})
}

// request is what the gate is asked for t: of TLS, in which any method can be, a
// method that is not allowed if there is one.
func (p *Policy) request(t proxy.Target) caps.Request {
	r := caps.Request{Family: caps.Net, Name: t.Host, Mode: caps.Bytes}
	switch t.Way {
	case proxy.Sockets:
		r.Name = ""
	case proxy.TLS:
		for m := range caps.Bytes {
			if r.Mode = m; caps.HTTPS.Has(m+1) && p.cfg.Gate.Would(p.op, r) {
				continue
			}
			break
		}
	case proxy.HTTP:
		method := "GET"
		if t.Request != nil {
			method = t.Request.Method
		}
		r.Mode, _ = caps.NetMode("http", method)
	}
	return r
}

// over refuses what the policy's grants would let pass.
func (p *Policy) over(t proxy.Target, now int64) (caps.Code, bool) {
	switch {
	case p.isConditional(), t.Way == proxy.TLS && p.countsMethods(t.Host, caps.HTTPS), p.isDisguised(t):
		return caps.MethodNotPermitted, true
	case p.cfg.Budget.Busy(now):
		return caps.RateLimited, true
	case !p.cfg.Budget.Allows(caps.NetBytes, 1):
		return caps.BudgetExhausted, true
	}
	return 0, false
}

// isDisguised reports whether a request asks its server for another method, where
// that matters.
func (p *Policy) isDisguised(t proxy.Target) bool {
	if t.Request == nil || p.allows(t.Host, caps.HTTP) && !p.countsMethods(t.Host, caps.HTTP) {
		return false
	}
	c := web.Claim{
		Place: web.Place{URL: t.Request.URL}, Method: t.Request.Method, Headers: slices.Collect(maps.Keys(t.Request.Header)),
	}
	return c.Other() != ""
}

// Decide implements [proxy.Policy].
func (p *Policy) Decide(ctx context.Context, t proxy.Target) (proxy.Grant, error) {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	r, now := p.request(t), p.cfg.Now().UnixNano()
	if code, is := p.over(t, now); is {
		return proxy.Grant{}, denied(p.cfg.Gate.Refuse(p.op, r, t.String(), code))
	}
	a := p.cfg.Gate.Admit(p.op, r, t.String(), nil)
	if !a.OK() {
		return proxy.Grant{}, denied(a.Denial)
	}
	if !p.trusts(t) {
		if err := p.cfg.Gate.Taint(gate.Cause(caps.SourceWord(caps.Net), t.String())); err != nil {
			return proxy.Grant{}, err
		}
	}
	p.cfg.Budget.Request(now)
	h := &held{request: r}
	ctx, h.cut = context.WithCancelCause(ctx)
	p.open[h] = struct{}{}
	context.AfterFunc(ctx, func() {
		p.cfg.Lock.Lock()
		defer p.cfg.Lock.Unlock()
		delete(p.open, h)
	})
	return proxy.Grant{Named: p.isNamed(r), Context: ctx, Spend: p.spend}, nil
}

// trusts reports whether what comes back from t marks no run: in TLS that can be an
// answer to any method, and bytes are of nobody who could be trusted.
func (p *Policy) trusts(t proxy.Target) bool {
	r := caps.Request{Family: caps.Net, Name: t.Host}
	if t.Way == proxy.HTTP {
		r.Mode = p.request(t).Mode
		return p.cfg.Trusted.Check(r).Allow
	}
	for m := range caps.Bytes {
		if r.Mode = m; caps.HTTPS.Has(m) && !p.cfg.Trusted.Check(r).Allow {
			return false
		}
	}
	return t.Way == proxy.TLS
}

// isNamed reports whether the base grants exactly this place.
func (p *Policy) isNamed(r caps.Request) bool {
	set := p.cfg.Gate.Set()
	d := set.Check(r)
	return d.Allow && set.Scope(caps.Net, d.Scope) == r.Name && set.BaseModes(caps.Net, d.Scope).Has(r.Mode)
}

var errBytes = errors.New("limits.net_bytes of this run is used up")

func (p *Policy) spend(n int64) error {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	if !p.cfg.Budget.Allows(caps.NetBytes, n) {
		return errBytes
	}
	p.cfg.Budget.Take(caps.NetBytes, n)
	return nil
}

// denied is what a program is told, where it can be told anything.
func denied(d gate.Denial) error { return errors.New(hints.Of(d.Request, d.Code, d.Layer)) }

// Refuse implements [proxy.Policy].
func (p *Policy) Refuse(t proxy.Target, why proxy.Refusal, detail string) {
	code := map[proxy.Refusal]caps.Code{
		proxy.ServerName: caps.ServerNameMismatch, proxy.Address: caps.AddressNotPermitted,
		proxy.Protocol: caps.MethodNotPermitted, proxy.Service: caps.RouteNotPermitted,
		proxy.Socket: caps.InvalidRequest,
	}[why]
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	p.cfg.Gate.Refuse(p.op, p.request(t), t.String(), code)
	if why != proxy.Address { // of which the end says more
		p.done(&audit.Event{ErrorSummary: detail})
	}
}

// Done implements [proxy.Policy].
func (p *Policy) Done(_ proxy.Target, e proxy.End) {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	event := &audit.Event{Bytes: e.Sent + e.Received, DurationMS: float64(e.Took.Microseconds()) / 1e3}
	if e.Err != nil {
		event.ErrorSummary = e.Err.Error()
	}
	p.done(event)
}

// done records what came of a connection. Where that fails the gate stays shut.
func (p *Policy) done(e *audit.Event) {
	e.Verb, e.Status = opName, "ok"
	if e.ErrorSummary != "" {
		e.Status = "error"
	}
	_ = p.cfg.Gate.Done(e)
}
