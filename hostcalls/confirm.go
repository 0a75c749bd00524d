package hostcalls

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/engine/abi"
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
	case h.budget.noesTo(same) > 0:
		return notAsked + "the operator said no to this very call before"
	case h.budget.noesTo(q.Tool) >= maxNoes || h.budget.noesTo("") >= maxAllNoes:
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
	h.budget.saidNo(same, q.Tool, "")
	return "the call was not confirmed: " + how
}

// commandLine is what a person is shown of a program: each word is told from the
// next one, and what it is given beside them stands before it.
func (r *execReq) commandLine() string {
	words := make([]string, 0, len(r.env)+len(r.argv))
	for _, v := range r.env {
		words = append(words, v.name+"="+word(v.value))
	}
	for _, w := range r.argv {
		words = append(words, word(w))
	}
	return strings.Join(words, " ")
}

// word is w, in quotes where it could be taken for several or for none.
func word(w string) string {
	if w != "" && !strings.ContainsFunc(w, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`"'\=`,
			r)
	}) {
		return w
	}
	return strconv.Quote(w)
}

// noesTo is how often a person of the tree said no to a call or a tool, or, to "",
// at all.
func (t *tree) noesTo(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.noes[what]
}

func (t *tree) saidNo(to ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.noes == nil {
		t.noes = map[string]int{}
	}
	for _, what := range to {
		t.noes[strings.Clone(what)]++
	}
}

const notAsked = "the call needs a yes of the operator: "

// writes reports whether a request by this mode is more than reading.
func writes(m caps.Mode) bool { return caps.EffectOf(caps.Net, m)&caps.IOWrite != 0 }
