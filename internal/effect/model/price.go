package model

import (
	"math"
	"strings"
)

// A Price is in US dollars a million tokens.
type Price struct{ In, Out float64 }

// nano is a billionth of a dollar, the unit that budgets are kept in: a price
// in dollars a million tokens is a thousand of them a token.
const nanoPerPrice = 1000

func (p Price) cost(in, out int64) int64 {
	return nanos(float64(in)*p.In*nanoPerPrice + float64(out)*p.Out*nanoPerPrice)
}

func nanos(n float64) int64 {
	if n = math.Ceil(n); n < math.MaxInt64 {
		return int64(n)
	}
	return math.MaxInt64
}

// outFor is how many tokens of output nano billionths pay, at most most.
func (p Price) outFor(nano, most int64) int64 {
	each := p.Out * nanoPerPrice
	if nano <= 0 && each > 0 {
		return 0
	}
	if each == 0 || float64(nano)/each >= float64(most) {
		return most
	}
	return int64(float64(nano) / each)
}

func usd(nano int64) float64 { return float64(nano) / 1e9 }

// priceOf finds the price of a model: by provider and model, by the model alone,
// or by the longest name that ends in "*" and begins it.
func priceOf(prices map[string]Price, full, bare string) (Price, bool) {
	if p, ok := prices[full]; ok {
		return p, true
	}
	if p, ok := prices[bare]; ok {
		return p, true
	}
	best, found := "", false
	for pattern := range prices {
		if matches(pattern, full) && strings.HasSuffix(pattern, "*") && len(pattern) > len(best) {
			best, found = pattern, true
		}
	}
	return prices[best], found
}

func matches(pattern, name string) bool {
	begin, wild := strings.CutSuffix(pattern, "*")
	if wild {
		return strings.HasPrefix(name, begin)
	}
	return pattern == name
}
