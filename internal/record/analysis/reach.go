package analysis

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// within are the grants of a set that a run can use: of a family whose every
// host call is hidden it can use nothing. Attached says that there may be tools
// of a bundle's, which reach what they need in their own name.
func within(s caps.Set, attached bool) []caps.Grant {
	return slices.DeleteFunc(s.Grants(), func(g caps.Grant) bool { return !reached(s, g.Family, attached) })
}

// reached reports whether any call that is left reaches a family.
func reached(s caps.Set, f caps.Family, attached bool) bool {
	left, hidden := s.Tools()
	if len(left)+len(hidden) == 0 { // nobody speaks of tools
		return true
	}
	none := true
	for _, t := range caps.Tools() {
		if t.Family != f {
			continue
		}
		none = false
		if s.Check(caps.Request{Family: caps.Tool, Name: t.Scope()}).Allow {
			return true
		}
	}
	switch f {
	case caps.MCP:
		return anyOf(s, left, "mcp:", "mcp:any/any")
	case caps.FS, caps.Net, caps.Exec, caps.Secrets, caps.Env: // what programs and requests of tools can be given
		return attached && anyOf(s, left, "tools:", "tools:any")
	}
	return none
}

// anyOf reports whether a tool is left whose scope begins so: one that is named,
// or one that nobody speaks of.
func anyOf(s caps.Set, left []caps.Grant, prefix, unnamed string) bool {
	return s.Check(caps.Request{Family: caps.Tool, Name: unnamed}).Allow ||
		slices.ContainsFunc(left, func(g caps.Grant) bool { return strings.HasPrefix(g.Scope, prefix) })
}
