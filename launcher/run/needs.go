package run

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/places"
)

// Starved are the reasons for which a service refuses runs of a module that imports
// the calls, under a plan.
func Starved(calls []string, plan Plan) []Violation { return starved(&Spec{Calls: calls}, plan) }

// starved are the reasons why a run could do nothing of what it was made for:
// for each family that its bundle asks for, that the module calls, and of which
// no call is left, everything that was taken and by whom.
func starved(spec *Spec, plan Plan) []Violation {
	var list []Violation
	if len(spec.Calls) == 0 {
		return nil
	}
	for f := range caps.NumFamilies {
		calls := slices.DeleteFunc(caps.Tools(), func(t caps.ToolInfo) bool {
			return t.Family != f ||
				!slices.Contains(spec.Calls, t.Name)
		})
		switch {
		case len(calls) == 0:
		case !plan.Effective.Any(f):
			list = append(list, taken(plan, f, calls)...)
		default:
			list = append(list, hiddenCalls(plan, calls)...)
		}
	}
	return list
}

// taken is each capability of a family that a layer took the last of.
func taken(plan Plan, f caps.Family, calls []caps.ToolInfo) []Violation {
	var list []Violation
	for _, c := range plan.Changes {
		if c.Grant.Family != f || c.Kind != caps.Revoked {
			continue
		}
		for _, capability := range c.Grant.Strings() {
			list = append(list, violation(caps.CapMissing,
				places.Textf("%s was taken away by %s, nothing of %s is left, and the agent calls %s; leave some of it there, "+
					"or launch an agent that does without",
					places.Capability(capability), described(places.Layer(c.Layer), c.Source), f, names(calls)), capability, c.Layer))
		}
	}
	return list
}

// hiddenCalls is each of the calls, if no layer leaves any of them.
func hiddenCalls(plan Plan, calls []caps.ToolInfo) []Violation {
	var list []Violation
	for _, t := range calls {
		e := plan.Effective.Explain(caps.Request{Family: caps.Tool, Name: t.Scope()})
		if e.Allow {
			return nil
		}
		layer, text := "base", places.Text{}
		if i := slices.IndexFunc(e.Votes, func(v caps.Vote) bool { return !v.Allow }); i >= 0 {
			layer = e.Votes[i].Layer
			text = places.Textf("%s was hidden by %s, and the agent calls no other way to use %s; leave it there, or "+
				"launch an agent that does without",
				t.Name, described(places.Layer(layer), e.Votes[i].Pos), t.Family)
		}
		call := caps.Grant{Family: caps.Tool, Modes: 1, Scope: t.Scope()}
		list = append(list, violation(e.Code, text, call.String(), layer))
	}
	return list
}

func names(calls []caps.ToolInfo) string {
	var list []string
	for _, t := range calls {
		list = append(list, t.Name)
	}
	return strings.Join(list, ", ")
}
