package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A Severity says how much a finding of a scan matters.
type Severity string

// The severities of a scan.
const (
	High Severity = "HIGH"
	Med  Severity = "MED"
	Info Severity = "INFO"
)

// A Finding is what a scan has to say of one place.
type Finding struct {
	Location string   `json:"location"`
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Detail   string   `json:"detail"`
}

// SortFindings puts the graver ones first, then those of one place together.
func SortFindings(list []Finding) {
	rank := func(s Severity) int { return slices.Index([]Severity{High, Med, Info}, s) }
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), strings.Compare(a.Location, b.Location),
			strings.Compare(a.Rule, b.Rule), strings.Compare(a.Detail, b.Detail))
	})
}

// A Class is one class of dangerous things.
type Class struct {
	Name, About string
	Grave       bool
	Grants      []caps.Grant // everything that is of the class
}

// Regranted is what a document that replaces a floor leaves of each class: left
// is [Everything], narrowed by it. Place finds where it says so.
func Regranted(left caps.Set, layer *caps.Layer, file string, classes []Class) []Finding {
	var list []Finding
	for _, c := range classes {
		some := leftOf(left, c, true)
		if len(some) == 0 {
			continue
		}
		severity := Med
		if c.Grave {
			severity = High
		}
		list = append(list, Finding{
			Location: placeIn(layer, some, file), Rule: "regrant:" + c.Name, Severity: severity,
			Detail: fmt.Sprintf("lets a delegate, or a run that has seen untrusted content, %s: it leaves %s", c.About,
				words(some)),
		})
	}
	return list
}

// Kept is what an agent keeps of each class when others launch it, and nothing
// narrows it for that.
func Kept(a *Agent, by []string, classes []Class) []Finding {
	var list []Finding
	for _, c := range classes {
		if some := leftOf(a.Held, c, a.Attached); len(some) > 0 {
			list = append(list, Finding{
				Location: a.place(some[0]), Rule: "inherit:" + c.Name, Severity: Info,
				Detail: fmt.Sprintf("%s, which %s may launch, keeps %s as far as both have it, and may %s", a.Name,
					strings.Join(by, ", "), words(some), c.About),
			})
		}
	}
	return list
}

func leftOf(s caps.Set, c Class, attached bool) []caps.Grant {
	var list []caps.Grant
	for _, have := range within(s, attached) {
		for _, danger := range c.Grants {
			if have.Family == danger.Family && have.Modes&danger.Modes != 0 {
				have.Modes &= danger.Modes
				list = append(list, have)
			}
		}
	}
	return list
}

// placeIn is where a layer grants some: the entry, else the bound, else the
// file, whose silence grants it.
func placeIn(l *caps.Layer, some []caps.Grant, file string) string {
	for _, g := range some {
		for _, e := range l.Allow {
			if e.Grant.Family == g.Family && e.Pos.Line > 0 {
				return e.Pos.String()
			}
		}
	}
	return file
}

func words(grants []caps.Grant) string {
	const most = 5
	var list []string
	for _, g := range grants {
		list = append(list, g.Strings()...)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if n := len(list); n > most {
		list = append(list[:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(list, ", ")
}

// An Agent is one that can be launched, and what it would hold.
type Agent struct {
	Name     string
	Location string // of its policy
	Held     caps.Set
	After    caps.Set     // what is left of it once it has seen content from outside
	Entries  []caps.Entry // of its base, with their places
	Attached bool         // it brings tools of its own
}

func (a *Agent) place(g caps.Grant) string {
	for _, e := range a.Entries {
		if e.Grant.Family == g.Family && e.Grant.Modes&g.Modes != 0 && (e.Grant.Scope == g.Scope || e.Grant.Scope == "*" ||
			below(g.Scope, e.Grant.Scope)) && e.Pos.Line > 0 {
			return e.Pos.String()
		}
	}
	return a.Location
}

// Launches reports whether a may launch the agent of a name.
func (a *Agent) Launches(name string) bool {
	return a.Held.Check(caps.Request{Family: caps.Agents, Name: name}).Allow && reached(a.Held, caps.Agents, false)
}

// Reachable are the agents that others may launch, those that may launch
// themselves among them, each with who may.
func Reachable(agents []Agent, names []string) map[string][]string {
	by := map[string][]string{}
	for i := range agents {
		for _, name := range names {
			if agents[i].Launches(name) {
				by[name] = append(by[name], agents[i].Name)
			}
		}
	}
	return by
}

// Trust says which content comes from outside.
type Trust struct {
	// Untrusted reports whether what is read under a grant of files, of the
	// knowledge base or of programs comes from outside by the operator's word.
	Untrusted func(g caps.Grant) bool
	// Trusted reports whether the answers of all hosts of a grant may be believed.
	Trusted func(g caps.Grant) bool
	// Input says that what an agent is given to do comes from outside.
	Input bool
	// ProgramsReach says that programs reach the network.
	ProgramsReach bool
}

// A leg is one of the three things that are lethal together.
type leg struct {
	what string
	at   []string
}

func (l *leg) add(place string, g caps.Grant) { l.at = append(l.at, g.String()+" at "+place) }

// legs are private data, content from outside, and a way out that is left once
// such content was seen.
func (a *Agent) legs(t Trust, stained map[string]bool) [3]leg {
	list := [3]leg{{what: "private data"}, {what: "untrusted content"}, {what: "a way out"}}
	private, outside, egress := &list[0], &list[1], &list[2]
	if t.Input {
		outside.at = append(outside.at, "its input")
	}
	for _, g := range within(a.After, a.Attached) {
		if g.Family == caps.Net || g.Family == caps.MCP || g.Family == caps.Exec && t.ProgramsReach {
			egress.add(a.place(g), g)
		}
	}
	for _, g := range within(a.Held, a.Attached) {
		at := a.place(g)
		switch g.Family {
		case caps.FS, caps.KBRead:
			if g.Family == caps.FS && !g.Modes.Has(caps.Read) {
				continue
			}
			private.add(at, g)
			if t.Untrusted(g) || g.Family == caps.KBRead && (stained[g.Scope] || g.Scope == "*" && len(stained) > 0) {
				outside.add(at, g)
			}
		case caps.Secrets, caps.Env:
			private.add(at, g)
		case caps.Net:
			if !t.Trusted(g) {
				outside.add(at, g)
			}
		case caps.MCP:
			outside.add(at, g)
		case caps.Exec:
			if t.Untrusted(g) {
				outside.add(at, g)
			}
		}
	}
	return list
}

// stains are the domains of the knowledge base into which some agent may carry
// what it has from outside.
func stains(agents []Agent, t Trust) map[string]bool {
	out := map[string]bool{}
	for i := range agents {
		if legs := agents[i].legs(t, nil); len(legs[1].at) == 0 {
			continue
		}
		for _, g := range within(agents[i].After, agents[i].Attached) {
			if g.Family == caps.KBWrite {
				out[g.Scope] = true
			}
		}
	}
	return out
}

// Trifecta finds the agents that have private data, untrusted content and a way
// out, and the chains of delegation that have the three together.
func Trifecta(agents []Agent, t Trust) []Finding {
	stained := stains(agents, t)
	var list []Finding
	whole := map[string]bool{}
	for i := range agents {
		a := &agents[i]
		if legs := a.legs(t, stained); complete(legs) {
			whole[a.Name] = true
			list = append(list, Finding{Location: a.Location, Rule: "trifecta", Severity: High, Detail: a.Name + " has " +
				tell(legs)})
		}
	}
	for i := range agents {
		if !whole[agents[i].Name] {
			list = append(list, chain(agents, &agents[i], t, stained, whole)...)
		}
	}
	return list
}

// chain is a finding where who a may launch, and who these may, have among them
// what a alone has not.
func chain(agents []Agent, a *Agent, t Trust, stained, whole map[string]bool) []Finding {
	names, legs := []string{a.Name}, a.legs(t, stained)
	for at := 0; at < len(names); at++ {
		from := slices.IndexFunc(agents, func(x Agent) bool { return x.Name == names[at] })
		for i := range agents {
			b := &agents[i]
			if slices.Contains(names, b.Name) || whole[b.Name] || !agents[from].Launches(b.Name) {
				continue
			}
			names = append(names, b.Name)
			for n, l := range b.legs(t, stained) {
				legs[n].at = append(legs[n].at, l.at...)
			}
		}
	}
	if len(names) == 1 || !complete(legs) {
		return nil
	}
	return []Finding{{
		Location: a.Location, Rule: "trifecta:chain", Severity: Med,
		Detail: fmt.Sprintf("%s together have %s; a delegate holds no more than who launches it, so that %s would need all "+
			"three for this to leak", strings.Join(names, ", "), tell(legs), a.Name),
	}}
}

func complete(legs [3]leg) bool {
	return len(legs[0].at) > 0 && len(legs[1].at) > 0 && len(legs[2].at) > 0
}

func tell(legs [3]leg) string {
	const most = 3
	parts := make([]string, len(legs))
	for i, l := range legs {
		at := slices.Compact(slices.Sorted(slices.Values(l.at)))
		if n := len(at); n > most {
			at = append(at[:most], fmt.Sprintf("and %d more", n-most))
		}
		parts[i] = l.what + " (" + strings.Join(at, ", ") + ")"
	}
	return strings.Join(parts, ", ")
}
