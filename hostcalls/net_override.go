package hostcalls

import (
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/web"
)

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
	case h.methodsMatter(c.Scheme, c.Host):
		but = ", which the policy's methods are not asked about; send it by the method that is meant"
	default:
		return ""
	}
	if by := c.Other(); by != "" {
		return by + but
	}
	return ""
}

// methodsMatter reports whether the run may send some requests over scheme to
// host, and others not or only so often.
func (h *Host) methodsMatter(scheme, host string) bool {
	set := h.cfg.Gate.Set()
	all, err := caps.NetModes(scheme)
	if err != nil {
		return true
	}
	for mode := caps.Mode(0); all>>mode != 0; mode++ {
		if all.Has(mode) && !set.Check(caps.Request{Family: caps.Net, Mode: mode, Name: host}).Allow {
			return true
		}
	}
	return slices.ContainsFunc(set.Leases(), func(l caps.Lease) bool {
		return l.Grant.Family == caps.Net && l.Grant.Modes&all != all && l.Grant.Modes&all != 0
	})
}
