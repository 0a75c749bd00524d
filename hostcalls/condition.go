package hostcalls

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/model"
)

// condition is the value of c, and whether any layer set it.
func (s *conditions) condition(c caps.Constraint) (int64, bool) {
	return s.cfg.Gate.Set().Constraints().Get(c)
}

// over reports whether n is more than c allows, and remembers what the guest is to
// be told then.
func (s *conditions) over(c caps.Constraint, n int64) bool {
	most, set := s.condition(c)
	if !set || n <= most {
		return false
	}
	table, key := c.Key()
	s.unmetBy = "constraints." + table + "." + key
	return true
}

// none reports whether c leaves nothing at all.
func (s *conditions) none(c caps.Constraint) bool { return s.over(c, 1) }

// conditionHint says which condition refused the call, "" if none did.
func (s *conditions) conditionHint(code caps.Code) string {
	by := s.unmetBy
	s.unmetBy = ""
	if by == "" || code != caps.BudgetExhausted {
		return ""
	}
	v := strings.TrimPrefix(by, "constraints.")
	return fmt.Sprintf("%s = %d of this run leaves no more; the operator raises it, or leaves it out", by,
		s.cfg.Gate.Set().Constraints().Map()[v])
}

// timeLeft is d, and what c leaves of it in milliseconds.
func (s *conditions) timeLeft(c caps.Constraint, d time.Duration) time.Duration {
	most, set := s.condition(c)
	if set && most < int64(d/time.Millisecond) {
		return time.Duration(most) * time.Millisecond
	}
	return d
}

// unmet refuses a request over the network that a condition does not leave: a
// body that is too large, no time at all, no encryption where some is wanted.
func (s *conditions) unmet(scheme, body string) (caps.Code, bool) {
	if s.over(caps.NetMaxRequestBytes, int64(len(body))) || s.none(caps.NetTimeoutMS) {
		return caps.BudgetExhausted, true
	}
	if _, set := s.condition(caps.NetMinTLS); set && scheme != "https" {
		return caps.HTTPNotPermitted, true
	}
	return 0, false
}

// mayFollow reports whether redirects are followed.
func (s *conditions) mayFollow() bool {
	v, set := s.condition(caps.NetAllowRedirects)
	return !set || v != 0
}

// boundAnswer makes the condition on the length of an answer the request's own,
// and refuses one that may have no answer.
func (s *conditions) boundAnswer(r model.Request) (caps.Code, string) {
	most, set := s.condition(caps.ModelMaxTokens)
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

// minTLS is the version that a connection must have, as [HTTP] takes it; nil
// for what the component itself wants.
func (s *conditions) minTLS() *tls.ConnectionState {
	v, _ := s.condition(caps.NetMinTLS)
	switch {
	case v <= 12:
		return nil
	case v == 13:
		return &tls.ConnectionState{Version: tls.VersionTLS13}
	}
	return &tls.ConnectionState{Version: 0xffff} // none that there is
}
