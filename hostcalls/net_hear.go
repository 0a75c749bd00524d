package hostcalls

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"runloop.dev/rlp/caps"
)

// hear looks, from now on, for what host was sent or may be sent: what it says is
// about to be looked at.
func (h *Host) hear(ctx context.Context, host string) {
	if h.cfg.Secrets == nil {
		return
	}
	ids, known := h.bound[host]
	if !known {
		for _, g := range h.cfg.Gate.Set().BaseGrants() {
			if id, to, _ := strings.Cut(g.Scope, "@"); g.Family == caps.Secrets && caps.BoundTo(to, host) {
				ids = append(ids, id)
			}
		}
		if h.bound == nil {
			h.bound = map[string][]string{}
		}
		h.bound[host] = ids
	}
	if err := h.cfg.Secrets.Hear(ctx, host, ids); err != nil {
		h.warn(fmt.Errorf("what %s says is not looked through for every secret that it was sent: %w", host, err))
	}
}

// knows reports whether there is any value that must not be told, nor its length.
func (h *Host) knows() bool { return h.cfg.Secrets != nil && h.cfg.Secrets.Knows() }

// headWithout is a head without this run's secrets, before anything is escaped, and
// without the lengths of a body that may have had one in it.
func (h *Host) headWithout(head http.Header) http.Header {
	if !h.knows() {
		return head
	}
	clean := make(http.Header, len(head))
	for name, values := range head {
		if name == "Content-Length" || name == "Content-Range" {
			continue
		}
		name = h.scrubText(name)
		for _, v := range values {
			clean[name] = append(clean[name], h.scrubText(v))
		}
	}
	return clean
}
