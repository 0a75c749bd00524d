package run

import (
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
)

// Who denies a tool that there is not is told, with the place; what is denied for
// many agents, follows from something else or is not known is no mistake.
func TestDeniedToolsThatThereAreNot(t *testing.T) {
	known := []string{"tools:mine", "mcp:github/"}
	written := caps.Pos{File: "f", Line: 3, Column: 1}
	for name, c := range map[string]struct {
		layer, scope string
		tools        []string
		pos          caps.Pos
		implied      bool
		told         bool
	}{
		"a host call":                   {"l", "web:net_http", known, written, false, false},
		"the host call of all servers":  {"l", "mcp:mcp_call", known, written, false, false},
		"a category":                    {"l", "web:*", known, written, false, false},
		"all":                           {"l", "*", known, written, false, false},
		"no host call":                  {"l", "web:nothing", known, written, false, true},
		"no category":                   {"l", "wub:*", known, written, false, true},
		"the bundle's":                  {"l", "tools:mine", known, written, false, false},
		"not the bundle's":              {"l", "tools:other", known, written, false, true},
		"all of the bundle's":           {"l", "tools:*", known, written, false, false},
		"a server's":                    {"l", "mcp:github/search", known, written, false, false},
		"of no server":                  {"l", "mcp:gitlab/search", known, written, false, true},
		"tools that are not known":      {"l", "tools:other", nil, written, false, false},
		"no host call, tools not known": {"l", "web:nothing", nil, written, false, true},
		"by something else":             {"l", "tools:other", known, written, true, false},
		"written nowhere":               {"l", "tools:other", known, caps.Pos{}, false, false},
		"of all agents":                 {"override:_default.toml", "tools:other", known, written, false, false},
		"of a profile":                  {"profile:p", "mcp:gitlab/search", known, written, false, false},
		"no host call, of all agents":   {"override:_default.toml", "web:nothing", known, written, false, true},
		"no host call, of a profile":    {"profile:p", "web:nothing", known, written, false, true},
		"not the bundle's, of one's":    {"override:a.toml", "tools:other", known, written, false, true},
	} {
		l := &caps.Layer{Name: c.layer, Deny: []caps.Entry{
			entryOf(t, "kb:read:notes"), {
				Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: c.scope}, Pos: c.pos,
				Implied: c.implied,
			},
		}}
		l.Deny[0].Pos = written
		plan, err := NewPlan(Policy{Tools: c.tools, Layers: []*caps.Layer{l}})
		must(t, err)
		var want []NoTool
		if c.told {
			want = []NoTool{{c.layer, c.scope, written}}
		}
		if !slices.Equal(plan.NoTools, want) {
			t.Errorf("%s: %v, want %v", name, plan.NoTools, want)
		}
		lost := slices.ContainsFunc(plan.Changes, func(ch caps.Change) bool {
			return ch.Grant.Family == caps.Tool && ch.Grant.Scope == c.scope && ch.Kind == caps.Revoked
		})
		if there := c.scope == "tools:mine" || c.scope == "web:net_http"; there && !lost {
			t.Errorf("%s: a tool that there is was taken away, and the changes do not say so: %v", name, plan.Changes)
		}
		if c.told && lost {
			t.Errorf("%s: what there is not was taken away: %v", name, plan.Changes)
		}
	}
}
