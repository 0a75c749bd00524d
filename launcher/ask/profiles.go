package ask

import (
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// A Profile is one profile as it is listed. A bad one has findings and
// nothing else beyond name and source.
type Profile struct {
	Name         string           `json:"name"`
	Source       string           `json:"source"`
	Description  string           `json:"description"`
	IntendedUse  string           `json:"intended_use"`
	Expectations []string         `json:"orchestrator_expectations"`
	Narrows      []string         `json:"narrows"`
	Limits       map[string]int64 `json:"limits"`
	Findings     []policy.Finding `json:"findings"`
}

// ProfileAt is the profile of a name, read from a file or built in.
func ProfileAt(name, file string, opt policy.Options) Profile {
	row := Profile{
		Name: name, Source: file, Expectations: []string{}, Narrows: []string{}, Limits: map[string]int64{},
		Findings: []policy.Finding{},
	}
	p, findings, err := policy.LoadProfile(name, file, opt)
	if err != nil {
		findings = []policy.Finding{policy.FileFinding(file, err)}
	}
	row.Findings = append(row.Findings, findings...)
	if p == nil {
		return row
	}
	row.Source, row.Description, row.IntendedUse = p.Source, p.Description, p.IntendedUse
	row.Expectations = append(row.Expectations, p.Expectations...)
	row.Narrows, row.Limits = narrows(p.Layer), p.Layer.Limits.Map()
	return row
}

// narrows says what a layer takes, without a base: each bound with what it
// leaves, each denial, each condition.
func narrows(l *caps.Layer) []string {
	list := []string{}
	said := map[string]bool{}
	say := func(s string) {
		if !said[s] {
			said[s] = true
			list = append(list, s)
		}
	}
	for _, b := range l.Bounds {
		left := []string{}
		for _, e := range l.Allow {
			if e.Grant.Family == b.Family {
				left = append(left, e.Grant.Scope)
			}
		}
		if len(left) == 0 {
			say("no " + b.Family.String())
		} else {
			say(b.Family.String() + " only " + strings.Join(left, ", "))
		}
	}
	for _, e := range l.Deny {
		if e.Grant.Family == caps.Tool {
			say("not the tool " + e.Grant.Scope)
			continue
		}
		for _, s := range e.Grant.Strings() {
			say("not " + s)
		}
	}
	for _, lease := range l.Leases {
		say("leased: " + LeaseText(lease))
	}
	return append(list, Conditions(l.Constraints)...)
}
