package main

import (
	"math"
	"slices"
)

// A figure is what was measured of one thing, once a round, or why it was not.
type figure struct {
	Unit    string    `json:"unit,omitempty"`
	Samples []float64 `json:"samples,omitempty"` // by round
	Missing string    `json:"missing,omitempty"` // why there is none, and what to do about it
}

// there reports whether there is something to show.
func (f *figure) there() bool { return f != nil && len(f.Samples) > 0 }

// A spread is the middle of some samples, the least of them, and where the
// middle of very many lies, as nineteen times of twenty.
type spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Count  int     `json:"count"`
}

// spreadOf needs at least one sample. The interval is that of the order
// statistics, which asks nothing of how the samples are spread; of fewer than
// six it is all of them.
func spreadOf(samples []float64) spread {
	v := slices.Sorted(slices.Values(samples))
	n := len(v)
	s := spread{Median: middle(v), Least: v[0], Low: v[0], High: v[n-1], Count: n}
	if n < 6 {
		return s
	}
	half := 1.96 * math.Sqrt(float64(n)) / 2
	low := max(0, int(math.Floor(float64(n)/2-half)))
	high := min(n-1, int(math.Ceil(float64(n)/2+half))-1)
	s.Low, s.High = v[low], v[high]
	return s
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// quotient is how many times b a is, by the rounds that both were measured in:
// what slows the machine down for a while slows both.
func quotient(a, b *figure) spread {
	var q []float64
	for i := range min(len(a.Samples), len(b.Samples)) {
		q = append(q, a.Samples[i]/b.Samples[i])
	}
	return spreadOf(q)
}
