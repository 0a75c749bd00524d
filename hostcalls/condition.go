package hostcalls

import (
	"fmt"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/model"
)

// Conditions are what layers say of how something granted may be used, beyond
// what may be touched. They are read from the set that holds now, where they
// are the strictest of all layers; each call that one bears on asks here before
// anything is done.

// condition is the value of c, and whether any layer set it.
func (h *Host) condition(c caps.Constraint) (int64, bool) {
	return h.cfg.Gate.Set().Constraints().Get(c)
}

// over reports whether n is more than c allows.
func (h *Host) over(c caps.Constraint, n int64) bool {
	most, set := h.condition(c)
	return set && n > most && h.unmetFor(c)
}

// none reports whether c leaves nothing at all.
func (h *Host) none(c caps.Constraint) bool {
	most, set := h.condition(c)
	return set && most == 0 && h.unmetFor(c)
}

// unmetFor remembers what the guest is to be told.
func (h *Host) unmetFor(c caps.Constraint) bool {
	table, key := c.Key()
	h.unmetBy = "constraints." + table + "." + key
	return true
}

// conditionHint says which condition refused the call, "" if none did.
func (h *Host) conditionHint(code caps.Code) string {
	by := h.unmetBy
	h.unmetBy = ""
	if by == "" || code != caps.BudgetExhausted {
		return ""
	}
	v := strings.TrimPrefix(by, "constraints.")
	return fmt.Sprintf("%s = %d of this run leaves no more; the operator raises it, or leaves it out", by,
		h.cfg.Gate.Set().Constraints().Map()[v])
}

// timeLeft is d, and what c leaves of it in milliseconds.
func (h *Host) timeLeft(c caps.Constraint, d time.Duration) time.Duration {
	most, set := h.condition(c)
	if set && most < int64(d/time.Millisecond) {
		return time.Duration(most) * time.Millisecond
	}
	return d
}

// unmet refuses a request over the network that a condition does not leave: a
// body that is too large, no time at all, no encryption where some is wanted.
func (h *Host) unmet(scheme, body string) (caps.Code, bool) {
	if h.over(caps.NetMaxRequestBytes, int64(len(body))) || h.none(caps.NetTimeoutMS) {
		return caps.BudgetExhausted, true
	}
	if _, set := h.condition(caps.NetMinTLS); set && scheme != "https" {
		return caps.HTTPNotPermitted, true
	}
	return 0, false
}

// mayFollow reports whether redirects are followed.
func (h *Host) mayFollow() bool {
	v, set := h.condition(caps.NetAllowRedirects)
	return !set || v != 0
}

// boundAnswer makes the condition on the length of an answer the request's own,
// and refuses one that may have no answer.
func (h *Host) boundAnswer(r model.Request) (caps.Code, string) {
	most, set := h.condition(caps.ModelMaxTokens)
	c, completes := r.(*model.CompleteRequest)
	if !set || !completes {
		return 0, ""
	}
	if most == 0 {
		return caps.BudgetExhausted, "constraints.model.max_tokens leaves none"
	}
	if c.MaxTokens == 0 || c.MaxTokens > most {
		c.MaxTokens = most
	}
	return 0, ""
}

// given is what of the run's files the program gets.
func (h *Host) given(r *execReq) (caps.Set, error) {
	holds := h.cfg.Gate.Set()
	if r.within == nil {
		return holds, nil
	}
	holds, _, err := holds.Narrow(r.within)
	if err != nil {
		return holds, fmt.Errorf("narrowing by %s: %w", r.within.Name, err)
	}
	return holds, nil
}
