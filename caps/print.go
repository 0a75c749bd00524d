package caps

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/bits-and-blooms/bitset"
	"github.com/zeebo/blake3"
)

// Grants is what s allows: the widest scopes, sorted, the modes of one scope in
// one grant. What is denied within them is [Set.Except]; a grant within such a
// hole is listed as well, so that of the grants and holes that hold a request
// the deepest decides.
func (s Set) Grants() []Grant { return s.state().tops(s.state().eff) }

// BaseGrants is what the base of s allows, as [Set.Grants] lists it.
func (s Set) BaseGrants() []Grant { return s.state().tops(s.state().base) }

// Except is what s denies within its grants, sorted.
func (s Set) Except() []Grant {
	st := s.state()
	var out []Grant
	for f := range NumFamilies {
		_, holes := st.edges(f, st.eff[f])
		out = append(out, holes...)
	}
	slices.SortFunc(out, compareGrants)
	return out
}

// Tools is what layers left of the host calls by name, and what is denied
// within; both are empty when no layer speaks of them.
func (s Set) Tools() (left, hidden []Grant) {
	left, hidden = s.state().edges(Tool, s.state().eff[Tool])
	switch {
	case len(left) == 0:
		return nil, []Grant{{Tool, 1, "*"}}
	case left[0].Scope == "*" && len(hidden) == 0:
		return nil, nil
	}
	return left, hidden
}

func (st *state) tops(v votes) []Grant {
	var out []Grant
	for f := range NumFamilies {
		tops, _ := st.edges(f, v[f])
		if f == Secrets {
			tops = bindSecrets(tops)
		}
		out = append(out, tops...)
	}
	slices.SortFunc(out, compareGrants)
	return out
}

// edges is where bits change between a scope and the one that holds it.
func (st *state) edges(f Family, bits []*bitset.BitSet) (tops, holes []Grant) {
	nodes := st.trees[f].nodes
	held := gather(bits, len(nodes))
	for id := range nodes {
		var above ModeSet
		if up := nodes[id].parent; up >= 0 {
			above = held[up]
		}
		if top := held[id] &^ above; top != 0 {
			tops = append(tops, Grant{f, top, nodes[id].name})
		}
		if hole := above &^ held[id]; hole != 0 {
			holes = append(holes, Grant{f, hole, nodes[id].name})
		}
	}
	return tops, holes
}

// bindSecrets writes Get of an id and Use of it towards a host as one grant of
// "id@host", which means both.
func bindSecrets(tops []Grant) []Grant {
	gets := make(map[string]bool) // ids that may only be got; true once a host has one
	for _, g := range tops {
		if g.Modes == 1<<Get {
			gets[g.Scope] = false
		}
	}
	for i, g := range tops {
		id, _, bound := strings.Cut(g.Scope, "@")
		if _, ok := gets[id]; ok && bound { // of what is bound only Use can be a top
			tops[i].Modes |= 1 << Get
			gets[id] = true
		}
	}
	return slices.DeleteFunc(tops, func(g Grant) bool { return gets[g.Scope] })
}

// Strings is [Set.Grants] as capability strings, sorted.
func (s Set) Strings() []string { return words(s.Grants()) }

func words(list []Grant) []string {
	var out []string
	for _, g := range list {
		out = append(out, g.Strings()...)
	}
	slices.Sort(out)
	return out
}

// String is "∅", or the capability strings in braces, with what is denied
// within them after "except".
func (s Set) String() string {
	grants := s.Strings()
	if len(grants) == 0 {
		return "∅"
	}
	if holes := words(s.Except()); len(holes) > 0 {
		grants = append(append(grants, "except"), holes...)
	}
	return "{" + strings.Join(grants, " ") + "}"
}

// Digest is the BLAKE3-256 of what s allows and of its limits. It is the same
// for sets that allow the same, however they came about: the order of layers,
// duplicates, spellings and scopes that change nothing are not in it.
func (s Set) Digest() [32]byte {
	st := s.state()
	b := []byte("rlp-caps-v1\n")
	for f := range NumFamilies {
		tops, holes := st.edges(f, st.eff[f])
		b = append(b, f.String()...)
		b = appendGrants(append(b, '+'), tops)
		b = appendGrants(append(b, '-'), holes)
	}
	for l := range NumLimits {
		if v, ok := st.limits.Get(l); ok {
			b = binary.BigEndian.AppendUint64(append(b, l.String()...), uint64(v))
		}
	}
	return blake3.Sum256(st.appendTerms(b))
}

// appendTerms adds what most sets have none of: nothing then.
func (st *state) appendTerms(b []byte) []byte {
	if left, hidden := (Set{st}).Tools(); len(left)+len(hidden) > 0 && !(Set{st}).IsEmpty() {
		b = append(b, Tool.String()...)
		b = appendGrants(append(b, '+'), left)
		b = appendGrants(append(b, '-'), hidden)
	}
	for c := range NumConstraints {
		if v, ok := st.terms.Get(c); ok {
			table, key := c.Key()
			b = binary.BigEndian.AppendUint64(append(b, table+"."+key...), uint64(v))
		}
	}
	for _, l := range st.leases {
		b = appendGrants(append(b, "lease"...), []Grant{l.Grant})
		b = binary.BigEndian.AppendUint64(b, uint64(l.Expires))
		b = binary.BigEndian.AppendUint64(b, uint64(l.MaxUses))
	}
	return b
}

func appendGrants(b []byte, list []Grant) []byte {
	slices.SortFunc(list, compareGrants)
	b = binary.BigEndian.AppendUint32(b, uint32(len(list)))
	for _, g := range list {
		b = binary.BigEndian.AppendUint32(b, uint32(g.Modes))
		b = binary.BigEndian.AppendUint32(b, uint32(len(g.Scope)))
		b = append(b, g.Scope...)
	}
	return b
}
