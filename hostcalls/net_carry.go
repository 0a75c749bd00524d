package hostcalls

import (
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/web"
)

// carry refuses a redirect that would take a value of this run along, in its
// URL, to where that may not go. location is as the server wrote it, since a
// host is folded and mapped in its canonical spelling; next is what came of it,
// the zero place if nothing did. To the very server that redirects the value may
// go if it may be put into a request to it; each such use passes the gate.
func (x *exchange) carry(location string, next web.Place) error {
	ids := x.h.valuesIn(location)
	if next.URL != nil {
		ids = append(ids, x.h.valuesIn(next.URL.String())...)
	}
	if len(ids) == 0 {
		return nil
	}
	if next.Scheme != x.Scheme || next.Host != x.Host {
		// Recorded of the server that redirects: the other's name may be the value.
		return x.h.refuse(x.op, x.request(), x.h.scrubText(x.Shown), caps.SecretNotPermitted,
			"the server redirected to another host with a secret in the URL, which does not go there")
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		use := Destination{Host: x.Host}.request(id)
		if _, err := x.h.permit(x.op, use, x.h.shownSecret(use), nil); err != nil {
			return err
		}
	}
	return nil
}

// valuesIn are the secrets of this run of which values are in text.
func (h *Host) valuesIn(text string) []string {
	if h.cfg.Secrets == nil {
		return nil
	}
	var ids []string
	h.cfg.Secrets.Scrub(bytesOf(text), func(id string) { ids = append(ids, id) })
	return ids
}
