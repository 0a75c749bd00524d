package policy

import (
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A listField is a field of [constraints.<table>] that names scopes: it bounds
// what the key of [capabilities] would bound.
type listField struct {
	table, field string
	keys         []string // of [capabilities]
	read         func(r *reader, v *tomlfile.Value)
}

func listFields() []listField {
	names := func(k string) func(*reader, *tomlfile.Value) {
		return func(r *reader, v *tomlfile.Value) { r.constrainKey(k, v) }
	}
	return []listField{
		{"net", "hosts", []string{"net"}, nil},
		{"net", "methods", []string{"net"}, nil},
		{"fs", "paths", []string{"fs", "fs_ro", "fs_rw"}, constrainPaths},
		{"kb", "tables", []string{"kb_read", "kb_write"}, constrainTables},
		{"exec", "programs", []string{"exec"}, names("exec")},
		{"model", "models", []string{"model"}, names("model")},
		{"secrets", "ids", []string{"secrets"}, names("secrets")},
		{"env", "names", []string{"env"}, names("env")},
		{"mcp", "servers", []string{"mcp"}, names("mcp")},
		{"agents", "names", []string{"agents"}, names("agents")},
	}
}

func constraintTables() []string {
	var list []string
	for _, f := range listFields() {
		if n := len(list); n == 0 || list[n-1] != f.table {
			list = append(list, f.table)
		}
	}
	return list
}

// constraintFields are the fields of one table: its lists, then what caps has.
func constraintFields(table string) []string {
	var list []string
	for _, f := range listFields() {
		if f.table == table {
			list = append(list, f.field)
		}
	}
	for c := range caps.NumConstraints {
		if t, key := c.Key(); t == table {
			list = append(list, key)
		}
	}
	return list
}

func (r *reader) constraintsTable(t *tomlfile.Table) {
	for i := range t.Entries {
		e := &t.Entries[i]
		where := "[constraints." + e.Key + "]"
		switch {
		case len(constraintFields(e.Key)) == 0:
			r.add(e.Pos, CodeUnknownKey, tomlfile.Nearest(e.Key, constraintTables()), "unknown key %q in [constraints]", e.Key)
		case r.is(&e.Value, where, tomlfile.TableKind):
			r.constrain(e.Key, where, &e.Value)
		}
	}
}

// constrain reads what bounds the use of one family.
func (r *reader) constrain(table, where string, v *tomlfile.Value) {
	t := v.Table
	r.known(t, where, constraintFields(table))
	for _, f := range listFields() {
		e, ok := t.Get(f.field)
		if !ok || f.table != table || r.saidElsewhere(e, where, f) || !r.is(&e.Value, f.field, tomlfile.Array) {
			continue
		}
		if f.read != nil {
			f.read(r, &e.Value)
		}
	}
	if table == "net" {
		r.constrainNet(v)
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		if c, ok := caps.ConstraintOf(table, e.Key); ok {
			if n, ok := r.condition(c, e); ok {
				r.conditions = r.conditions.Meet(caps.Constraints{}.With(c, n))
			}
		}
	}
}

// saidElsewhere refuses a list where [capabilities] bounds the same: a document
// that says one thing twice would mean the union where each was meant to
// narrow.
func (r *reader) saidElsewhere(e *tomlfile.Entry, where string, f listField) bool {
	for _, key := range f.keys {
		if r.bounded[key] {
			r.add(e.Pos, CodeTwoSpellings, "keep one", "%s in %s and %s in [capabilities] bound the same", f.field, where, key)
			return true
		}
	}
	return false
}

// condition reads a field that is no scope, by its declared type.
func (w *words) condition(c caps.Constraint, e *tomlfile.Entry) (int64, bool) {
	v := &e.Value
	switch {
	case c == caps.NetMinTLS:
		if !w.is(v, e.Key, tomlfile.String) {
			return 0, false
		}
		n, ok := map[string]int64{"1.2": 12, "1.3": 13}[v.Str]
		if !ok {
			w.add(v.Pos, CodeBadConstraint, `"1.2" or "1.3"`, "%s is %q", e.Key, v.Str)
		}
		return n, ok
	case c.Polarity().IsSwitch():
		if !w.is(v, e.Key, tomlfile.Bool) {
			return 0, false
		}
		if v.Bool {
			return 1, true
		}
		return 0, true
	case !w.is(v, e.Key, tomlfile.Integer):
		return 0, false
	case v.Int < 0:
		w.add(v.Pos, CodeBadConstraint, "write 0 for none at all, or leave it out for no restriction", "%s is %d", e.Key,
			v.Int)
		return 0, false
	}
	return v.Int, true
}

// constrainNet reads hosts and methods, which are one bound.
func (r *reader) constrainNet(v *tomlfile.Value) {
	hosts, saysHosts := v.Table.Get("hosts")
	methods, saysMethods := v.Table.Get("methods")
	if !saysHosts && !saysMethods || r.bounded["net"] || saysHosts && hosts.Value.Kind != tomlfile.Array {
		return
	}
	modes := netModes{caps.HTTPS, caps.HTTP, caps.TCP}
	if saysMethods {
		if methods.Value.Kind != tomlfile.Array {
			return
		}
		set, ok := r.methods(&methods.Value)
		if !ok {
			return
		}
		modes = netModes{https: modes.https & set, http: modes.http & set}
	}
	r.boundNet(v, hosts, modes)
}

func constrainPaths(r *reader, v *tomlfile.Value) {
	all := caps.AllModes(caps.FS)
	r.bound(caps.FS, all, v)
	r.strings("paths", v, func(item *tomlfile.Value) {
		r.hidden(item)
		if p, ok := r.path(item, item.Str); ok {
			r.grant(item, item.Str, caps.Grant{Family: caps.FS, Modes: all, Scope: p})
		}
	})
}

// constrainTables bounds reading and writing alike; X_raw is read alone.
func constrainTables(r *reader, v *tomlfile.Value) {
	r.bound(caps.KBRead, 1, v)
	r.bound(caps.KBWrite, 1, v)
	r.strings("tables", v, func(item *tomlfile.Value) {
		if !r.domain(caps.KBRead, "tables", item.Pos, item.Str) {
			return
		}
		gs := []caps.Grant{{Family: caps.KBRead, Modes: 1, Scope: item.Str}}
		if !strings.HasSuffix(item.Str, rawSuffix) {
			gs = append(gs, caps.Grant{Family: caps.KBWrite, Modes: 1, Scope: item.Str})
		}
		r.grant(item, item.Str, gs...)
	})
}

// constrainKey reads a list as the key of [capabilities] reads it.
func (r *reader) constrainKey(name string, v *tomlfile.Value) {
	for _, k := range keys() {
		if k.name == name {
			k.read(r, k, v)
		}
	}
}
