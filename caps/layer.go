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

func compareChanges(a, b *Change) int {
	if a.Kind != b.Kind {
		return cmp.Compare(a.Kind, b.Kind)
	}
	if c := compareGrants(a.Grant, b.Grant); c != 0 {
		return c
	}
	return cmp.Or(
		strings.Compare(a.Source.File, b.Source.File),
		cmp.Compare(a.Source.Line, b.Source.Line), cmp.Compare(a.Source.Column, b.Source.Column),
	)
}

// ProtectedLayer is the name of the layer of every launch that keeps from agents
// what is the host's own.
const ProtectedLayer = "protected"

// HostLayer is what who does not operate the host is told instead of
// [ProtectedLayer].
const HostLayer = "host"

// Narrow is s met with l: nothing that s refuses is allowed, and nothing that l
// refuses. It is the only step there is after [Base]. The changes are sorted.
//
// A layer that cannot be applied (a scope that is not canonical, too many
// scopes) is an error, and the Set that comes with it grants nothing.
func (s Set) Narrow(l *Layer) (Set, []Change, error) {
	st, ids, err := s.state().intern(l)
	if err != nil {
		return s.state().close(l, err)
	}
	next := *st
	next.limits = st.limits.Min(l.Limits)
	next.terms = st.terms.Meet(l.Constraints)
	next.leases = st.lease(l)
	applied := step{layer: l.clone()}
	var revoked, ignored [][]Change
	for f, p := range st.place(applied.layer, ids) {
		if p == nil {
			continue
		}
		f := Family(f)
		applied.votes[f] = p.votes()
		next.eff[f] = meet(st.eff[f], applied.votes[f])
		revoked = append(revoked, p.revoked(st.eff[f], next.eff[f]))
		ignored = append(ignored, p.ignored(st.base[f]))
	}
	next.steps = append(slices.Clip(st.steps), applied)
	return Set{&next}, sorted(slices.Concat(revoked, ignored)), nil
}

func sorted(lists [][]Change) []Change {
	var order []*Change
	for _, list := range lists {
		order = slices.Grow(order, len(list))
		for i := range list {
			order = append(order, &list[i])
		}
	}
	slices.SortFunc(order, compareChanges)
	out := make([]Change, 0, len(order))
	for _, c := range order {
		if n := len(out); n == 0 || out[n-1] != *c {
			out = append(out, *c)
		}
	}
	return slices.Clip(out)
}

// Intern makes room in the universe for what layers name, so that a later
// Narrow by any of them copies no universe. It changes no decision.
func (s Set) Intern(layers ...*Layer) (Set, error) {
	st := s.state()
	for _, l := range layers {
		next, _, err := st.intern(l)
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
	for f := range numUniverses {
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

// A role is which list of a layer an entry is in.
type role uint8

const (
	allows role = iota
	denies
	spares
	leases // names a scope; what it says of it is no bit
)

// entries calls do for every entry of l, in a fixed order.
func (l *Layer) entries(do func(e *Entry, r role) error) error {
	for r, list := range [][]Entry{allows: l.Allow, denies: l.Deny, spares: l.Spare} {
		for i := range list {
			if err := do(&list[i], role(r)); err != nil {
				return err
			}
		}
	}
	for i := range l.Leases {
		if err := do(&l.Leases[i].Entry, leases); err != nil {
			return err
		}
	}
	return nil
}

// ids are the nodes of l's entries, -1 for scopes that are not in the universe,
// and how many of those there are of each family that the universe has to make
// room for. A scope that is not there has nothing below it; one that lies where
// the base grants nothing can change no decision, and stays out.
func (st *state) ids(l *Layer) (ids []int32, missing [numUniverses]int, err error) {
	ids = make([]int32, 0, len(l.Allow)+len(l.Deny)+len(l.Spare)+len(l.Leases))
	for _, b := range l.Bounds {
		if b.Family >= numUniverses {
			return nil, missing, fmt.Errorf("bound of family %d, which there is not%s", b.Family, at(b.Pos))
		}
	}
	err = l.entries(func(e *Entry, _ role) error {
		if err := checkModes(e.Grant); err != nil {
			return fmt.Errorf("%w%s", err, at(e.Pos))
		}
		id, exact := st.trees[e.Grant.Family].place(e.Grant.Scope)
		if !exact {
			if err := checkGrant(e.Grant); err != nil { // what is a node's scope is canonical
				return fmt.Errorf("%w%s", err, at(e.Pos))
			}
			if st.whole || st.inBase(e.Grant, id) {
				missing[e.Grant.Family]++
				id = absent
			} else {
				id = outside
			}
		}
		ids = append(ids, id)
		return nil
	})
	return ids, missing, err
}

// What is no node: a scope that there is room to make for, and one that no
// request can reach.
const (
	absent  int32 = -1
	outside int32 = -2
)

// inBase reports whether the base grants the cell of node id in a mode of g.
func (st *state) inBase(g Grant, id int32) bool {
	for m := range families[g.Family].modes {
		if g.Modes.Has(m) && st.base[g.Family][m].Test(uint(id)) {
			return true
		}
	}
	return false
}

// intern is st with a universe that has every scope of l, and the nodes of its
// entries: st itself when it has them already.
func (st *state) intern(l *Layer) (*state, []int32, error) {
	if st.closed != nil {
		return nil, nil, st.closed
	}
	ids, missing, err := st.ids(l)
	if err != nil || missing == ([numUniverses]int{}) {
		return st, ids, err
	}
	next := *st
	for f, n := range missing {
		if n > 0 {
			next.trees[f] = st.trees[f].clone(n)
		}
	}
	i := 0
	_ = l.entries(func(e *Entry, _ role) error {
		if ids[i] == absent {
			t := next.trees[e.Grant.Family]
			ids[i] = t.intern(e.Grant.Scope)
			next.name(t, ids[i])
		}
		i++
		return nil
	})
	if next.full() {
		return nil, nil, ErrTooManyScopes
	}
	next.steps = slices.Clone(st.steps)
	for f, n := range missing {
		if n > 0 {
			next.extend(Family(f), len(st.trees[f].nodes))
		}
	}
	return &next, ids, nil
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

// Layer is s as a layer: what is narrowed by it keeps what s allows as well,
// and the lesser limits. It is how a set bounds the sets made from it.
func (s Set) Layer(name string) *Layer {
	l := &Layer{Name: name, Limits: s.Limits(), Constraints: s.Constraints(), Leases: s.Leases()}
	tools, hidden := s.Tools()
	for f := range numUniverses {
		if f == Tool && len(tools)+len(hidden) == 0 {
			continue
		}
		l.Bounds = append(l.Bounds, Bound{Family: f, Modes: AllModes(f)})
	}
	for _, g := range append(s.Grants(), tools...) {
		l.Allow = append(l.Allow, Entry{Grant: g, Implied: true})
		l.Spare = append(l.Spare, Entry{Grant: g})
	}
	for _, g := range append(s.Except(), hidden...) {
		l.Deny = append(l.Deny, Entry{Grant: g})
	}
	return l
}
