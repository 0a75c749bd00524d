package policy

import (
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/tomlfile"
)

// denyTable reads [deny] of a layer. Capabilities are taken away; the other
// keys wait for what they restrict, and until then refuse the document.
func (r *reader) denyTable(t *tomlfile.Table) {
	later := []string{"tools", "tiers", "effects"}
	r.known(t, "[deny]", append([]string{"capabilities"}, later...))
	for _, key := range later {
		if e, ok := t.Get(key); ok {
			r.add(e.Pos, CodeNotEnforced, "remove it to run without it", "%s in [deny] is not enforced by this version of rlp", key)
		}
	}
	e, ok := t.Get("capabilities")
	if !ok || !r.is(&e.Value, "capabilities", tomlfile.Array) {
		return
	}
	r.strings("capabilities", &e.Value, func(item *tomlfile.Value) {
		r.hidden(item)
		list, err := caps.ParseDeny(item.Str)
		if err != nil {
			r.add(item.Pos, CodeBadCapability, "", "%v", err)
			return
		}
		for _, g := range list {
			if r.deniable(item, g) {
				r.deny = append(r.deny, caps.Entry{Grant: g, Pos: place(item.Pos)})
			}
		}
	})
}

// deniable refuses to deny a domain that does not exist: a misspelt name would
// take nothing away.
func (r *reader) deniable(item *tomlfile.Value, g caps.Grant) bool {
	if (g.Family == caps.KBRead || g.Family == caps.KBWrite) && g.Scope != "*" {
		return r.domain(g.Family, item.Str, item.Pos, g.Scope)
	}
	return true
}
