package caps

import (
	"github.com/bits-and-blooms/bitset"
)

// A placement is what a layer says about one family, laid out over its tree:
// for each node the modes in which an entry names that very node.
type placement struct {
	layer *Layer
	tree  *tree
	bound ModeSet // modes that have a Bound
	deny  ModeSet // modes that any Deny names
	own   []said
}

type said struct{ allow, deny, spare ModeSet }

// place lays l out over the tree of f; every scope of l is in the universe. It
// is nil when l says nothing about f.
func (st *state) place(f Family, l *Layer) *placement {
	p := &placement{layer: l, tree: st.trees[f]}
	for _, b := range l.Bounds {
		if b.Family == f {
			p.bound |= b.Modes
		}
	}
	p.put(l.Allow, true, func(s *said, m ModeSet) { s.allow |= m })
	p.put(l.Spare, false, func(s *said, m ModeSet) { s.spare |= m })
	p.put(l.Deny, false, func(s *said, m ModeSet) { s.deny |= m; p.deny |= m })
	if p.own == nil && p.bound == 0 {
		return nil
	}
	if p.own == nil {
		p.own = make([]said, len(p.tree.nodes))
	}
	if families[f].raw {
		p.own[rawRoot].deny |= p.own[0].deny // a Deny of the widest scope takes the family
		p.own[rawRoot].spare |= p.own[0].spare
	}
	return p
}

func (p *placement) put(list []Entry, gives bool, add func(s *said, m ModeSet)) {
	for i := range list {
		g := list[i].Grant
		if g.Family != p.tree.family {
			continue
		}
		if p.own == nil {
			p.own = make([]said, len(p.tree.nodes))
		}
		for _, s := range places(g, gives) {
			add(&p.own[p.tree.exact(s.scope)], s.modes)
		}
	}
}

// votes is one bit for each cell that lies inside what the layer leaves; nil
// for a mode, or for them all, that it does not restrict.
func (p *placement) votes() []*bitset.BitSet {
	if p == nil || p.bound|p.deny == 0 {
		return nil
	}
	leaves := p.leaves()
	out := make([]*bitset.BitSet, families[p.tree.family].modes)
	for m := range out {
		if !(p.bound | p.deny).Has(Mode(m)) {
			continue
		}
		b := bitset.New(uint(len(leaves)))
		words := b.Words()
		for id, set := range leaves {
			words[id>>6] |= uint64(set>>m&1) << (id & 63)
		}
		out[m] = b
	}
	return out
}

// leaves is, for each node, the modes in which its cell is left. Parents come
// before children, so one pass hands everything down.
func (p *placement) leaves() []ModeSet {
	n := len(p.own)
	allow, denied := make([]ModeSet, n), make([]ModeSet, n)
	for id := range n {
		s := p.own[id]
		if up := p.tree.nodes[id].parent; up >= 0 {
			allow[id], denied[id] = allow[up], denied[up]
		}
		allow[id] |= s.allow
		denied[id] = denied[id]&^s.spare | s.deny
	}
	for id := range n {
		allow[id] = (allow[id] | ^p.bound) &^ denied[id]
	}
	return allow
}

// source is the entry that takes node id in mode m away: the deny entry that
// decides, or the bound; false when the layer leaves it.
func (p *placement) source(id int32, m Mode) (Pos, bool) {
	for up := id; up >= 0; up = p.tree.nodes[up].parent {
		if p.own[up].deny.Has(m) {
			return p.denyAt(up, m), true
		}
		if p.own[up].spare.Has(m) {
			break
		}
	}
	for up := id; up >= 0; up = p.tree.nodes[up].parent {
		if p.own[up].allow.Has(m) {
			return Pos{}, false
		}
	}
	for _, b := range p.layer.Bounds {
		if b.Family == p.tree.family && b.Modes.Has(m) {
			return b.Pos, true
		}
	}
	return Pos{}, false
}

func (p *placement) denyAt(id int32, m Mode) Pos {
	for _, e := range p.layer.Deny {
		if e.Grant.Family != p.tree.family || !e.Grant.Modes.Has(m) {
			continue
		}
		at := p.tree.exact(e.Grant.Scope)
		if at == id || at == 0 && id == rawRoot {
			return e.Pos
		}
	}
	return Pos{}
}

// revoked is the widest scopes whose cells went from before to after.
func (p *placement) revoked(before, after []*bitset.BitSet) []Change {
	if p == nil {
		return nil
	}
	lost := make([]*bitset.BitSet, len(before))
	any := false
	for m := range lost {
		lost[m] = before[m].Difference(after[m])
		any = any || lost[m].Any()
	}
	if !any {
		return nil
	}
	n := len(p.tree.nodes)
	held := gather(lost, n)
	var out []Change
	for id := range n {
		top := held[id]
		if up := p.tree.nodes[id].parent; up >= 0 {
			top &^= held[up]
		}
		if top != 0 {
			out = p.revoke(out, int32(id), top)
		}
	}
	return out
}

// revoke adds the changes for one scope: one for each place that took modes.
func (p *placement) revoke(out []Change, id int32, modes ModeSet) []Change {
	first := len(out)
next:
	for m := range families[p.tree.family].modes {
		if !modes.Has(m) {
			continue
		}
		pos, _ := p.source(id, m)
		for i := range out[first:] {
			if out[first+i].Source == pos {
				out[first+i].Grant.Modes |= 1 << m
				continue next
			}
		}
		g := Grant{Family: p.tree.family, Modes: 1 << m, Scope: p.tree.nodes[id].name}
		out = append(out, Change{Layer: p.layer.Name, Source: pos, Grant: g, Kind: Revoked})
	}
	return out
}

// ignored is the allow entries that do not meet the base at all.
func (p *placement) ignored(base []*bitset.BitSet) []Change {
	if p == nil {
		return nil
	}
	var list []Entry
	for _, e := range p.layer.Allow {
		if e.Grant.Family == p.tree.family {
			list = append(list, e)
		}
	}
	if list == nil {
		return nil
	}
	n := len(p.tree.nodes)
	inside := gather(base, n)
	for id := n - 1; id > 0; id-- {
		if up := p.tree.nodes[id].parent; up >= 0 {
			inside[up] |= inside[id]
		}
	}
	met := make(map[Pos]bool)
	var out []Change
	for _, e := range list {
		if p.meets(e, inside) {
			met[e.Pos] = true
		}
	}
	for _, e := range list {
		if met[e.Pos] && e.Pos != (Pos{}) || e.Implied || p.meets(e, inside) {
			continue
		}
		out = append(out, Change{Layer: p.layer.Name, Source: e.Pos, Grant: e.Grant, Kind: Ignored})
	}
	return out
}

func (p *placement) meets(e Entry, inside []ModeSet) bool {
	for _, s := range places(e.Grant, true) {
		if inside[p.tree.exact(s.scope)]&s.modes != 0 {
			return true
		}
	}
	return false
}
