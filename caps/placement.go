package caps

import (
	"math/bits"
	"strings"

	"github.com/bits-and-blooms/bitset"
)

// A nodeModes is a node of a tree that a grant names, in these modes.
type nodeModes struct {
	id    int32
	modes ModeSet
}

// grantNodes is where g lies in t, whose node id is its scope; the second one is
// empty but for secrets. Asking for a handle knows no host, so that giving
// "id@host" gives Get of the id as well; taking it takes the first node alone.
func (t *tree) grantNodes(g Grant, id int32) [2]nodeModes {
	if g.Family != Secrets || strings.IndexByte(g.Scope, '@') < 0 {
		return [2]nodeModes{{id, g.Modes}}
	}
	list := [2]nodeModes{{id, g.Modes &^ (1 << Get)}}
	for t.nodes[id].parent != 0 {
		id = t.nodes[id].parent
	}
	list[1] = nodeModes{id, g.Modes & (1 << Get)}
	return list
}

// A placement is what a layer says about one family, laid out over its tree.
type placement struct {
	layer *Layer
	tree  *tree
	bound ModeSet // modes that have a Bound
	taken ModeSet // modes that any Deny names
	own   []said  // for each node, what entries name that very node
	allow []placed
	deny  []placed
}

type said struct{ allow, deny, spare ModeSet }

type placed struct {
	*Entry
	id int32
}

// place lays l out over the trees. ids are the nodes of its entries, as
// [state.ids] lists them. It is nil for the families that l says nothing about.
func (st *state) place(l *Layer, ids []int32) [numUniverses]*placement {
	var all [numUniverses]*placement
	var allow [numUniverses]int // entries of each family
	for i := range l.Allow {
		allow[l.Allow[i].Grant.Family]++
	}
	of := func(f Family) *placement {
		if all[f] == nil {
			t := st.trees[f]
			all[f] = &placement{layer: l, tree: t, own: make([]said, len(t.nodes))}
			if allow[f] > 0 {
				all[f].allow = make([]placed, 0, allow[f])
			}
		}
		return all[f]
	}
	for _, b := range l.Bounds {
		of(b.Family).bound |= b.Modes
	}
	i := 0
	_ = l.entries(func(e *Entry, r role) error {
		if r != leases {
			of(e.Grant.Family).put(placed{e, ids[i]}, r)
		}
		i++
		return nil
	})
	return all
}

func (p *placement) put(e placed, r role) {
	if e.id == outside {
		if r == allows {
			p.allow = append(p.allow, e)
		}
		return
	}
	grantNodes := p.tree.grantNodes(e.Grant, e.id)
	if r == allows {
		p.allow = append(p.allow, e)
		for _, s := range grantNodes {
			p.own[s.id].allow |= s.modes
		}
		return
	}
	modes := grantNodes[0].modes
	own := []*said{&p.own[e.id]}
	if e.id == 0 && families[p.tree.family].raw {
		own = append(own, &p.own[rawRoot]) // the widest scope is the whole family
	}
	for _, o := range own {
		if r == denies {
			o.deny |= modes
		} else {
			o.spare |= modes
		}
	}
	if r == denies {
		p.deny = append(p.deny, e)
		p.taken |= modes
	}
}

// votes is one bit for each cell that lies inside what the layer leaves; nil
// for a mode, or for them all, that it does not restrict.
func (p *placement) votes() []*bitset.BitSet {
	if p.bound|p.taken == 0 {
		return nil
	}
	leaves := p.leaves()
	out := make([]*bitset.BitSet, families[p.tree.family].modes)
	for m := range out {
		if (p.bound | p.taken).Has(Mode(m)) {
			out[m] = bitset.New(uint(len(leaves)))
		}
	}
	spread(out, leaves)
	return out
}

// leaves is, for each node, the modes in which its cell is left. Parents come
// before children, so one pass hands everything down.
func (p *placement) leaves() []ModeSet {
	n := len(p.own)
	allow, denied := make([]ModeSet, n), make([]ModeSet, n)
	for id := range n {
		s := &p.own[id]
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

// source is the place in the layer that takes node id in mode m away: the deny
// entry that decides, or the bound; no place when the layer leaves it.
func (p *placement) source(id int32, m Mode) Pos {
	for up := id; up >= 0 && p.taken.Has(m); up = p.tree.nodes[up].parent {
		if p.own[up].deny.Has(m) {
			return p.denyAt(up, m)
		}
		if p.own[up].spare.Has(m) {
			break
		}
	}
	for _, b := range p.layer.Bounds {
		if b.Family == p.tree.family && b.Modes.Has(m) {
			return b.Pos
		}
	}
	return Pos{}
}

func (p *placement) denyAt(id int32, m Mode) Pos {
	for _, e := range p.deny {
		if e.Grant.Modes.Has(m) && (e.id == id || e.id == 0 && id == rawRoot && families[p.tree.family].raw) {
			return e.Pos
		}
	}
	return Pos{}
}

// revoked is the widest scopes whose cells went from before to after.
func (p *placement) revoked(before, after []*bitset.BitSet) []Change {
	lost := make([]*bitset.BitSet, len(before))
	any := false
	for m := range lost {
		if before[m] != after[m] {
			lost[m] = before[m].Difference(after[m])
			any = any || lost[m].Any()
		}
	}
	if !any {
		return nil
	}
	held := gather(lost, len(p.tree.nodes))
	tops := make([]nodeModes, 0, 64)
	for id, top := range held {
		if up := p.tree.nodes[id].parent; up >= 0 {
			top &^= held[up]
		}
		if top != 0 {
			tops = append(tops, nodeModes{int32(id), top})
		}
	}
	out := make([]Change, 0, len(tops))
	for _, top := range tops {
		out = p.revoke(out, top.id, top.modes)
	}
	return out
}

// revoke adds the changes for one scope: one for each place that took modes.
func (p *placement) revoke(out []Change, id int32, modes ModeSet) []Change {
	first := len(out)
next:
	for ; modes != 0; modes &= modes - 1 {
		m := Mode(bits.TrailingZeros32(uint32(modes)))
		pos := p.source(id, m)
		for i := first; i < len(out); i++ {
			if out[i].Source == pos {
				out[i].Grant.Modes |= 1 << m
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
	if p.allow == nil {
		return nil
	}
	inside := gather(base, len(p.tree.nodes))
	for id := len(inside) - 1; id > 0; id-- {
		if up := p.tree.nodes[id].parent; up >= 0 {
			inside[up] |= inside[id]
		}
	}
	met := make([]bool, len(p.allow))
	for i, e := range p.allow {
		if e.id == outside {
			continue
		}
		for _, s := range p.tree.grantNodes(e.Grant, e.id) {
			met[i] = met[i] || inside[s.id]&s.modes != 0
		}
	}
	unmet := 0
	for _, m := range met {
		if !m {
			unmet++
		}
	}
	if unmet == 0 {
		return nil
	}
	written := p.placesMet(met)
	var out []Change
	for i, e := range p.allow {
		if met[i] || e.Implied || written[e.Pos] {
			continue
		}
		if out == nil {
			out = make([]Change, 0, unmet)
		}
		if n := len(out); n > 0 && out[n-1].Source == e.Pos && e.Pos != (Pos{}) {
			continue // written once, told once
		}
		out = append(out, Change{Layer: p.layer.Name, Source: e.Pos, Grant: e.Grant, Kind: Ignored})
	}
	return out
}

// placesDiffer reports whether the entries stand one behind the other.
func (p *placement) placesDiffer() bool {
	for i := 1; i < len(p.allow); i++ {
		a, b := &p.allow[i-1].Pos, &p.allow[i].Pos
		if b.Line < a.Line || b.Line == a.Line && b.Column <= a.Column {
			return false
		}
	}
	return true
}

// placesMet are the places that have an entry which meets the base. Where every
// entry has a place of its own, as most documents give, there is nothing to tell.
func (p *placement) placesMet(met []bool) map[Pos]bool {
	if p.placesDiffer() {
		return nil
	}
	places := make(map[Pos]bool, len(met))
	for i, e := range p.allow {
		if met[i] && e.Pos != (Pos{}) {
			places[e.Pos] = true
		}
	}
	return places
}
