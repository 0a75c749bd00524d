package gate

import (
	"fmt"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
)

// slots are what narrows a run after its launch, each kind in its place: what
// the run holds is the launch's set narrowed by all of them, and so it is never
// above that. Ids of scopes stay valid, for root only grows.
type slots struct {
	root   caps.Set      // what the launch left, with room for every scope that was ever named
	held   []*caps.Layer // for good
	reload []*caps.Layer // what the last reload found
	first  *caps.Layer   // what the taint narrows by: Options.Floor
	floor  []*caps.Layer // and beside it, as the last reload found it
	over   []*caps.Layer // leases that expired, for good
	cause  string        // of the taint; "" without one
	label  audit.Name    // cause, interned
	ready  *holding      // what the taint will make of what is held now
	expiry int64         // when the next lease ends
	used   map[caps.Grant]int64
}

// open holds set as the launch left it.
func (g *Gate) open(set caps.Set, floor *caps.Layer) error {
	g.slots = slots{root: set, first: floor, expiry: caps.Forever, used: map[caps.Grant]int64{}}
	h, ready, err := g.slots.compose(g.sink)
	if err != nil {
		return err
	}
	g.take(h, ready)
	return nil
}

// compose is what s makes the run hold, and what the taint would make of it.
func (s *slots) compose(sink audit.Sink) (now, ready *holding, err error) {
	layers, floors := slices.Concat(s.held, s.reload, s.over), s.floors()
	if s.root, err = s.root.Intern(slices.Concat(layers, floors)...); err != nil {
		return nil, nil, err
	}
	set, err := narrowed(s.root, layers)
	if err != nil {
		return nil, nil, err
	}
	if now, err = holdingOf(set, sink); err != nil || len(floors) == 0 {
		return now, now, err
	}
	if set, err = narrowed(set, floors); err != nil {
		return nil, nil, err
	}
	if ready, err = holdingOf(set, sink); err != nil {
		return nil, nil, err
	}
	ready.floor, ready.cause, ready.label = int16(set.NumLayers()-len(floors)), s.cause, s.label
	now.digest, ready.digest = hexDigest(now.set), hexDigest(ready.set) // a taint is to cost nothing
	if s.cause != "" {
		now = ready
	}
	return now, ready, nil
}

// floors are what the taint narrows by: nothing, for a run that nothing marks.
func (s *slots) floors() []*caps.Layer {
	if s.first == nil {
		return nil
	}
	return append([]*caps.Layer{s.first}, s.floor...)
}

func narrowed(set caps.Set, layers []*caps.Layer) (caps.Set, error) {
	var err error
	for _, l := range layers {
		if set, _, err = set.Narrow(l); err != nil {
			return set, err
		}
	}
	return set, nil
}

// take puts what was composed in the place of what is held.
func (g *Gate) take(now, ready *holding) {
	g.slots.ready = ready
	g.slots.expiry = nextExpiry(now, g.slots.over)
	g.now.Store(now)
}

// swap makes the run hold what s says. The swap is recorded before it takes
// effect: when the record fails nothing changes but the gate shuts. It reports
// whether anything is another now.
func (g *Gate) swap(s slots, e audit.Event) (changed bool, err error) {
	now, ready, err := s.compose(g.sink)
	if err != nil {
		return false, fmt.Errorf("narrowing by %s: %w", e.Source, err)
	}
	if before := g.now.Load(); before.sum() != now.sum() {
		changed = true
		layers := slices.Concat(s.held, s.reload, s.over)
		if floors := s.floors(); s.cause != "" && len(floors) > 0 {
			layers = append(layers, floors[1:]...) // the first stands in the record of the run's start
		}
		e.Layers = Recorded(s.root, layers)
		if err := g.recordSwap(&e, before, now); err != nil {
			return false, err
		}
	}
	g.slots = s
	g.take(now, ready)
	return changed, nil
}

func (g *Gate) recordSwap(e *audit.Event, before, after *holding) error {
	e.Kind, e.Before, e.After = audit.KindCapsSwap, before.sum(), after.sum()
	if err := g.sink.Event(e); err != nil {
		g.err = fmt.Errorf("recording caps.swap: %w", err)
		return g.err
	}
	g.swaps++
	return nil
}

// Hold narrows what the run holds, for the rest of the run.
func (g *Gate) Hold(l *caps.Layer) error {
	if !g.latch.enter() {
		return ErrClosed
	}
	defer g.latch.leave()
	s := g.slots
	s.held = append(s.held[:len(s.held):len(s.held)], l)
	_, err := g.swap(s, audit.Event{Source: l.Name})
	return err
}

// Reload narrows what the launch left by layers, in the place of those that an
// earlier Reload applied: what one took away comes back when the next one does
// not say it, up to what the launch left and no further. Everything else that
// narrowed the run since stays. floor narrows what the taint leaves, beside the
// launch's. source is what the record names. It reports
// whether the run holds something else now; after an error it does not.
func (g *Gate) Reload(source string, layers []*caps.Layer, floor ...*caps.Layer) (changed bool, err error) {
	if !g.latch.enter() {
		return false, ErrClosed
	}
	defer g.latch.leave()
	s := g.slots
	s.reload, s.floor = layers, floor
	return g.swap(s, audit.Event{Source: source})
}

// Taint says that the guest is about to see content from outside, and which:
// from here on the run holds no more than the floor leaves, to its end. The
// first cause is the one that denials name; further ones change nothing.
func (g *Gate) Taint(cause string) error {
	if !g.latch.enter() {
		return ErrClosed
	}
	defer g.latch.leave()
	if g.slots.cause != "" {
		return nil
	}
	if cause == "" {
		cause = "unknown"
	}
	label, err := g.sink.Intern(cause)
	if err != nil {
		g.err = fmt.Errorf("recording %s: %w", cause, err)
		return g.err
	}
	next := g.slots.ready
	if err := g.recordSwap(&audit.Event{Source: "_untrusted", Label: cause}, g.now.Load(), next); err != nil {
		return err
	}
	g.slots.cause, g.slots.label = cause, label
	next.cause, next.label = cause, label
	g.take(next, next)
	return nil
}

// Tainted is the first content from outside that the run has seen, if any.
func (g *Gate) Tainted() (cause string, ok bool) { return g.slots.cause, g.slots.cause != "" }

// Layer is what the run holds now as a layer, with what is left of its leases:
// what a run that this one starts is bounded by.
func (g *Gate) Layer(name string) *caps.Layer {
	if g.latch.enter() {
		defer g.latch.leave()
		g.expire()
	}
	l := g.now.Load().set.Layer(name)
	for i := range l.Leases {
		if lease := &l.Leases[i]; lease.MaxUses != caps.Unbounded {
			lease.MaxUses = max(0, lease.MaxUses-g.slots.used[lease.Grant])
		}
	}
	return l
}

// sum is the digest of what is held.
func (h *holding) sum() string {
	if h.digest == "" {
		h.digest = hexDigest(h.set)
	}
	return h.digest
}

func hexDigest(s caps.Set) string {
	d := s.Digest()
	return fmt.Sprintf("%x", d[:])
}

// holding is what the gate holds at one moment: the set, and the interned
// names of its layers, swapped together.
type holding struct {
	set    caps.Set
	layers []audit.Name
	digest string // of set, once somebody asked
	tools  bool   // some layer speaks of tools
	closed bool   // and hides the call by which files are opened
	leases []held
	floor  int16      // the first layer of the taint, which are the last ones; 0 without one
	cause  string     // of the taint, where there is one
	label  audit.Name // cause, interned
}

func holdingOf(set caps.Set, sink audit.Sink) (*holding, error) {
	h := &holding{set: set, layers: make([]audit.Name, set.NumLayers()), leases: leasesOf(set)}
	left, hidden := set.Tools()
	h.tools = len(left)+len(hidden) > 0
	h.closed = h.tools && !set.Check(caps.Request{Family: caps.Tool, Name: openScope}).Allow
	for i := range h.layers {
		n, err := sink.Intern(set.LayerName(int16(i)))
		if err != nil {
			return nil, err
		}
		h.layers[i] = n
	}
	return h, nil
}

// denial is d as it is told.
func (h *holding) denial(r *caps.Request, d *caps.Decision) Denial {
	den := Denial{Request: *r, Code: d.Code}
	if d.Layer > 0 {
		den.Layer = h.set.LayerName(d.Layer)
		if h.floor > 0 && d.Layer >= h.floor {
			den.Label = h.cause
		}
	}
	return den
}
