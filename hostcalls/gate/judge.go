package gate

import (
	"math"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/record/audit"
)

// held is a lease with the place of its scope.
type held struct {
	caps.Held
	id int32
}

func leasesOf(set caps.Set) []held {
	var list []held
	for _, l := range set.HeldLeases() {
		list = append(list, held{l, set.ScopeID(l.Grant.Family, l.Grant.Scope)})
	}
	return list
}

// judge is the decision on an allowed request with what is no scope of its
// family: the tool that asks, and how often it may.
func (s *slots) judge(h *holding, op *Op, r *caps.Request, d caps.Decision) caps.Decision {
	if !d.Allow {
		return d
	}
	if h.tools && op.scope != "" {
		if t := h.set.Check(caps.Request{Family: caps.Tool, Name: op.scope}); !t.Allow {
			return t
		}
	}
	for i := range h.leases {
		l := &h.leases[i]
		if l.MaxUses != caps.Unbounded && s.used[l.Grant] >= l.MaxUses && l.holds(h.set, r, d.Scope) {
			return caps.Decision{Code: caps.LeaseExpired, Layer: l.Layer, Scope: d.Scope}
		}
	}
	return d
}

// holds reports whether a request that scope id holds is within the lease.
func (l *held) holds(set caps.Set, r *caps.Request, id int32) bool {
	return l.Grant.Family == r.Family && l.Grant.Modes.Has(r.Mode) &&
		set.Enclosing(r.Family, id, func(up int32) bool { return up == l.id }) >= 0
}

// use counts an allowed request against the leases that it is within.
func (s *slots) use(h *holding, r *caps.Request, id int32) {
	for i := range h.leases {
		if l := &h.leases[i]; l.MaxUses != caps.Unbounded && l.holds(h.set, r, id) {
			s.used[l.Grant]++
		}
	}
}

// AdmitMove reports whether what lies at from may come to lie at to, or to have
// that name too. Leases bind by path: what one bounds stays within it, and nothing
// that holds a leased path, or comes to hold one, is moved. A refusal is recorded
// and counted; what is let pass was judged by name already.
func (g *Gate) AdmitMove(op *Op, from, to string) bool {
	if !g.latch.enter() {
		return false
	}
	defer g.latch.leave()
	g.expire()
	h := g.now.Load()
	for i := range h.leases {
		l := &h.leases[i]
		if l.Grant.Family != caps.FS || !links.Leaves(l.Grant.Scope, from, to) {
			continue
		}
		r := caps.Request{Family: caps.FS, Mode: caps.Write, Name: from}
		g.admit(op, &r, caps.Decision{Code: caps.PathNotPermitted, Layer: l.Layer}, from, nil)
		return false
	}
	return true
}

// LeaseUses is how often each lease that bounds uses was used.
func (g *Gate) LeaseUses() map[caps.Grant]int64 { return g.slots.used }

// SpendLeases counts uses that were made on this run's account elsewhere.
func (g *Gate) SpendLeases(used map[caps.Grant]int64) {
	if !g.latch.enter() {
		return
	}
	defer g.latch.leave()
	for grant, n := range used {
		g.slots.used[grant] += n
	}
}

// nextExpiry is when the next lease ends that is not over yet.
func nextExpiry(h *holding, over []*caps.Layer) int64 {
	next := int64(caps.Forever)
	for i := range h.leases {
		if l := &h.leases[i]; !isOver(over, l.Grant) {
			next = min(next, l.Expires)
		}
	}
	return next
}

func isOver(over []*caps.Layer, g caps.Grant) bool {
	return slices.ContainsFunc(over, func(l *caps.Layer) bool { return l.Deny[0].Grant == g })
}

// expire takes away what is leased when the time is over. The time is looked at
// only while some lease ends some day.
func (g *Gate) expire() {
	if g.slots.expiry != caps.Forever {
		g.expireNow()
	}
}

func (g *Gate) expireNow() {
	now := int64(math.MaxInt64 - 1)
	if g.clock != nil {
		now = g.clock()
	}
	if now < g.slots.expiry || g.err != nil {
		return
	}
	h, s := g.now.Load(), g.slots
	for i := range h.leases {
		l := &h.leases[i]
		if l.Expires > now || isOver(s.over, l.Grant) {
			continue
		}
		s.over = append(s.over[:len(s.over):len(s.over)], &caps.Layer{
			Name: h.set.LayerName(l.Layer), Because: caps.LeaseExpired, Deny: []caps.Entry{l.Entry},
		})
	}
	if _, err := g.swap(s, audit.Event{Source: "lease"}); err != nil && g.err == nil {
		g.err = err // what could not be taken away shuts the gate
	}
}
