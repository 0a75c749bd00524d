package hostcalls

import (
	"context"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/abi"
)

// maxNoes is how often a person says no to one tool before it asks no more, and
// maxAllNoes to all of a run and of those that it launches.
const (
	maxNoes    = 3
	maxAllNoes = 10
)

// unconfirmed asks, where anything is to be asked, and says why the call is
// refused; "" if it is not. The time that a person takes is not the guest's. A
// no to the same words is a no once more, and after a few of them nobody is
// bothered again: a guest must not have its way by asking often, nor by having
// others ask that it launches.
func (h *Host) unconfirmed(ctx context.Context, q Question) string {
	same := q.Tool + "\n" + q.Target + "\n" + q.Arguments
	switch {
	case h.cfg.Confirm == nil:
		return notAsked + "nobody can be asked here"
	case h.budget.Noes(same) > 0:
		return notAsked + "the operator said no to this very call before"
	case h.budget.Noes(q.Tool) >= maxNoes || h.budget.Noes("") >= maxAllNoes:
		return notAsked + "the operator said no too often to be asked again"
	}
	q.Description, q.Target, q.Arguments = h.scrubText(q.Description), h.scrubText(q.Target), h.scrubText(q.Arguments)
	goOn := abi.ClockOf(ctx).Stop()
	yes, how := aside(h, func() (bool, string) { return h.cfg.Confirm(ctx, q) })
	goOn()
	if yes {
		h.consent = "confirmed " + how
		return ""
	}
	h.budget.SaidNo(same, q.Tool, "")
	return "the call was not confirmed: " + how
}

const notAsked = "the call needs a yes of the operator: "

// writes reports whether a request by this mode is more than reading.
func writes(m caps.Mode) bool { return caps.EffectOf(caps.Net, m)&caps.IOWrite != 0 }
