package meter

import "math/bits"

// A call in a loop makes the engine keep what lives across it in memory, and
// write it there wherever it changes: at each turn, called or not. So the slow
// path of a loop makes copies of what changes in it, which live instead. For
// that one has to know what changes, and what of it lives.

// maxTracked is how many locals are looked at; those behind are kept in memory.
const maxTracked = 256

type localSet [maxTracked / 64]uint64

func (s *localSet) add(i uint32)    { s[i/64] |= 1 << (i % 64) }
func (s *localSet) remove(i uint32) { s[i/64] &^= 1 << (i % 64) }

func (s *localSet) union(t *localSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

// event is what of an instruction matters to what lives.
type event uint32

const (
	eventGet = iota << 28
	eventSet
	eventStop // nothing goes on here
	eventJump // to the frame of that number, or on
	eventOpen
	eventIf
	eventElse
	eventEnd
	eventLoop
	eventLoopEnd
	eventCall
	eventKinds = 15 << 28
)

// loop is a loop that is reached.
type loop struct {
	written localSet // where the header is reached again from
	live    localSet // at its header
	across  localSet // lives across a call of the guest's within
	outer   uint8    // loops around it that go on from its header
	back    bool     // something leads back to it
	nested  bool     // it is in another
	head    int32    // the hole at its header
	block   []byte   // its type
}

// flow is what is known of a place: what lives there, and which of the loops
// around it, a bit for each from the outermost on, can go on from it.
type flow struct {
	live localSet
	on   uint8
}

func (p *flow) union(q *flow) {
	p.live.union(&q.live)
	p.on |= q.on
}

// arms are what is known behind a label, and at the other arm of an if.
type arms struct{ after, other flow }

// liveness is what lives where in a function.
type liveness struct {
	types  []byte // of as many parameters and locals of the guest's as are tracked
	events []event
	loops  []loop
	around [maxAround + 1]*loop
	labels []arms
	spare  int // how many locals may yet be copied
}

func (v *liveness) event(kind, n uint32) { v.events = append(room(v.events), event(kind|n)) }

// findLive fills in what lives at the headers of loops, from the end of the
// function to its beginning; twice if loops are in loops, for what leads back
// to an outer one is known only when its header was seen.
func (v *liveness) findLive() {
	needed, again := false, false
	for i := range v.loops {
		needed = needed || v.loops[i].back
		again = again || v.loops[i].nested
	}
	if needed {
		v.backwards()
	}
	if needed && again {
		v.backwards()
	}
}

func (v *liveness) backwards() {
	labels := append(v.labels[:0], arms{})
	var here flow
	depth := 0
	for i := len(v.events) - 1; i >= 0; i-- {
		kind, n := v.events[i]&eventKinds, uint32(v.events[i]&^eventKinds)
		top := &labels[len(labels)-1]
		switch kind {
		case eventGet:
			here.live.add(n)
		case eventSet:
			here.live.remove(n)
			v.wrote(n, here.on)
		case eventCall:
			for i := range min(depth, maxAround) {
				v.around[i].across.union(&here.live)
			}
		case eventStop:
			here = flow{}
		case eventJump:
			here.union(&labels[n].after)
		case eventEnd:
			labels = append(labels, arms{here, here})
		case eventLoopEnd:
			l := &v.loops[n]
			v.around[min(depth, maxAround)] = l
			labels = append(labels, arms{after: flow{l.live, l.outer | bit(depth)}})
			depth++
		case eventElse:
			top.other, here = here, top.after
		case eventIf:
			here.union(&top.other)
			labels = labels[:len(labels)-1]
		case eventLoop:
			depth--
			here.on &^= bit(depth)
			v.loops[n].live, v.loops[n].outer = here.live, here.on
			v.loops[n].keeps(v.around[:min(depth, maxAround)])
			labels = labels[:len(labels)-1]
		case eventOpen:
			labels = labels[:len(labels)-1]
		}
	}
	v.labels = labels
}

// keeps notes that what a loop's own slow path does not copy lives across the
// call there, in the loops around it.
func (l *loop) keeps(around []*loop) {
	if !l.back {
		return
	}
	kept := l.live
	for i := range kept {
		kept[i] &^= l.written[i] &^ l.across[i]
	}
	for _, outer := range around {
		outer.across.union(&kept)
	}
}

// maxAround is how many loops around a place are told apart; what is in more
// is not looked at.
const maxAround = 8

func bit(depth int) uint8 {
	if depth >= maxAround {
		return 0
	}
	return 1 << depth
}

// wrote notes that a local changes where those loops can go on from.
func (v *liveness) wrote(local uint32, on uint8) {
	for ; on != 0; on &= on - 1 {
		v.around[bits.TrailingZeros8(on)].written.add(local)
	}
}

// copies writes code that gives new values to what a loop's slow path must
// keep: the same ones, by way of another type, which the engine takes to be new.
// What lives across a call of the guest's is in memory anyway. There are no more
// copies than the function has code.
func (v *liveness) copies(e *emitter, l *loop) {
	if !l.back {
		return
	}
	for w := range l.live {
		for rest := l.live[w] & l.written[w] &^ l.across[w]; rest != 0 && v.spare > 0; rest &= rest - 1 {
			i := uint32(w*64 + bits.TrailingZeros64(rest))
			if there := v.types[i]; there >= typeF64 && there <= typeI32 {
				e.local(opLocalGet, e.moved(i))
				e.out = append(e.out, reinterpretations[typeI32-there][:]...)
				e.local(opLocalSet, e.moved(i))
				v.spare--
			}
		}
	}
}

// reinterpretations are to another type and back, by the type.
var reinterpretations = [...][2]byte{
	{opF32ReinterpretI32, opI32ReinterpretF32},
	{opF64ReinterpretI64, opI64ReinterpretF64},
	{opI32ReinterpretF32, opF32ReinterpretI32},
	{opI64ReinterpretF64, opF64ReinterpretI64},
}
