package hostcalls

import (
	"maps"
	"sync"

	"runloop.dev/rlp/caps"
)

// A Budget is what a run has used of the limits that are counted here: bytes
// and requests of the network, programs, bytes stored. The budget of a run that
// another one launched stands under the other's: what is taken of it is taken
// of all above, so that no tree of runs, however deep, spends twice what its
// root was given. Any goroutine may use it: a call that was left behind goes on
// taking.
type Budget struct {
	up *Budget
	*tree
	limits caps.Limits
	used   [caps.NumLimits]int64
	rate   window // of requests
}

// A tree is what a run that nobody launched has in common with all below it.
type tree struct {
	mu    sync.Mutex
	stray int            // runs that were left behind, each with the memory that it had
	noes  map[string]int // of the person who was asked, by call and by tool
	uses  map[string]map[caps.Grant]int64
}

// maxStray is how many runs of a tree may be left behind before no more are
// launched: what they have cannot be taken from them.
const maxStray = 4

// NewBudget is the budget of a run under limits; up is that of the run that
// launched it, nil for one that nobody did.
func NewBudget(limits caps.Limits, up *Budget) *Budget {
	b := &Budget{up: up, limits: limits}
	if up != nil {
		b.tree = up.tree
	} else {
		b.tree = new(tree)
	}
	return b
}

// Depth is how many runs stand above one that is launched under b: 0 for nil.
func (b *Budget) Depth() int {
	n := 0
	for ; b != nil; b = b.up {
		n++
	}
	return n
}

// Left is what is left of l, here and above, and whether anything bounds it. It
// is negative when more was used than there was.
func (b *Budget) Left(l caps.Limit) (left int64, bounded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b != nil; b = b.up {
		most, set := b.limits.Get(l)
		if rest := most - b.used[l]; set && (!bounded || rest < left) {
			left, bounded = rest, true
		}
	}
	return left, bounded
}

// allows reports whether n more of l are left.
func (b *Budget) allows(l caps.Limit, n int64) bool {
	left, bounded := b.Left(l)
	return !bounded || n <= left
}

// take counts n of l, here and above.
func (b *Budget) take(l caps.Limit, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b != nil; b = b.up {
		b.used[l] += n
	}
}

// busy reports whether a request at now, in nanoseconds, is one too many of its
// minute, here or above.
func (b *Budget) busy(now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b != nil; b = b.up {
		if most, set := b.limits.Get(caps.NetRequestsPerMinute); set && b.rate.count(now) >= most {
			return true
		}
	}
	return false
}

// request counts a request at now, wherever its minute is looked at.
func (b *Budget) request(now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b != nil; b = b.up {
		if _, set := b.limits.Get(caps.NetRequestsPerMinute); set {
			b.rate.add(now)
		}
	}
}

// LeaseUses is how often each lease of an agent was used by all runs of it that
// ended and that were launched below the same root as b's; nil has none.
func (b *Budget) LeaseUses(agent string) map[caps.Grant]int64 {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.uses[agent])
}

// useLeases counts what a run of an agent used of its leases.
func (t *tree) useLeases(agent string, used map[caps.Grant]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uses == nil {
		t.uses = map[string]map[caps.Grant]int64{}
	}
	if t.uses[agent] == nil {
		t.uses[agent] = map[caps.Grant]int64{}
	}
	for grant, n := range used {
		t.uses[agent][grant] += n
	}
}

// leftBehind counts a run that did not stop when it was over.
func (t *tree) leftBehind() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stray++
}

// crowded reports whether too many runs were left behind.
func (t *tree) crowded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stray >= maxStray
}
