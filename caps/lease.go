package caps

import (
	"math"
	"slices"
)

// Forever and Unbounded are what a lease says that bounds only the other thing.
const (
	Forever   = math.MaxInt64
	Unbounded = math.MaxInt64
)

// A Lease bounds what is left of a scope: until Expires, in milliseconds since
// 1970, and for MaxUses allowed requests within it. The zero Lease is over.
type Lease struct {
	Entry
	Expires int64
	MaxUses int64
}

// A Held is a lease as a set holds it: with the first layer that says so, as
// [Decision.Layer] counts.
type Held struct {
	Lease
	Layer int16
}

// Leases are those of every layer, sorted; of one scope the earliest end and
// the fewest uses.
func (s Set) Leases() []Lease { return slices.Clone(s.state().leases) }

// MethodsMatter reports whether s allows some requests over scheme to hostPort and others
// not, or only so often: then each is to be of the method that it says.
func (s Set) MethodsMatter(scheme, hostPort string) bool {
	modes, err := NetModes(scheme)
	if err != nil {
		return true
	}
	for m := Mode(0); modes>>m != 0; m++ {
		if modes.Has(m) && !s.Check(Request{Family: Net, Mode: m, Name: hostPort}).Allow {
			return true
		}
	}
	return slices.ContainsFunc(s.state().leases, func(l Lease) bool {
		some := l.Grant.Modes & modes
		return l.Grant.Family == Net && some != 0 && some != modes && BoundTo(l.Grant.Scope, hostPort)
	})
}

// HeldLeases are the leases with the layer whose word each one is.
func (s Set) HeldLeases() []Held {
	st := s.state()
	var list []Held
	for _, l := range st.leases {
		h := Held{Lease: l}
		for i := range st.steps {
			if slices.ContainsFunc(st.steps[i].layer.Leases, func(x Lease) bool {
				return x.Grant == l.Grant && (x.Expires == l.Expires || x.MaxUses == l.MaxUses)
			}) {
				h.Layer = int16(i + 1)
				break
			}
		}
		list = append(list, h)
	}
	return list
}

// Counted says of scopes of f, by their ids, whether a lease bounds how often
// something may be done within one by a mode.
func (s Set) Counted(f Family) func(id int32, m Mode) bool {
	var leases []Lease
	for _, l := range s.state().leases {
		if l.Grant.Family == f && l.MaxUses != Unbounded {
			leases = append(leases, l)
		}
	}
	return func(id int32, m Mode) bool {
		return slices.ContainsFunc(leases, func(l Lease) bool {
			return l.Grant.Modes.Has(m) && s.Enclosing(f, id, func(up int32) bool {
				return s.Scope(f, up) == l.Grant.Scope
			}) >= 0
		})
	}
}

// Ending is when the first lease ends of what is left of f, [Forever] when none does.
func (s Set) Ending(f Family) int64 {
	end := int64(Forever)
	for _, l := range s.state().leases {
		id := s.ScopeID(f, l.Grant.Scope)
		for m := range families[f].modes {
			if l.Grant.Family == f && l.Grant.Modes.Has(m) && s.Holds(id, f, m) {
				end = min(end, l.Expires)
			}
		}
	}
	return end
}

// ScopeID is the id of a scope of f, -1 when the universe does not have it.
func (s Set) ScopeID(f Family, scope string) int32 {
	if f >= numUniverses || !isScope(f, scope) {
		return -1
	}
	return s.state().trees[f].exact(scope)
}

// lease is the leases of st met with those of l.
func (st *state) lease(l *Layer) []Lease {
	list := slices.Clone(st.leases)
	for _, more := range l.Leases {
		i := slices.IndexFunc(list, func(have Lease) bool { return have.Grant == more.Grant })
		if i < 0 {
			list = append(list, more)
			continue
		}
		list[i].Expires = min(list[i].Expires, more.Expires)
		list[i].MaxUses = min(list[i].MaxUses, more.MaxUses)
	}
	slices.SortFunc(list, func(a, b Lease) int { return compareGrants(a.Grant, b.Grant) })
	return list
}
