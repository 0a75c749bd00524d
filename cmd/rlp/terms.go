//go:build !slim

package main

import (
	"fmt"
	"time"

	"runloop.dev/rlp/caps"
)

// terms are what a set says beside what may be touched: by which tools, under
// which conditions, for how long.
type terms struct {
	Hidden      []string
	Constraints map[string]int64
	Leases      []string
}

func termsOf(s caps.Set) terms {
	t := terms{Hidden: []string{}, Constraints: s.Constraints().Map(), Leases: []string{}}
	for _, tool := range caps.Tools() {
		if !s.Check(caps.Request{Family: caps.Tool, Name: tool.Scope()}).Allow {
			t.Hidden = append(t.Hidden, tool.Scope())
		}
	}
	for _, l := range s.HeldLeases() {
		t.Leases = append(t.Leases, leaseLine(l.Lease)+" by "+s.LayerName(l.Layer))
	}
	return t
}

// leaseLine says what is leased, and until when or how often.
func leaseLine(l caps.Lease) string {
	text := l.Grant.String()
	if l.Expires != caps.Forever {
		text += " until " + time.UnixMilli(l.Expires).UTC().Format(time.RFC3339)
	}
	if l.MaxUses != caps.Unbounded {
		text += fmt.Sprintf(" at most %d times", l.MaxUses)
	}
	return text
}

// printTerms prints what there is of them.
func (a *app) printTerms(s caps.Set) {
	t := termsOf(s)
	section := func(name string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintln(a.stdout, printable(name))
			a.list(lines)
		}
	}
	section("hidden tools", t.Hidden)
	section("constraints", conditions(s.Constraints()))
	section("leases", t.Leases)
}

// conditions are constraints as they are written, in the order of their table.
func conditions(x caps.Constraints) []string {
	lines := []string{}
	for c := range caps.NumConstraints {
		if v, ok := x.Get(c); ok {
			table, key := c.Key()
			lines = append(lines, fmt.Sprintf("%s.%s = %d", table, key, v))
		}
	}
	return lines
}

// boundedBy are the conditions and leases of what is kept.
func boundedBy(s caps.Set) []string { return append(conditions(s.Constraints()), termsOf(s).Leases...) }
