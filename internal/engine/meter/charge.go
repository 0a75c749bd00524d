package meter

// charges are what is charged for in a function, and where.
type charges struct {
	holes     []hole
	surplus   surplus
	at        int32 // hole that pays for what comes next, or dead
	surplusAt int32 // node of here
	unseen    unseen
	returned  int64 // what is unseen behind a call, if its function can be unchecked
}

// hole is a place in a body where a charge goes. Hostile code has as many as
// it has bytes, so they are small.
type hole struct {
	cost   uint64
	pos    int32
	from   int32 // node before it
	to     int32 // node behind it
	next   int32 // of the same weight
	loop   int32 // of holeLoop and holeSlow
	into   int32 // behind the hole that pays for this one, unless there is a check here; 0 is none
	kind   byte
	weight uint8
}

const dead = -1 // in place of a hole: what follows is never reached

func (c *charges) charge(op byte) {
	if c.at != dead {
		p := price(op)
		c.holes[c.at].cost += p
		c.see(p)
	}
}

// settle chooses what is owed where so that as many holes as possible have
// nothing to charge, those that run the most first: a maximum spanning tree of
// the nodes, after Knuth.
func (c *charges) settle() {
	var lists [weights * (mostLoops + 1) * (mostArms + 1)]int32
	for i := range lists {
		lists[i] = -1
	}
	for i := len(c.holes) - 1; i >= 0; i-- {
		h := &c.holes[i]
		if h.kind == holeSlow {
			continue
		}
		weight := h.weight
		if h.cost == 0 && h.kind != holePass {
			weight |= weighFree
		}
		h.next, lists[weight] = lists[weight], int32(i)
	}
	for weight := len(lists) - 1; weight >= 0; weight-- {
		for i := lists[weight]; i >= 0; i = c.holes[i].next {
			h := &c.holes[i]
			c.surplus.join(h.from, h.to, int64(h.cost))
		}
	}
}

func (c *charges) due(h *hole) int64 {
	return int64(h.cost) + c.surplus.at(h.to) - c.surplus.at(h.from)
}

// fold lets holes pay for those behind them that have no check.
func (c *charges) fold() {
	for i := len(c.holes) - 1; i > 0; i-- {
		if h := &c.holes[i]; h.into > 0 && h.kind == holePlain {
			c.holes[h.into-1].cost += h.cost
			h.cost = 0
		}
	}
}

func (c *charges) see(cost uint64) {
	if c.unseen.before != noCall {
		c.unseen.since += int64(cost)
		c.atMost(stretchCost)
	}
}

// atMost puts a check to where there can be one, if more than that is unseen.
func (c *charges) atMost(most int64) {
	u := &c.unseen
	if u.before != noCall && u.place != dead && u.before+u.since > most {
		c.holes[u.place].kind = holeChecked
		u.before, u.place = 0, dead
	}
}

// stop notes that a check can be in this hole.
func (c *charges) stop(hole int32) {
	c.unseen = unseen{before: c.unseen.total(), place: hole}
}

// meet notes that code goes on here of which that much was unseen.
func (c *charges) meet(total int64) { c.unseen = unseen{before: total, place: dead} }

// called notes that a function was called, which did or did not check itself.
func (c *charges) called(checked bool) {
	if c.at == dead {
		return
	}
	total := int64(0)
	if !checked {
		total = max(c.unseen.total(), 0) + leafBytes
	}
	c.returned = total
}

// Kinds of holes.
const (
	holePlain   = iota // charge
	holePass           // charge, and leave the counter on the stack
	holeChecked        // charge, and ask if there is no more
	holeLoop           // the header of a loop
	holeSlow           // what happens when there is no more at such a header
)
