package caps

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/bits-and-blooms/bitset"
)

// A Set is what an agent may do. It is an immutable value: [Set.Narrow] makes
// another one, and any number of goroutines may ask the same one. The zero Set
// grants nothing.
type Set struct{ in *state }

// votes is one bitset for each family and mode, bit i for node i of the
// family's tree. In a step nil says "no restriction".
type votes [numUniverses][]*bitset.BitSet

type state struct {
	trees  [numUniverses]*tree
	base   votes
	eff    votes
	steps  []step
	limits Limits
	terms  Constraints
	leases []Lease // of the layers, as [state.lease] joined them
	named  int     // scopes that policies name
	whole  bool    // the universe has what can change no decision as well
	// entries are the base's, for explanations; closed is why a step could not
	// be taken, in a set that grants nothing for that.
	entries []Entry
	closed  error
}

// A step is one layer as it was applied.
type step struct {
	layer *Layer
	votes votes
}

func newState() *state {
	st := new(state)
	for f := range numUniverses {
		st.trees[f] = newTree(f)
		st.base[f] = emptyVotes(f, 1)
		st.eff[f] = st.base[f]
	}
	return st
}

func emptyVotes(f Family, n int) []*bitset.BitSet {
	list := make([]*bitset.BitSet, families[f].modes)
	for m := range list {
		list[m] = bitset.New(uint(n))
	}
	return list
}

// nothing is what the zero Set holds.
var nothing = newState()

func (s Set) state() *state {
	if s.in == nil {
		return nothing
	}
	return s.in
}

// Base is the set that holds everything in entries: the one widening step, and
// the only union in the program. Entries whose scope is not canonical, and more
// scopes than [MaxScopes], are errors; the Set that comes with an error grants
// nothing.
func Base(entries []Entry, limits Limits) (Set, error) {
	st := newState()
	st.limits = limits
	st.entries = slices.Clone(entries)
	// Ids in the order of names leave little to sort whenever grants are listed.
	slices.SortStableFunc(st.entries, func(a, b Entry) int { return compareGrants(a.Grant, b.Grant) })
	if err := st.fill(st.entries); err != nil {
		closed := newState()
		closed.limits, closed.closed = limits, err
		return Set{closed}, fmt.Errorf("making the base: %w", err)
	}
	return Set{st}, nil
}

func (st *state) fill(entries []Entry) error {
	for _, e := range entries {
		if err := checkGrant(e.Grant); err != nil {
			return fmt.Errorf("%w%s", err, at(e.Pos))
		}
		t := st.trees[e.Grant.Family]
		id := t.intern(e.Grant.Scope)
		st.name(t, id)
		for _, p := range t.grantNodes(e.Grant, id) {
			t.nodes[p.id].base |= p.modes
		}
		if st.full() {
			return ErrTooManyScopes
		}
	}
	st.trees[Tool].nodes[0].base = 1 // what a run may do is narrowed by tool, never granted by it
	for f, t := range st.trees {
		held := make([]ModeSet, len(t.nodes))
		for id := range t.nodes {
			held[id] = t.nodes[id].base
		}
		t.inherit(held)
		st.base[f] = emptyVotes(Family(f), len(t.nodes))
		spread(st.base[f], held)
		st.eff[f] = st.base[f]
	}
	return nil
}

// name counts node id among the scopes that policies name.
func (st *state) name(t *tree, id int32) {
	if n := &t.nodes[id]; !n.named {
		n.named = true
		st.named++
	}
}

func (st *state) full() bool {
	nodes := 0
	for _, t := range st.trees {
		nodes += len(t.nodes)
	}
	return st.named > MaxScopes || nodes > maxNodes
}

// inherit gives every node what its parent has as well.
func (t *tree) inherit(held []ModeSet) {
	for id := range t.nodes {
		if p := t.nodes[id].parent; p >= 0 {
			held[id] |= held[p]
		}
	}
}

// spread sets the bit of every mode that held has, where there is a bitset.
func spread(list []*bitset.BitSet, held []ModeSet) {
	for m, b := range list {
		if b == nil {
			continue
		}
		words := b.Words()
		for id, set := range held {
			words[id>>6] |= uint64(set>>m&1) << (id & 63)
		}
	}
}

// gather is the inverse of spread, for n nodes.
func gather(list []*bitset.BitSet, n int) []ModeSet {
	held := make([]ModeSet, n)
	for m, b := range list {
		if b == nil {
			continue
		}
		for i, w := range b.Words() {
			for ; w != 0; w &= w - 1 {
				held[i<<6+bits.TrailingZeros64(w)] |= 1 << m
			}
		}
	}
	return held
}

func at(p Pos) string {
	if p == (Pos{}) {
		return ""
	}
	return " (" + p.String() + ")"
}

func checkGrant(g Grant) error {
	if err := checkModes(g); err != nil {
		return err
	}
	if !isScope(g.Family, g.Scope) {
		return fmt.Errorf("grant %s:%s has a scope that is not canonical", g.Family, g.Scope)
	}
	return nil
}

func checkModes(g Grant) error {
	if g.Modes == 0 || g.Modes&^AllModes(g.Family) != 0 { // what is no family has none
		return fmt.Errorf("grant %s:%s has no mode, or one that there is not", g.Family, g.Scope)
	}
	return nil
}

// Limits are the bounds of the base met with those of every layer.
func (s Set) Limits() Limits { return s.state().limits }

// Constraints are those of every layer, met.
func (s Set) Constraints() Constraints { return s.state().terms }

// IsEmpty reports whether s grants nothing at all.
func (s Set) IsEmpty() bool {
	for f := range NumFamilies {
		if s.Any(f) {
			return false
		}
	}
	return true
}

// Any reports whether s grants anything of family f.
func (s Set) Any(f Family) bool {
	if f >= numUniverses {
		return false
	}
	for _, b := range s.state().eff[f] {
		if b.Any() {
			return true
		}
	}
	return false
}

// NumLayers is how many layers can refuse, the base included, which is layer 0.
func (s Set) NumLayers() int { return 1 + len(s.state().steps) }

// LayerName is the name of layer i, "base" for 0 and "" for what is no layer.
func (s Set) LayerName(i int16) string {
	switch st := s.state(); {
	case i < 0 || int(i) > len(st.steps):
		return ""
	case i == 0:
		return "base"
	default:
		return st.steps[i-1].layer.Name
	}
}

// NumScopes is how many scopes the universe of f has; ids run from 0.
func (s Set) NumScopes(f Family) int {
	if f >= numUniverses {
		return 0
	}
	return len(s.state().trees[f].nodes)
}

// node is that of f whose id is id; if there is none, one that is nowhere.
func (s Set) node(f Family, id int32) *node {
	if id < 0 || int(id) >= s.NumScopes(f) {
		return &node{parent: -1}
	}
	return &s.state().trees[f].nodes[id]
}

// Scope is the scope of f whose id is id, "" if there is none. Ids stay valid in
// every set that is narrowed from s.
func (s Set) Scope(f Family, id int32) string { return s.node(f, id).name }

// Parent is the scope that directly holds scope id of f, -1 for the widest.
func (s Set) Parent(f Family, id int32) int32 { return s.node(f, id).parent }

// InBase reports whether the base grants scope id of f by an entry of its own,
// in whatever mode.
func (s Set) InBase(f Family, id int32) bool { return s.BaseModes(f, id) != 0 }

// BaseModes is the modes in which the base grants scope id of f by an entry of
// its own, not by one that holds it among others.
func (s Set) BaseModes(f Family, id int32) ModeSet { return s.node(f, id).base }

// Enclosing is the first of scope id of f and the scopes that hold it, from the
// inside out, that ok accepts; -1 if none does.
func (s Set) Enclosing(f Family, id int32, ok func(id int32) bool) int32 {
	for ; id >= 0 && !ok(id); id = s.Parent(f, id) {
	}
	return id
}
