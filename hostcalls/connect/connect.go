// Package connect has the connections of programs pass the gate: each is decided and
// recorded (net.connect) before anything is looked up or sent, counts for the limits
// of its run, and is cut when what allowed it is held no more.
//
// A connection that nobody looks into is held to nothing but host and port. Where
// methods, or conditions on requests, are a layer's word, none is made.
package connect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/hostcalls/hints"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/internal/effect/proxy"
	"runloop.dev/rlp/internal/record/audit"
)

// What records call making a connection, and one that is made to the program from a port
// of the host that was published; and the tools that layers can hide.
const (
	opName     = "connect"
	toolName   = "web:connect"
	inwardOp   = "publish"
	InwardTool = "web:publish"
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
	// Confirm asks a person about what can change something outside, each time: a
	// request of plain HTTP that writes, and any other connection. It says how they said
	// yes, or why not. Whoever calls it holds Lock, which it may let go of meanwhile. Nil:
	// nobody is asked.
	Confirm func(context.Context, hostcalls.Question) (consent, refused string)
}

// A Policy decides on the connections of one run, by its gate. Any goroutine may use
// it.
type Policy struct {
	cfg    Config
	op     *gate.Op
	inward *gate.Op // of connections to the program
	open   map[*held]struct{}
	bodies lend.Room
}

// A held is a connection, or a request of plain HTTP, that was allowed and has not
// ended.
type held struct {
	op      *gate.Op
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
	inward, err := cfg.Gate.OpAs(inwardOp, caps.ConnectName, InwardTool)
	if err != nil {
		return nil, err
	}
	return &Policy{cfg: cfg, op: op, inward: inward, open: map[*held]struct{}{}}, nil
}

// errTaken is why an open connection ends whose grant is gone.
var errTaken = errors.New("what allowed it was taken away")

// Review cuts what is open and allowed no more: it is called after whatever changed
// what the run holds, and now and then for leases that end.
func (p *Policy) Review() {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	for h := range p.open {
		if !p.cfg.Gate.Would(h.op, h.request) {
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
func (p *Policy) Unknown(name, detail string) {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	t, code := proxy.Target{Way: proxy.TLS, Host: name + ":443"}, caps.HostNotPermitted
	if caps.IsOwnName(name) {
		t, code = proxy.Target{Way: proxy.HTTP, Host: name + ":80"}, caps.RouteNotPermitted
	}
	p.cfg.Gate.Refuse(p.op, p.request(t), t.String(), code)
	if detail != "" {
		p.done(&audit.Event{Verb: opName, Status: "error", ErrorSummary: detail})
	}
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
	if p.allows(hostPort, caps.HTTPS) && !p.cfg.Gate.Set().MethodsMatter("https", hostPort) {
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

// opOf is what records call t.
func (p *Policy) opOf(t proxy.Target) *gate.Op {
	if t.Way == proxy.Inward {
		return p.inward
	}
	return p.op
}

// over refuses what the policy's grants would let pass, and says why where the code
// alone does not.
func (p *Policy) over(q *inquiry) (code caps.Code, why string, is bool) {
	if p.isConditional() || q.Way == proxy.TLS && p.cfg.Gate.Set().MethodsMatter("https", q.Host) {
		return caps.MethodNotPermitted, "", true
	}
	switch {
	case q.other != "" && p.methodMatters(q.Target):
		return caps.MethodNotPermitted, q.other, true
	case p.cfg.Budget.Busy(p.cfg.Now().UnixNano()):
		return caps.RateLimited, "", true
	case !p.cfg.Budget.Allows(caps.NetBytes, 1):
		return caps.BudgetExhausted, "", true
	}
	return 0, "", false
}

// Decide implements [proxy.Policy].
func (p *Policy) Decide(ctx context.Context, t proxy.Target) (g proxy.Grant, err error) {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	q, err := p.read(t)
	defer func() {
		if err != nil {
			q.free()
		}
	}()
	if err != nil {
		return g, err
	}
	r := p.request(t)
	if code, why, is := p.over(q); is {
		return g, p.refused(r, t, code, why)
	}
	consent, no := p.confirm(ctx, q, r)
	if no != "" {
		return g, p.refused(r, t, caps.NotConfirmed, no)
	}
	r = p.request(t)                                     // by what holds now, for
	if code, why, is := p.over(q); consent != "" && is { // a person takes their time
		return g, p.refused(r, t, code, why)
	}
	a := p.cfg.Gate.Admit(p.opOf(t), r, t.String(), nil)
	if !a.OK() {
		return g, p.denied(a.Denial, "")
	}
	if !p.trusts(t) {
		if err := p.cfg.Gate.Taint(gate.Cause(caps.SourceWord(caps.Net), t.String())); err != nil {
			return g, err
		}
	}
	p.cfg.Budget.Request(p.cfg.Now().UnixNano())
	ctx = p.hold(ctx, &held{op: p.opOf(t), request: r}, q.free)
	return proxy.Grant{Named: p.isNamed(r), Context: ctx, Spend: p.spend, Consent: consent}, nil
}

// hold keeps what was allowed until ctx, or what it returns, ends.
func (p *Policy) hold(ctx context.Context, h *held, free func()) context.Context {
	ctx, h.cut = context.WithCancelCause(ctx)
	p.open[h] = struct{}{}
	context.AfterFunc(ctx, func() {
		free()
		p.cfg.Lock.Lock()
		defer p.cfg.Lock.Unlock()
		delete(p.open, h)
	})
	return ctx
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

// refused records that t is refused although the policy has a grant for it.
func (p *Policy) refused(r caps.Request, t proxy.Target, code caps.Code, why string) error {
	d := p.cfg.Gate.Refuse(p.opOf(t), r, t.String(), code)
	if d.Code != code {
		why = "" // the policy has none
	}
	return p.denied(d, why)
}

// denied is what a program is told, where it can be told anything.
func (p *Policy) denied(d gate.Denial, why string) error {
	if d.Code == caps.BudgetExhausted && p.cfg.Gate.Spent() {
		return errors.New(hints.Calls)
	}
	return errors.New(cmp.Or(why, hints.Of(d.Request, d.Code, d.Layer)))
}

// Refuse implements [proxy.Policy].
func (p *Policy) Refuse(t proxy.Target, why proxy.Refusal, detail string) {
	code := map[proxy.Refusal]caps.Code{
		proxy.ServerName: caps.ServerNameMismatch, proxy.Address: caps.AddressNotPermitted,
		proxy.Unassigned: caps.AddressNotPermitted,
		proxy.Protocol:   caps.MethodNotPermitted, proxy.Service: caps.RouteNotPermitted,
		proxy.Socket: caps.InvalidRequest,
	}[why]
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	p.cfg.Gate.Refuse(p.op, p.request(t), t.String(), code)
	if why != proxy.Address { // of which the end says more
		p.done(&audit.Event{Verb: opName, Status: "error", ErrorSummary: detail})
	}
}

// Done implements [proxy.Policy].
func (p *Policy) Done(t proxy.Target, g proxy.Grant, e proxy.End) {
	p.cfg.Lock.Lock()
	defer p.cfg.Lock.Unlock()
	event := &audit.Event{
		Verb: p.opOf(t).String(), Status: "ok", ErrorSummary: g.Consent, Bytes: e.Sent + e.Received,
		DurationMS: float64(e.Took.Microseconds()) / 1e3,
	}
	if e.Err != nil {
		event.Status, event.ErrorSummary = "error", e.Err.Error()
	}
	p.done(event)
}

// done records what came of a connection. Where that fails the gate stays shut.
func (p *Policy) done(e *audit.Event) {
	_ = p.cfg.Gate.Done(e)
}
