package model

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func limited(l Limits) *ledger {
	made := newLedger(nil)
	made.bound(l)
	return made
}

// Whatever is asked, in whatever order it is settled: as long as nobody takes
// more than was reserved for it, no limit is passed, in sum or in any minute.
//
//rlp:holds R78 R86
func TestLimitsAreNeverPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			Tokens:          rapid.Int64Range(0, 5000).Draw(t, "tokens"),
			TokensPerMinute: rapid.Int64Range(0, 2000).Draw(t, "minute"),
			MicroUSD:        rapid.Int64Range(0, 20000).Draw(t, "usd"),
		}
		l := limited(limits)
		price := Price{rapid.Float64Range(0, 20).Draw(t, "in"), rapid.Float64Range(0, 20).Draw(t, "out")}
		now := time.Unix(1_000_000, 0)
		type spent struct{ at, tokens int64 }
		var log []spent
		var open []hold
		total, dollars := int64(0), int64(0)
		settle := func(h hold) {
			in, out := rapid.Int64Range(0, h.in).Draw(t, "used in"), rapid.Int64Range(0, h.out).Draw(t, "used out")
			l.settle(h, in+out, price.cost(in, out))
			log = append(log, spent{h.at, in + out})
			total, dollars = total+in+out, dollars+price.cost(in, out)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w := wish{
				in: rapid.Int64Range(0, 500).Draw(t, "in"), out: rapid.Int64Range(0, 500).Draw(t, "out"),
				noOutput: rapid.Bool().Draw(t, "no output"), price: price, priced: true, model: "m",
			}
			if w.noOutput {
				w.out = 0
			}
			fits := l.fits(now, w)
			h, refusal := l.reserve(now, w)
			if (fits == nil) != (refusal == nil) {
				t.Fatalf("fits says %v, reserve %v", fits, refusal)
			}
			if refusal == nil {
				if h.out < w.least() || w.out > 0 && h.out != w.out {
					t.Fatalf("reserved %d of output for a wish of %d", h.out, w.out)
				}
				open = append(open, h)
			}
			if len(open) > 0 && rapid.Bool().Draw(t, "settle") {
				settle(open[0])
				open = open[1:]
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
		}
		for _, h := range open {
			settle(h)
		}
		if total > limits.Tokens || dollars > limits.MicroUSD*1000 {
			t.Fatalf("%d tokens of %d, %d of %d", total, limits.Tokens, dollars, limits.MicroUSD*1000)
		}
		for _, first := range log {
			sum := int64(0)
			for _, s := range log {
				if s.at >= first.at && s.at < first.at+60 {
					sum += s.tokens
				}
			}
			if sum > limits.TokensPerMinute {
				t.Fatalf("%d tokens in a minute of %d", sum, limits.TokensPerMinute)
			}
		}
		if len(open) == 0 && l.tokens != total {
			t.Fatalf("the ledger says %d, and %d were used", l.tokens, total)
		}
	})
}

// What a provider takes beyond its reservation counts, and the next call finds
// less.
func TestOverspendingCounts(t *testing.T) {
	l := limited(Limits{Tokens: 100, TokensPerMinute: math.MaxInt64, MicroUSD: math.MaxInt64})
	now := time.Unix(1000, 0)
	h, refusal := l.reserve(now, wish{in: 10, out: 10})
	if refusal != nil {
		t.Fatal(refusal)
	}
	l.settle(h, 95, 0)
	if _, refusal := l.reserve(now, wish{in: 3, out: 3}); refusal == nil || refusal.Reason != OverBudget {
		t.Errorf("%v", refusal)
	}
	if _, refusal := l.reserve(now, wish{in: 2, out: 3}); refusal != nil {
		t.Errorf("control: what is left is refused: %v", refusal)
	}
}

// A rate is free again after its minute, not before.
//
//rlp:holds R78
func TestMinute(t *testing.T) {
	l := limited(Limits{Tokens: math.MaxInt64, TokensPerMinute: 10, MicroUSD: math.MaxInt64})
	start := time.Unix(1000, 0)
	take := func(after time.Duration) bool {
		h, refusal := l.reserve(start.Add(after), wish{in: 5, out: 5})
		if refusal == nil {
			l.settle(h, 10, 0)
		} else if refusal.Reason != OverRate {
			t.Errorf("%v", refusal)
		}
		return refusal == nil
	}
	if !take(0) || take(time.Second) || take(60*time.Second) || !take(61*time.Second) || take(90*time.Second) {
		t.Error("the minute is not a minute")
	}
}

// What is absent is what is left, at most the default; where nothing is
// limited it is the provider's to say.
func TestMaxTokensAbsent(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		limits Limits
		want   int64
	}{
		{Unlimited(), 0},
		{Limits{1_000_000, math.MaxInt64, math.MaxInt64}, DefaultMaxTokens},
		{Limits{110, math.MaxInt64, math.MaxInt64}, 100},
		{Limits{1000, 60, math.MaxInt64}, 50},
		{Limits{1000, 500, 30}, 10}, // 10 of 1 and 10 of 2 millionths
	} {
		h, refusal := limited(c.limits).reserve(now, wish{in: 10, price: Price{1, 2}, priced: true})
		if refusal != nil || h.out != c.want {
			t.Errorf("%+v: %d, %v, want %d", c.limits, h.out, refusal, c.want)
		}
	}
}

func TestPrices(t *testing.T) {
	prices := map[string]Price{"openai:gpt-4o": {1, 1}, "gpt-4o-mini": {2, 2}, "openai:*": {3, 3}, "openai:gpt-*": {4, 4}}
	for full, want := range map[string]float64{
		"openai:gpt-4o": 1, "openai:gpt-4o-mini": 2, "openai:gpt-5": 4, "openai:o3": 3, "other:x": 0,
	} {
		_, bare, _ := cut(full)
		p, ok := priceOf(prices, full, bare)
		if p.In != want || ok != (want > 0) {
			t.Errorf("%s: %v %v", full, p, ok)
		}
	}
	if got := (Price{2.5, 10}).cost(1000, 100); got != 3_500_000 {
		t.Errorf("1000 in and 100 out cost %d billionths", got)
	}
	if got := (Price{1e9, 1e9}).cost(math.MaxInt64, math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("a cost without end is %d", got)
	}
	if got := (Price{0.0001, 0}).cost(1, 0); got != 1 {
		t.Errorf("what costs something costs nothing: %d", got)
	}
}

// However deep runs launch one another, what one of them spends is gone for all
// above it, and what was not granted above is not there below. Each ledger alone
// would let its run spend it all: the control.
//
//rlp:holds P18
func TestATreeSpendsWhatItsRootHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		root := limited(Limits{
			rapid.Int64Range(0, 300).Draw(t, "tokens"), rapid.Int64Range(0, 300).Draw(t, "minute"),
			math.MaxInt64,
		})
		tree := []*ledger{root}
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			l := newLedger(tree[rapid.IntRange(0, len(tree)-1).Draw(t, "under")])
			l.bound(Limits{rapid.Int64Range(0, 300).Draw(t, "own"), math.MaxInt64, math.MaxInt64})
			tree = append(tree, l)
		}
		spent := map[*ledger]int64{}
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			who := tree[rapid.IntRange(0, len(tree)-1).Draw(t, "who")]
			h, refusal := who.reserve(now, wish{in: rapid.Int64Range(1, 40).Draw(t, "in"), noOutput: true})
			if refusal != nil {
				continue
			}
			used := rapid.Int64Range(0, h.in).Draw(t, "used")
			who.settle(h, used, 0)
			for l := who; l != nil; l = l.up {
				spent[l] += used
			}
		}
		for _, l := range tree {
			if spent[l] > l.limits.Tokens || spent[l] > l.limits.TokensPerMinute || spent[l] != l.tokens {
				t.Fatalf("%d spent, the ledger says %d of %+v", spent[l], l.tokens, l.limits)
			}
		}
	})
	alone, under := limited(Limits{10, math.MaxInt64, math.MaxInt64}),
		newLedger(limited(Limits{5, math.MaxInt64, math.MaxInt64}))
	under.bound(Limits{10, math.MaxInt64, math.MaxInt64})
	now := time.Unix(1_000_000, 0)
	if _, refusal := alone.reserve(now, wish{in: 10, noOutput: true}); refusal != nil {
		t.Errorf("control: %v", refusal)
	}
	if _, refusal := under.reserve(now, wish{in: 10, noOutput: true}); refusal == nil || refusal.Reason != OverBudget {
		t.Errorf("what is above has 5, and 10 were given: %v", refusal)
	}
	if h, refusal := under.reserve(now, wish{in: 1, out: 0}); refusal != nil || h.out != 4 {
		t.Errorf("the output may have %d, want the 4 that are left above (%v)", h.out, refusal)
	}
}
