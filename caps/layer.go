package caps

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bits-and-blooms/bitset"
)

// A Kind says what became of something that a layer or the base names.
type Kind uint8

// The kinds of change.
const (
	Revoked Kind = iota // the base grants it and this layer takes it away
	Ignored             // this layer would allow it, but the base never grants it
)

// String is "revoked" or "ignored".
func (k Kind) String() string {
	if k == Ignored {
		return "ignored"
	}
	return "revoked"
}

// A Change is one thing that a layer did, or could not do. Source is the place
// in the layer that did it: the deny entry, or what bounds the family when the
// grant is merely absent there.
type Change struct {
	Layer  string
	Source Pos
	Grant  Grant
	Kind   Kind
}

// MarshalJSON gives {"layer","source","capability","kind"}.
func (c Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Layer      string `json:"layer"`
		Source     string `json:"source"`
		Capability string `json:"capability"`
		Kind       string `json:"kind"`
	}{c.Layer, c.Source.String(), c.Grant.String(), c.Kind.String()})
}

func compareChanges(a, b Change) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind), compareGrants(a.Grant, b.Grant),
		strings.Compare(a.Source.File, b.Source.File),
		cmp.Compare(a.Source.Line, b.Source.Line), cmp.Compare(a.Source.Column, b.Source.Column),
	)
}

// Narrow is s met with l: nothing that s refuses is allowed, and nothing that l
// refuses. It is the only step there is after [Base]. The changes are sorted.
//
// A layer that cannot be applied (a scope that is not canonical, too many
// scopes) is an error, and the Set that comes with it grants nothing.
func (s Set) Narrow(l *Layer) (Set, []Change, error) {
	st, err := s.state().intern(l)
	if err != nil {
		return s.state().close(l, err)
	}
	next := *st
	next.limits = st.limits.Min(l.Limits)
	applied := step{layer: l.clone()}
	var changes []Change
	for f := range NumFamilies {
		p := st.place(f, l)
		applied.votes[f] = p.votes()
		next.eff[f] = meet(st.eff[f], applied.votes[f])
		changes = append(changes, p.revoked(st.eff[f], next.eff[f])...)
		changes = append(changes, p.ignored(st.base[f])...)
	}
	next.steps = append(slices.Clip(st.steps), applied)
	slices.SortFunc(changes, compareChanges)
	return Set{&next}, slices.CompactFunc(changes, func(a, b Change) bool { return a == b }), nil
}

// Intern makes room in the universe for what layers name, so that a later
// Narrow by any of them copies no universe. It changes no decision.
func (s Set) Intern(layers ...*Layer) (Set, error) {
	st := s.state()
	for _, l := range layers {
		next, err := st.intern(l)
		if err != nil {
			closed, _, err := st.close(l, err)
			return closed, err
		}
		st = next
	}
	return Set{st}, nil
}

// close is a set that grants nothing, because l could not be applied.
func (st *state) close(l *Layer, err error) (Set, []Change, error) {
	next := *st
	applied := step{layer: &Layer{Name: l.Name}}
	var changes []Change
	for f := range NumFamilies {
		next.eff[f] = emptyVotes(f, 1)
		applied.votes[f] = next.eff[f]
	}
	for _, g := range (Set{st}).Grants() {
		changes = append(changes, Change{Layer: l.Name, Grant: g, Kind: Revoked})
	}
	next.limits = st.limits.Min(l.Limits)
	next.steps = append(slices.Clip(st.steps), applied)
	next.closed = err
	return Set{&next}, changes, fmt.Errorf("narrowing by %s: %w", l.Name, err)
}

// meet is a AND b; a nil bitset of b restricts nothing.
func meet(a, b []*bitset.BitSet) []*bitset.BitSet {
	if b == nil {
		return a
	}
	out := slices.Clone(a)
	for m := range out {
		if b[m] != nil {
			out[m] = a[m].Intersection(b[m])
		}
	}
	return out
}

// entries calls do for every entry of l.
func (l *Layer) entries(do func(e Entry) error) error {
	for _, list := range [][]Entry{l.Allow, l.Deny, l.Spare} {
		for _, e := range list {
			if err := do(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// intern is st with a universe that has every scope of l: st itself when it has
// them already.
func (st *state) intern(l *Layer) (*state, error) {
	if st.closed != nil {
		return nil, st.closed
	}
	var missing [NumFamilies]int
	err := l.entries(func(e Entry) error {
		if err := checkGrant(e.Grant); err != nil {
			return fmt.Errorf("%w%s", err, at(e.Pos))
		}
		if st.trees[e.Grant.Family].exact(e.Grant.Scope) < 0 {
			missing[e.Grant.Family]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, b := range l.Bounds {
		if b.Family >= NumFamilies {
			return nil, fmt.Errorf("bound of family %d, which there is not%s", b.Family, at(b.Pos))
		}
	}
	if missing == ([NumFamilies]int{}) {
		return st, nil
	}
	next := *st
	for f, n := range missing {
		if n > 0 {
			next.trees[f] = st.trees[f].clone(n)
		}
	}
	_ = l.entries(func(e Entry) error {
		if f := e.Grant.Family; missing[f] > 0 {
			next.name(next.trees[f], next.trees[f].intern(e.Grant.Scope))
		}
		return nil
	})
	if next.full() {
		return nil, ErrTooManyScopes
	}
	next.steps = slices.Clone(st.steps)
	for f, n := range missing {
		if n > 0 {
			next.extend(Family(f), len(st.trees[f].nodes))
		}
	}
	return &next, nil
}

// extend gives the nodes of f from the old one on their bits: a new scope splits
// the cell of its parent, so it has its parent's bit.
func (st *state) extend(f Family, old int) {
	t := st.trees[f]
	longer := func(list []*bitset.BitSet) []*bitset.BitSet {
		list = slices.Clone(list)
		for m, b := range list {
			if b == nil {
				continue
			}
			wide := bitset.New(uint(len(t.nodes)))
			b.Copy(wide)
			for id := old; id < len(t.nodes); id++ {
				if wide.Test(uint(t.nodes[id].parent)) {
					wide.Set(uint(id))
				}
			}
			list[m] = wide
		}
		return list
	}
	st.base[f] = longer(st.base[f])
	st.eff[f] = longer(st.eff[f])
	for i := range st.steps {
		st.steps[i].votes[f] = longer(st.steps[i].votes[f])
	}
}

// A spot is where in a tree a grant lies.
type spot struct {
	scope string
	modes ModeSet
}

// places is where g lies. Only secrets have two: asking for a handle knows no
// host, so that "id@host" gives Get of the id, and takes none of it away.
func places(g Grant, gives bool) []spot {
	if g.Family != Secrets {
		return []spot{{g.Scope, g.Modes}}
	}
	id, _, bound := strings.Cut(g.Scope, "@")
	if !bound {
		return []spot{{g.Scope, g.Modes}}
	}
	list := []spot{{g.Scope, g.Modes &^ (1 << Get)}}
	if gives && g.Modes.Has(Get) {
		list = append(list, spot{id, 1 << Get})
	}
	return list
}
