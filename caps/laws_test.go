package caps_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
)

// random is a set that some base and layers made.
func random(t *rapid.T, label string) stack { return newPick(t, label).stack(t, 3) }

func newPick(t *rapid.T, label string) pick {
	return seeded(rapid.Uint64().Draw(t, label))
}

// meet is the meet of two sets, by way of the second one's layer.
func meet(t *rapid.T, a, b caps.Set) caps.Set { return narrow(t, a, b.Layer("meet")) }

func same(t *rapid.T, law string, a, b caps.Set) {
	t.Helper()
	if a.Digest() != b.Digest() || a.String() != b.String() {
		t.Fatalf("%s: %v %v\n    is not %v %v", law, a, a.Limits().Map(), b, b.Limits().Map())
	}
}

// everything is a set that grants all there is but raw domains, bounded by nothing.
func everything(t tester) caps.Set {
	var list []caps.Entry
	for f := range caps.NumFamilies {
		scope := "*"
		if f == caps.FS {
			scope = "/"
		}
		list = append(list, caps.Entry{Grant: caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: scope}})
	}
	for _, raw := range []string{"contacts_raw", "events_raw"} {
		list = append(list, caps.Entry{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: raw}})
	}
	return mustBase(t, list, caps.Limits{})
}

// TestMeetLaws holds the algebra: the meet of sets is a meet, in canonical bytes.
//
//rlp:holds P1 P2 P3 P4 R58
func TestMeetLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := random(t, "a").set, random(t, "b").set, random(t, "c").set
		same(t, "commutative", meet(t, a, b), meet(t, b, a))
		same(t, "associative", meet(t, a, meet(t, b, c)), meet(t, meet(t, a, b), c))
		same(t, "idempotent", meet(t, a, a), a)
		same(t, "identity", meet(t, a, everything(t)), a)
		same(t, "identity", narrow(t, a, &caps.Layer{Name: "empty"}), a)
		bottom := narrow(t, everything(t), caps.Set{}.Layer("nothing"))
		if !bottom.IsEmpty() || bottom.String() != "∅" {
			t.Fatalf("the layer of the empty set leaves %v", bottom)
		}
		if got := meet(t, a, bottom); !got.IsEmpty() {
			t.Fatalf("absorbing: %v", got)
		}
	})
}

// TestMeetIsGreatestLowerBound holds check(a ∩ b, r) = check(a, r) ∧ check(b, r)
// and its consequences, with the oracle's answers on the right-hand side.
//
//rlp:holds P5 P6 P7 R6 R43
func TestMeetIsGreatestLowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := random(t, "a"), random(t, "b")
		m, p := meet(t, a.set, b.set), newPick(t, "requests")
		for range 100 {
			r := p.request()
			if got, want := m.Check(r).Allow, a.allows(r) && b.allows(r); got != want {
				t.Fatalf("%v: the meet says %v, its parts %v", r, got, want)
			}
		}
		for _, g := range append(a.set.Grants(), p.grant(p.family())) {
			if a.set.Covers(g) && b.set.Covers(g) != m.Covers(g) {
				t.Fatalf("%v: within a: b covers %v, the meet %v", g, b.set.Covers(g), m.Covers(g))
			}
		}
		for l := range caps.NumLimits {
			va, oka := a.set.Limits().Get(l)
			vb, okb := b.set.Limits().Get(l)
			v, ok := m.Limits().Get(l)
			want := min(va, vb)
			if !oka {
				want = vb
			} else if !okb {
				want = va
			}
			if ok != (oka || okb) || v != want {
				t.Fatalf("%v: min(%d %v, %d %v) gives %d %v", l, va, oka, vb, okb, v, ok)
			}
		}
	})
}

// TestBaseIsLeastUpperBound holds P8: the base is the union of its entries, no
// more and no less, and narrowing distributes over it.
//
//rlp:holds P8 R41
func TestBaseIsLeastUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPick(t, "seed")
		ea, eb, l := p.entries(6), p.entries(6), p.layer("l")
		a, b := mustBase(t, ea, caps.Limits{}), mustBase(t, eb, caps.Limits{})
		join := mustBase(t, append(slices.Clone(ea), eb...), caps.Limits{})
		na, nb, nj := narrow(t, a, l), narrow(t, b, l), narrow(t, join, l)
		for range 100 {
			r := p.request()
			if join.Check(r).Allow != (a.Check(r).Allow || b.Check(r).Allow) {
				t.Fatalf("%v: the join is not the union", r)
			}
			if nj.Check(r).Allow != (na.Check(r).Allow || nb.Check(r).Allow) {
				t.Fatalf("%v: narrowing does not distribute", r)
			}
		}
	})
}

// TestOrderAndDuplicates holds P9: the order of layers and entries and their
// repetition are not in the result.
//
//rlp:holds P9 R40 R58 C22
func TestOrderAndDuplicates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPick(t, "seed")
		list, lim := p.entries(8), p.limits()
		layers := []*caps.Layer{p.layer("a"), p.layer("b"), p.layer("c")}
		s := narrow(t, mustBase(t, list, lim), layers...)
		slices.Reverse(list)
		slices.Reverse(layers)
		for _, l := range layers {
			slices.Reverse(l.Allow)
			slices.Reverse(l.Deny)
			l.Deny = append(l.Deny, l.Deny...)
		}
		layers = append(layers, layers[0])
		same(t, "shuffled", narrow(t, mustBase(t, append(list, list...), lim), layers...), s)
	})
}

// TestPrintedSetIsTheSet holds P11: what a set prints makes the set again.
//
//rlp:holds P11 C26
func TestPrintedSetIsTheSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := random(t, "set").set
		var list []caps.Entry
		for _, c := range s.Strings() {
			g, err := caps.ParseGrant(c)
			if err != nil {
				t.Fatalf("the set printed %q: %v", c, err)
			}
			list = append(list, caps.Entry{Grant: g})
		}
		holes := s.Layer("holes")
		again := narrow(t, mustBase(t, list, s.Limits()), &caps.Layer{
			Deny: holes.Deny, Spare: holes.Spare, Constraints: holes.Constraints, Leases: holes.Leases,
		})
		if left, hidden := s.Tools(); len(left)+len(hidden) > 0 {
			tools := &caps.Layer{Bounds: []caps.Bound{{Family: caps.Tool, Modes: 1}}}
			for _, g := range left {
				tools.Allow = append(tools.Allow, caps.Entry{Grant: g})
			}
			again = narrow(t, again, tools)
		}
		same(t, "printed", again, s)
	})
}

// TestNothingWidens holds P12 and P13: whatever a layer says, it only takes
// away, and what it says less of, it takes no more of.
//
//rlp:holds P12 P13 R6 R44
func TestNothingWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := random(t, "set"), newPick(t, "layer")
		l := p.layer("override")
		after := narrow(t, s.set, l)
		looser := *l
		if len(l.Bounds) > 0 {
			looser.Bounds = l.Bounds[1:]
		}
		loose := narrow(t, s.set, &looser)
		for range 100 {
			r := p.request()
			if after.Check(r).Allow && !s.allows(r) {
				t.Fatalf("%v: the layer widened", r)
			}
			if after.Check(r).Allow && !loose.Check(r).Allow {
				t.Fatalf("%v: a layer with a bound less took more", r)
			}
		}
	})
}

// TestTreeMeansEverythingBelow holds CheckTree and Covers against single checks.
//
//rlp:holds C8 C9
func TestTreeMeansEverythingBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := random(t, "set"), newPick(t, "paths")
		dir := p.path()
		r := caps.Request{Family: caps.FS, Mode: caps.Delete, Name: dir}
		whole := s.set.CheckTree(r)
		if covers := s.set.Covers(caps.Grant{Family: caps.FS, Modes: 1 << caps.Delete, Scope: dir}); covers != whole.Allow {
			t.Fatalf("%s: Covers %v, CheckTree %v", dir, covers, whole)
		}
		if !whole.Allow && s.set.Holds(whole.Scope, caps.FS, caps.Delete) {
			t.Fatalf("%s: refused for a scope that is allowed", dir)
		}
		for range 50 {
			below := r
			below.Name = dir + p.path()
			if dir == "/" {
				below.Name = p.path()
			}
			if d := s.set.Check(below); whole.Allow && d.Code != caps.InvalidRequest && !d.Allow {
				t.Fatalf("%s is allowed as a tree, %s is not", dir, below.Name)
			}
		}
	})
}

// TestIdsStayValid holds that what Check answered before a narrowing can be
// asked of the set after it.
func TestIdsStayValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := random(t, "set"), newPick(t, "layers")
		r := p.request()
		d := s.set.Check(r)
		l := p.layer("later")
		pre, err := s.set.Intern(l)
		if err != nil {
			t.Fatalf("Intern: %v", err)
		}
		same(t, "interned", pre, s.set)
		after := narrow(t, s.set, l)
		same(t, "narrowed after interning", narrow(t, pre, l), after)
		if d.Scope < 0 {
			return
		}
		if got, want := after.Scope(r.Family, d.Scope), s.set.Scope(r.Family, d.Scope); got != want {
			t.Fatalf("scope %d was %q and is %q", d.Scope, want, got)
		}
		if after.Holds(d.Scope, r.Family, r.Mode) && !s.set.Holds(d.Scope, r.Family, r.Mode) {
			t.Fatalf("scope %d is held after narrowing and was not before", d.Scope)
		}
	})
}

// TestManyAskAtOnce holds P16: any number of goroutines get the same answers
// while the set they ask is swapped for a narrower one.
//
//rlp:holds P16 C16
func TestManyAskAtOnce(t *testing.T) {
	p := seeded(7)
	first := p.stack(t, 3)
	second := narrow(t, first.set, p.layer("taint"))
	requests := make([]caps.Request, 200)
	want := make([][2]caps.Decision, len(requests))
	for i := range requests {
		requests[i] = p.request()
		want[i] = [2]caps.Decision{first.set.Check(requests[i]), second.Check(requests[i])}
	}
	var now atomic.Pointer[caps.Set]
	now.Store(&first.set)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for round := range 50 {
				for i, r := range requests {
					if got := now.Load().Check(r); got != want[i][0] && got != want[i][1] {
						t.Errorf("%v: %+v is neither %+v", r, got, want[i])
					}
				}
				if round == 25 {
					now.Store(&second)
				}
			}
		})
	}
	group.Wait()
}
