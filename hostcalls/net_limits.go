package hostcalls

import (
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/budget"
	"runloop.dev/rlp/internal/effect/web"
)

// over refuses a request that a limit, or the address that is written in it,
// does not allow. It takes nothing, and is asked before each request.
func (n *netState) over(h *Host, mode caps.Mode, host string, size int64) (caps.Code, bool) {
	if h.cfg.HTTP == nil {
		return caps.Unavailable, true
	}
	if h.budget.Busy(h.cfg.Now()) {
		return caps.RateLimited, true
	}
	if !h.budget.Allows(caps.NetBytes, size) {
		return caps.BudgetExhausted, true
	}
	n.named = h.named(mode, host)
	if h.cfg.HTTP.Vet(host, n.named) != nil {
		return caps.AddressNotPermitted, true
	}
	return 0, false
}

// sending counts a request that is about to be sent.
func (h *Host) sending(size int64) {
	h.budget.Request(h.cfg.Now())
	h.budget.Take(caps.NetBytes, size)
}

// budgetRoom is how many more bytes may be received, and whether a limit says so.
func budgetRoom(b *budget.Budget) (int64, bool) {
	if left, bounded := b.Left(caps.NetBytes); bounded && left < MaxResponseBody {
		return max(left, 0), true
	}
	return MaxResponseBody, false
}

// room is what the budget and the conditions of the run leave of an answer.
func (h *Host) room() (int64, bool) {
	room, limited := budgetRoom(h.budget)
	if most, set := h.condition(caps.NetMaxResponseBytes); set && most < room {
		return most, true
	}
	return room, limited
}

// named reports whether the base grants exactly this host, not one of many by
// a wildcard: what an address that is not public needs.
func (h *Host) named(mode caps.Mode, host string) bool {
	set := h.cfg.Gate.Set()
	d := set.Check(caps.Request{Family: caps.Net, Mode: mode, Name: host})
	return d.Allow && set.Scope(caps.Net, d.Scope) == host && set.BaseModes(caps.Net, d.Scope).Has(mode)
}

// resolveHTTP refuses a request by which the server is asked for another method
// than the one that is judged.
func resolveHTTP(h *Host, r *httpReq) (caps.Code, string) {
	return caps.MethodNotPermitted, h.disguised(r.claim())
}

func (r *httpReq) claim() *web.Claim {
	c := &web.Claim{Place: r.Place, Method: r.method, Body: r.body, Tool: r.op != nil}
	for _, f := range r.header {
		c.Headers = append(c.Headers, f.name)
	}
	return c
}

// disguised says how c asks for another method, where it matters: methods are
// limited, a person is asked by method, or a bundle wrote the method. "" is not,
// or where every method is granted anyway.
func (h *Host) disguised(c *web.Claim) string {
	but := ""
	switch {
	case c.Tool:
		but = ", and the method of an attached tool, or of a route, is the one that its bundle says"
	case h.cfg.ConfirmExternal:
		but = ", which whoever confirms the request is not asked about; send it by the method that is meant"
	case h.cfg.Gate.Set().MethodsMatter(c.Scheme, c.Host):
		but = ", which the policy's methods are not asked about; send it by the method that is meant"
	default:
		return ""
	}
	if by := c.Other(); by != "" {
		return by + but
	}
	return ""
}
