package gate

import (
	"fmt"
	"math"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// Set is what the run holds now.
func (g *Gate) Set() caps.Set { return g.now.Load().set }

// Spend counts a call that nothing has to be decided about. It is false when
// limits.hostcalls_max leaves no more.
func (g *Gate) Spend() bool {
	if !g.latch.enter() {
		return false
	}
	defer g.latch.leave()
	left := g.calls < g.most
	if left {
		g.calls++
	}
	return left
}

// Give decides on something that the host gives of its own, such as a variable
// of the environment: it is judged and recorded like a request, and counts as no
// call, for the guest made none.
func (g *Gate) Give(op *Op, r caps.Request, target string) bool {
	if !g.latch.enter() {
		return false
	}
	defer g.latch.leave()
	d, h := g.check(&r), g.now.Load()
	if d.Allow && (h.tools || h.leases != nil) {
		d = g.slots.judge(h, op, &r, d)
	}
	if d, _ = g.recorded(op, &r, d, target, nil); d.Allow && h.leases != nil {
		g.slots.use(h, &r, d.Scope)
	}
	return d.Allow
}

// Hidden is the denial of op, by which nothing is touched, where a layer hides it
// from the run; ok is false where none does.
func (g *Gate) Hidden(op *Op) (den Denial, ok bool) {
	r := caps.Request{Family: caps.Tool, Name: op.scope}
	if !g.latch.enter() {
		return over(&r).Denial, true
	}
	defer g.latch.leave()
	h := g.now.Load()
	if !h.tools || op.scope == "" {
		return Denial{}, false
	}
	d := h.set.Check(r)
	if d.Allow {
		return Denial{}, false
	}
	return g.admit(op, &r, d, "", nil).Denial, true
}

// Charge counts n calls that were made on this run's account elsewhere.
func (g *Gate) Charge(n int64) {
	if g.latch.enter() {
		defer g.latch.leave()
		g.calls += max(n, 0)
	}
}

// Bound makes limits.hostcalls_max of this run most; negative means no limit.
func (g *Gate) Bound(most int64) {
	if g.latch.enter() {
		defer g.latch.leave()
		if g.most = most; most < 0 {
			g.most = math.MaxInt64
		}
	}
}

// Generation is 1 for what the launch left, and one more for each caps.swap.
func (g *Gate) Generation() int64 { return 1 + g.swaps }

// Note records n; no decision is made.
func (g *Gate) Note(n Note) error {
	if !g.latch.enter() {
		return ErrClosed
	}
	defer g.latch.leave()
	if err := g.note(n); err != nil {
		g.err = err
		return err
	}
	return nil
}

// Done records what came of an allowed call.
func (g *Gate) Done(e *audit.Event) error {
	if !g.latch.enter() {
		return ErrClosed
	}
	defer g.latch.leave()
	e.Kind = audit.KindCallDone
	if err := g.sink.Event(e); err != nil {
		g.err = fmt.Errorf("recording what came of %s: %w", e.Verb, err)
		return g.err
	}
	return nil
}

// ResultHash is the keyed digest of what a call gave back, as a record shows it.
func (g *Gate) ResultHash(result []byte) (h [32]byte) {
	if g.latch.enter() {
		defer g.latch.leave()
		h = g.sink.ResultHash(result)
	}
	return h
}

// ArgsHash is the keyed digest of op and args, as a record shows it.
func (g *Gate) ArgsHash(op *Op, args ...[]byte) (h [32]byte) {
	if g.latch.enter() {
		defer g.latch.leave()
		h = g.sink.ArgsHash(op.text, args...)
	}
	return h
}

// Would reports whether r would be allowed for op now. It records and counts
// nothing, and permits nothing: it is for what is only worth doing for a call
// that can pass, such as asking a person.
func (g *Gate) Would(op *Op, r caps.Request) bool {
	if !g.latch.enter() {
		return false
	}
	defer g.latch.leave()
	g.expire()
	h := g.now.Load()
	return g.slots.judge(h, op, &r, h.set.Check(r)).Allow
}

// Refuse records that r is not granted for a reason of the caller's (a budget,
// a component that is not there, a request that makes no sense). When the
// policy does not allow r either, that is the reason recorded: a guest learns
// nothing about what it may not ask. What names nothing at all, or has no route, is
// told so.
func (g *Gate) Refuse(op *Op, r caps.Request, target string, code caps.Code) Denial {
	if !g.latch.enter() {
		return over(&r).Denial
	}
	defer g.latch.leave()
	g.expire()
	h := g.now.Load()
	d := g.slots.judge(h, op, &r, h.set.Check(r))
	switch {
	case d.Allow, code == caps.InvalidRequest, code == caps.SecretUnknown, code == caps.RouteNotPermitted:
		d = caps.Decision{Code: code}
	}
	return g.admit(op, &r, d, target, nil).Denial
}
