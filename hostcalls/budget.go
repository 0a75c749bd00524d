package hostcalls

import (
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
	up     *Budget
	mu     *sync.Mutex // one for the whole tree
	limits caps.Limits
	used   [caps.NumLimits]int64
	rate   window // of requests
}

// NewBudget is the budget of a run under limits; up is that of the run that
// launched it, nil for one that nobody did.
func NewBudget(limits caps.Limits, up *Budget) *Budget {
	b := &Budget{up: up, limits: limits, mu: new(sync.Mutex)}
	if up != nil {
		b.mu = up.mu
	}
	return b
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
