package policy

import (
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// leaseTable reads [leases]: a capability string and until when, and how often,
// what is left of it may be used. A lease grants nothing.
func (r *reader) leaseTable(t *tomlfile.Table) {
	if !r.needs02(t.Pos, "[leases]") {
		return
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		g, err := caps.ParseGrant(e.Key)
		if err != nil {
			r.add(e.Pos, CodeBadCapability, `such as "fs:write:/home/user/out"`, "%v", err)
			continue
		}
		if g.Family == caps.Tool {
			r.add(e.Pos, CodeBadLease, "lease what the tool needs, or hide it by [deny] tools",
				"%s: a lease is of a capability, and not of a tool", e.Key)
			continue
		}
		key := tomlfile.Value{Kind: tomlfile.String, Pos: e.Pos, Str: e.Key}
		if !r.deniable(&key, g) || !r.is(&e.Value, "a lease", tomlfile.TableKind) {
			continue
		}
		if l, ok := r.lease(e.Value.Table); ok {
			l.Entry = caps.Entry{Grant: g, Pos: place(e.Pos)}
			r.leases = append(r.leases, l)
		}
	}
}

// lease reads { expires, max_uses }. 0 uses are none at all.
func (w *words) lease(t *tomlfile.Table) (caps.Lease, bool) {
	l := caps.Lease{Expires: caps.Forever, MaxUses: caps.Unbounded}
	w.known(t, "a lease", []string{"expires", "max_uses"})
	expires, hasEnd := t.Get("expires")
	uses, hasUses := t.Get("max_uses")
	if !hasEnd && !hasUses {
		w.add(t.Pos, CodeMissing, "{ expires = 2026-12-01T00:00:00Z, max_uses = 10 }",
			"a lease has an end, or a number of uses")
		return l, false
	}
	if hasEnd {
		switch {
		case !w.is(&expires.Value, "expires", tomlfile.DateTime):
			return l, false
		case expires.Value.Time.IsZero():
			w.add(expires.Value.Pos, CodeBadLease, "such as 2026-12-01T00:00:00Z", "expires = %s is in no time zone",
				expires.Value.Str)
			return l, false
		}
		l.Expires = expires.Value.Time.UnixMilli()
	}
	if hasUses {
		switch {
		case !w.is(&uses.Value, "max_uses", tomlfile.Integer):
			return l, false
		case uses.Value.Int < 0:
			w.add(uses.Value.Pos, CodeBadLease, "write 0 for none at all, or leave it out for no restriction", "max_uses is %d",
				uses.Value.Int)
			return l, false
		}
		l.MaxUses = uses.Value.Int
	}
	return l, true
}
