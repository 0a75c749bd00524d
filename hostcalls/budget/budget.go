// Package budget counts what a run, and all that are launched below it, use of the
// limits that they share: no tree of runs spends more than what its root was given.
package budget

import (
	"maps"
	"strings"
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

// MaxStray is how many runs of a tree may be left behind before no more are
// launched: what they have cannot be taken from them.
const MaxStray = 4

// New is the budget of a run under limits; up is that of the run that
// launched it, nil for one that nobody did.
func New(limits caps.Limits, up *Budget) *Budget {
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

// Allows reports whether n more of l are left.
func (b *Budget) Allows(l caps.Limit, n int64) bool {
	left, bounded := b.Left(l)
	return !bounded || n <= left
}

// Used is how much of l was taken here and below.
func (b *Budget) Used(l caps.Limit) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used[l]
}

// Take counts n of l, here and above.
func (b *Budget) Take(l caps.Limit, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b != nil; b = b.up {
		b.used[l] += n
	}
}

// Busy reports whether a request at now, in nanoseconds, is one too many of its
// minute, here or above.
func (b *Budget) Busy(now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b != nil; b = b.up {
		if most, set := b.limits.Get(caps.NetRequestsPerMinute); set && b.rate.count(now) >= most {
			return true
		}
	}
	return false
}

// Request counts a request at now, wherever its minute is looked at.
func (b *Budget) Request(now int64) {
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

// UseLeases counts what a run of an agent used of its leases.
func (t *tree) UseLeases(agent string, used map[caps.Grant]int64) {
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

// LeftBehind counts a run that did not stop when it was over.
func (t *tree) LeftBehind() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stray++
}

// Crowded reports whether too many runs were left behind.
func (t *tree) Crowded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stray >= MaxStray
}

// Noes is how often a person of the tree said no to a call or a tool, or, to "",
// at all.
func (t *tree) Noes(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.noes[what]
}

// SaidNo counts a no to each of these.
func (t *tree) SaidNo(to ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.noes == nil {
		t.noes = map[string]int{}
	}
	for _, what := range to {
		t.noes[strings.Clone(what)]++
	}
}

// Bound holds b to l.
func (b *Budget) Bound(l caps.Limits) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits = l
}
