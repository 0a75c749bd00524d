package hostcalls

import (
	"context"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/abi"
)

// A Question is what a person is asked before something is done for an agent.
type Question struct {
	Tool        string // what the agent uses
	Description string // in the bundle's words
	Target      string // what it reaches
	Arguments   string
}

// Confirm asks a person, or answers for them as they said beforehand. how says
// which it was, for records: "by the operator at the terminal".
type Confirm func(ctx context.Context, q Question) (yes bool, how string)

// maxNoes is how often a person says no to one tool before it asks no more, and
// maxAllNoes to all of a run.
const (
	maxNoes    = 3
	maxAllNoes = 10
)

// unconfirmed asks, where anything is to be asked, and says why the call is
// refused; "" if it is not. The time that a person takes is not the guest's. A
// no to the same words is a no once more, and after a few of them nobody is
// bothered again: a guest must not have its way by asking often.
func (h *Host) unconfirmed(ctx context.Context, q Question) string {
	same := q.Tool + "\n" + q.Target + "\n" + q.Arguments
	switch {
	case h.cfg.Confirm == nil:
		return notAsked + "nobody can be asked here"
	case h.noes[same] > 0:
		return notAsked + "the operator said no to this very call before"
	case h.noes[q.Tool] >= maxNoes || h.noes[""] >= maxAllNoes:
		return notAsked + "the operator said no too often to be asked again"
	}
	q.Description, q.Target, q.Arguments = h.scrubText(q.Description), h.scrubText(q.Target), h.scrubText(q.Arguments)
	goOn := abi.ClockOf(ctx).Stop()
	yes, how := h.cfg.Confirm(ctx, q)
	goOn()
	if yes {
		h.consent = "confirmed " + how
		return ""
	}
	if h.noes == nil {
		h.noes = map[string]int{}
	}
	h.noes[strings.Clone(same)]++
	h.noes[strings.Clone(q.Tool)]++
	h.noes[""]++
	return "the call was not confirmed: " + how
}

const notAsked = "the call needs a yes of the operator: "

// writes reports whether a request by this mode is more than reading.
func writes(m caps.Mode) bool { return caps.EffectOf(caps.Net, m)&caps.IOWrite != 0 }
