package gate

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/record/audit"
)

// mostEntries bounds the entries that one record holds of all layers.
const mostEntries = 4096

// Recorded is layers as records hold them: those that restrict something that
// base has, without what is about nothing in it. Restricting nothing, a layer
// is no word in any explanation.
func Recorded(base caps.Set, layers []*caps.Layer) []audit.Layer {
	var list []audit.Layer
	room := mostEntries
	has := about{files: fileScopes(base)}
	for f := range caps.NumFamilies {
		has.families[f] = base.Any(f)
	}
	for _, l := range layers {
		if out, some := recorded(&has, l, &room); some {
			list = append(list, out)
		}
	}
	return list
}

// about is what a set has, for what is about it.
type about struct {
	families [caps.NumFamilies]bool
	files    []string
}

// of reports whether an entry of l restricts any of it. Most of the layer that
// protects is about nothing that was granted.
func (a *about) of(l *caps.Layer, g caps.Grant) bool {
	switch {
	case a == nil || g.Family == caps.Tool:
		return true
	case !a.families[g.Family]:
		return false
	}
	return g.Family != caps.FS || l.Name != caps.ProtectedLayer || near(a.files, g.Scope)
}

// RecordedFloor is the floor of a run as its record holds it: the built-in one
// by its name.
func RecordedFloor(floor *caps.Layer) *audit.Layer {
	if floor == nil {
		return nil
	}
	if strings.HasSuffix(fileOf(floor), builtin) {
		return &audit.Layer{Name: floor.Name, Because: floor.Because.String(), File: fileOf(floor)}
	}
	room := mostEntries
	out, _ := recorded(nil, floor, &room)
	return &out
}

// builtin ends the place of what is in no file.
const builtin = "(built-in)"

// recorded is l as a record holds it, as far as it is about has; nil: all of it.
func recorded(has *about, l *caps.Layer, room *int) (audit.Layer, bool) {
	out := audit.Layer{Name: l.Name, File: fileOf(l)}
	if l.Because != 0 {
		out.Because = l.Because.String()
	}
	keep := func(e caps.Entry) (audit.LayerEntry, bool) {
		if out.Left || !has.of(l, e.Grant) {
			return audit.LayerEntry{}, false
		}
		if *room--; *room < 0 {
			out.Left = true
			return audit.LayerEntry{}, false
		}
		return entryOf(e, out.File), true
	}
	for _, b := range l.Bounds {
		if x, ok := keep(caps.Entry{Grant: caps.Grant{Family: b.Family, Modes: b.Modes}, Pos: b.Pos}); ok {
			out.Bounds = append(out.Bounds, x)
		}
	}
	for _, part := range []struct {
		from []caps.Entry
		to   *[]audit.LayerEntry
	}{{l.Allow, &out.Allow}, {l.Deny, &out.Deny}, {l.Spare, &out.Spare}} {
		for _, e := range part.from {
			if x, ok := keep(e); ok {
				*part.to = append(*part.to, x)
			}
		}
	}
	for _, lease := range l.Leases {
		x := entryOf(lease.Entry, out.File)
		x.Expires, x.MaxUses = lease.Expires, lease.MaxUses
		out.Leases = append(out.Leases, x)
	}
	if m := l.Limits.Map(); len(m) > 0 {
		out.Limits = m
	}
	if m := l.Constraints.Map(); len(m) > 0 {
		out.Constraints = m
	}
	some := len(out.Bounds)+len(out.Deny)+len(out.Leases)+len(out.Limits)+len(out.Constraints) > 0 || out.Left
	return out, some
}

// fileScopes are the paths that base grants.
func fileScopes(base caps.Set) []string {
	var list []string
	for _, g := range base.Grants() {
		if g.Family == caps.FS {
			list = append(list, g.Scope)
		}
	}
	return list
}

// near reports whether a path holds one of others, or lies in one.
func near(others []string, path string) bool {
	return slices.ContainsFunc(others, func(o string) bool { return links.Within(o, path) || links.Within(path, o) })
}

// fileOf is the file that a layer was written in, mostly.
func fileOf(l *caps.Layer) string {
	for _, b := range l.Bounds {
		return b.Pos.File
	}
	for _, e := range l.Deny {
		return e.Pos.File
	}
	return ""
}

func entryOf(e caps.Entry, file string) audit.LayerEntry {
	x := audit.LayerEntry{
		Family: e.Grant.Family.String(), Modes: uint32(e.Grant.Modes), Scope: e.Grant.Scope,
		Line: e.Pos.Line, Column: e.Pos.Column, Implied: e.Implied,
	}
	if e.Pos.File != file {
		x.File = e.Pos.File
	}
	return x
}

// ReadLayer is the layer that a record holds.
func ReadLayer(r *audit.Layer) (*caps.Layer, error) {
	l := &caps.Layer{Name: r.Name, Sum: strings.HasPrefix(r.Name, caps.SumPrefix)}
	for c := range caps.NumCodes {
		if c.String() == r.Because {
			l.Because = c
		}
	}
	for _, part := range []struct {
		from []audit.LayerEntry
		to   func(e caps.Entry, x audit.LayerEntry)
	}{
		{r.Bounds, func(e caps.Entry, _ audit.LayerEntry) {
			l.Bounds = append(l.Bounds, caps.Bound{Family: e.Grant.Family, Modes: e.Grant.Modes, Pos: e.Pos})
		}},
		{r.Allow, func(e caps.Entry, _ audit.LayerEntry) { l.Allow = append(l.Allow, e) }},
		{r.Deny, func(e caps.Entry, _ audit.LayerEntry) { l.Deny = append(l.Deny, e) }},
		{r.Spare, func(e caps.Entry, _ audit.LayerEntry) { l.Spare = append(l.Spare, e) }},
		{r.Leases, func(e caps.Entry, x audit.LayerEntry) {
			l.Leases = append(l.Leases, caps.Lease{Entry: e, Expires: x.Expires, MaxUses: x.MaxUses})
		}},
	} {
		for _, x := range part.from {
			e, err := readEntry(r, x)
			if err != nil {
				return nil, err
			}
			part.to(e, x)
		}
	}
	for key, v := range r.Limits {
		for n := range caps.NumLimits {
			if n.String() == key {
				l.Limits = l.Limits.With(n, v)
			}
		}
	}
	for key, v := range r.Constraints {
		for c := range caps.NumConstraints {
			if table, name := c.Key(); table+"."+name == key {
				l.Constraints = l.Constraints.With(c, v)
			}
		}
	}
	return l, nil
}

func readEntry(r *audit.Layer, x audit.LayerEntry) (caps.Entry, error) {
	e := caps.Entry{Pos: caps.Pos{File: r.File, Line: x.Line, Column: x.Column}, Implied: x.Implied}
	if x.File != "" {
		e.Pos.File = x.File
	}
	e.Grant = caps.Grant{Modes: caps.ModeSet(x.Modes), Scope: x.Scope}
	f, known := caps.FamilyOf(x.Family)
	switch {
	case known:
		e.Grant.Family = f
	case x.Family == caps.Tool.String():
		e.Grant.Family = caps.Tool
	default:
		return e, fmt.Errorf("the record of layer %s names %q, which is no family", r.Name, x.Family)
	}
	return e, nil
}
