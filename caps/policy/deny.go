package policy

import (
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// denyTable reads [deny] of a layer. All of its keys become entries that take
// away: what a tier or an effect stands for is written out by the columns of
// the family table.
func (r *reader) denyTable(t *tomlfile.Table) {
	r.known(t, "[deny]", []string{"capabilities", "tools", "tiers", "effects"})
	list := func(key string, read func(v *tomlfile.Value)) {
		if e, ok := t.Get(key); ok && r.is(&e.Value, key, tomlfile.Array) {
			read(&e.Value)
		}
	}
	list("capabilities", r.denyCapabilities)
	list("tools", r.denyTools)
	list("tiers", func(v *tomlfile.Value) { r.denyTiers("tiers", v) })
	list("effects", func(v *tomlfile.Value) { r.denyEffects("effects", v) })
}

func (r *reader) denyCapabilities(v *tomlfile.Value) {
	r.strings("capabilities", v, func(item *tomlfile.Value) {
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

func (r *reader) denyTiers(key string, v *tomlfile.Value) {
	r.strings(key, v, func(item *tomlfile.Value) {
		tier, ok := caps.ParseTier(item.Str)
		if !ok {
			r.add(item.Pos, CodeBadTier, "one of "+strings.Join(caps.TierNames(), ", "), "there is no privilege tier %q",
				item.Str)
			return
		}
		r.denyAll(item, caps.TierGrants(tier))
	})
}

func (r *reader) denyEffects(key string, v *tomlfile.Value) {
	r.strings(key, v, func(item *tomlfile.Value) {
		effects, ok := caps.ParseEffect(item.Str)
		if !ok {
			r.add(item.Pos, CodeBadEffect, "one of "+strings.Join(caps.EffectNames(), ", "), "there is no effect %q", item.Str)
			return
		}
		r.denyAll(item, caps.EffectGrants(effects))
	})
}

// denyAll denies what a word stands for. The entries are implied: that the base
// does not have each of them is worth no warning.
func (r *reader) denyAll(item *tomlfile.Value, grants []caps.Grant) {
	for _, g := range grants {
		r.deny = append(r.deny, caps.Entry{Grant: g, Pos: place(item.Pos), Implied: true})
	}
}

// deniable refuses to deny a domain that does not exist: a misspelt name would
// take nothing away.
func (w *words) deniable(item *tomlfile.Value, g caps.Grant) bool {
	if (g.Family == caps.KBRead || g.Family == caps.KBWrite) && g.Scope != "*" {
		return w.domain(g.Family, item.Str, item.Pos, g.Scope)
	}
	return true
}
