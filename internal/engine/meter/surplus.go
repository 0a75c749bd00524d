package meter

// settled is the node where nothing is owed: what was charged is what ran.
const settled = 0

// surplus says how much more was charged than ran, at each place of a function:
// a number known when it is rewritten. Between the places that look at the
// counter it may be what it likes, so code is charged for where that is
// cheapest. Nodes are places that must owe the same; what holes lie between
// them decides the rest.
type surplus struct {
	parent []int32
	more   []int64 // than the parent
}

func (d *surplus) reset() {
	d.parent, d.more = append(d.parent[:0], settled), append(d.more[:0], 0)
}

func (d *surplus) node() int32 {
	n := int32(len(d.parent))
	d.parent, d.more = append(room(d.parent), n), append(room(d.more), 0)
	return n
}

// root returns the node that stands for those known relative to n, and how
// much more n owes than it. It is settled for all that are known relative to
// that.
func (d *surplus) root(n int32) (root int32, more int64) {
	root, more = d.parent[n], d.more[n]
	if d.parent[root] == root {
		return root, more
	}
	for ; d.parent[root] != root; root = d.parent[root] {
		more += d.more[root]
	}
	for left := more; d.parent[n] != root; {
		next, step := d.parent[n], d.more[n]
		d.parent[n], d.more[n] = root, left
		n, left = next, left-step
	}
	return root, more
}

// join lets b owe by less than a, if neither is known relative to the other.
func (d *surplus) join(a, b int32, by int64) {
	rootA, moreA := d.root(a)
	rootB, moreB := d.root(b)
	switch {
	case rootA == rootB:
	case rootB == settled:
		d.parent[rootA], d.more[rootA] = rootB, moreB+by-moreA
	default:
		d.parent[rootB], d.more[rootB] = rootA, moreA-by-moreB
	}
}

// at is what n owes, once that is known of all.
func (d *surplus) at(n int32) int64 {
	_, more := d.root(n)
	return more
}

// Of holes that run as often, those that cost nothing are kept empty first:
// there are the most of them. Then those at headers, which several ways lead
// back to. Where the counter is taken anyway, to be handed on, a charge is short.
const (
	weighPass = iota
	weighCost
	weighHeader
	weighFree
	weights = 4
)

// mostLoops and mostArms are how many loops and arms count.
const (
	mostLoops = 7
	mostArms  = 3
)
