package model

import (
	"math"
	"sync"
	"time"
)

// Limits bound what all calls of a run may cost together. The largest number
// bounds nothing; 0 leaves nothing.
type Limits struct {
	Tokens          int64 // in and out
	TokensPerMinute int64
	MicroUSD        int64 // millionths of a dollar
}

// Unlimited bounds nothing.
func Unlimited() Limits { return Limits{math.MaxInt64, math.MaxInt64, math.MaxInt64} }

// A ledger knows what was spent and what is reserved. What is entered in the
// ledger of a run that another one launched is entered in the other's as well.
type ledger struct {
	up     *ledger
	mu     *sync.Mutex // one for the whole tree
	limits Limits
	tokens int64 // spent or reserved
	nanos  int64
	minute window
}

// newLedger is a ledger that bounds nothing yet, under up, which may be nil.
func newLedger(up *ledger) *ledger {
	l := &ledger{up: up, mu: new(sync.Mutex), limits: Unlimited()}
	if up != nil {
		l.mu = up.mu
	}
	return l
}

// A wish is what a call may cost: in tokens at most, and out tokens if it said
// so. A call without output wants none.
type wish struct {
	in, out  int64 // out is 0 when the request does not say
	noOutput bool
	price    Price
	priced   bool
	model    string
}

// A hold is what was reserved for one call. Its out is what the output may
// have: 0 when the request said nothing and nothing is limited.
type hold struct {
	in, out, nanos int64
	at             int64 // second
}

func (l *ledger) bound(to Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limits.Tokens = min(l.limits.Tokens, to.Tokens)
	l.limits.TokensPerMinute = min(l.limits.TokensPerMinute, to.TokensPerMinute)
	l.limits.MicroUSD = min(l.limits.MicroUSD, to.MicroUSD)
}

// reserve takes the most that a call may cost out of what is left.
func (l *ledger) reserve(now time.Time, w wish) (hold, *Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out, refusal := l.room(now, w)
	if refusal != nil {
		return hold{}, refusal
	}
	h := hold{in: w.in, out: out, at: now.Unix()}
	if w.priced {
		h.nanos = w.price.cost(w.in, out)
	}
	l.spend(h, w.in+out, h.nanos)
	return h, nil
}

// fits is reserve without taking anything.
func (l *ledger) fits(now time.Time, w wish) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, refusal := l.room(now, w)
	return refusal
}

func (l *ledger) settle(h hold, tokens, nanos int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spend(h, tokens-h.in-h.out, nanos-h.nanos)
}

func (l *ledger) spend(h hold, tokens, nanos int64) {
	for ; l != nil; l = l.up {
		l.tokens = plus(l.tokens, tokens)
		l.nanos = plus(l.nanos, nanos)
		l.minute.add(h.at, tokens)
	}
}

func (l *ledger) unlimited() bool {
	for ; l != nil; l = l.up {
		if l.limits != Unlimited() {
			return false
		}
	}
	return true
}

func plus(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// room is how many tokens of output a call may have, or why it may not be made.
func (l *ledger) room(now time.Time, w wish) (int64, *Refusal) {
	out := w.out
	if out == 0 && !w.noOutput {
		if l.unlimited() {
			return 0, nil // the provider's own bound
		}
		out = DefaultMaxTokens
	}
	for ; l != nil; l = l.up {
		for _, bound := range []func(time.Time, wish) (int64, *Refusal){l.byTokens, l.byUSD, l.byMinute} {
			left, refusal := bound(now, w)
			if refusal != nil {
				return 0, refusal
			}
			out = min(out, left)
		}
	}
	return out, nil
}

// least is the smallest output that a wish can live with.
func (w wish) least() int64 {
	if w.noOutput {
		return 0
	}
	return max(w.out, 1)
}

func (l *ledger) byTokens(_ time.Time, w wish) (int64, *Refusal) {
	if l.limits.Tokens == math.MaxInt64 {
		return math.MaxInt64, nil
	}
	left := l.limits.Tokens - l.tokens - w.in
	if left < w.least() {
		return 0, refusef(OverBudget, "model_tokens = %d: %d are used, this call may take %d; more needs a higher "+
			"model_tokens under [limits]",
			l.limits.Tokens, l.tokens, plus(w.in, w.least()))
	}
	return left, nil
}

func (l *ledger) byMinute(now time.Time, w wish) (int64, *Refusal) {
	if l.limits.TokensPerMinute == math.MaxInt64 {
		return math.MaxInt64, nil
	}
	used := l.minute.sum(now.Unix())
	left := l.limits.TokensPerMinute - used - w.in
	if left < w.least() {
		return 0, refusef(OverRate, "model_tokens_per_minute = %d: %d were used in the last minute, this call may take %d; "+
			"wait, or raise model_tokens_per_minute under [limits]",
			l.limits.TokensPerMinute, used, plus(w.in, w.least()))
	}
	return left, nil
}

func (l *ledger) byUSD(_ time.Time, w wish) (int64, *Refusal) {
	if l.limits.MicroUSD == math.MaxInt64 {
		return math.MaxInt64, nil
	}
	if !w.priced {
		return 0, refusef(OverBudget, "model_usd is limited and %s has no price; it would need [model.prices.%q] in = ..., "+
			"out = ... in config.toml", w.model, w.model)
	}
	limit := nanos(float64(l.limits.MicroUSD) * 1000)
	most := limit - l.nanos
	left := w.price.outFor(most-w.price.cost(w.in, 0), math.MaxInt64)
	if cost := w.price.cost(w.in, w.least()); cost > max(most, 0) || left < w.least() { // what is free is never too much
		return 0, refusef(OverBudget, "model_usd = %g: %g are used, this call may take %g; more needs a higher model_usd "+
			"under [limits]",
			usd(limit), usd(l.nanos), usd(cost))
	}
	return left, nil
}

// seconds is how many buckets a window has: the last minute and the running
// second.
const seconds = 61

// A window counts tokens by the second, so that a run that asks without end
// takes no room. A second counts until all of it is a minute ago.
type window struct{ buckets [seconds]bucket }

type bucket struct{ second, tokens int64 }

func (w *window) add(second, tokens int64) {
	b := &w.buckets[((second%seconds)+seconds)%seconds]
	if b.second > second {
		return // settled after its minute was over
	}
	if b.second < second {
		*b = bucket{second: second}
	}
	b.tokens = plus(b.tokens, tokens)
}

func (w *window) sum(now int64) int64 {
	total := int64(0)
	for _, b := range w.buckets {
		if b.second > now-seconds && b.second <= now {
			total = plus(total, b.tokens)
		}
	}
	return total
}
