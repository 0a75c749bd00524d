package policy

import (
	"slices"

	"runloop.dev/rlp/caps"
)

// A Danger is a class of things that cannot be taken back or that carry what an
// agent knows away: what nobody does at the word of a page that was fetched, and
// what a delegate is not handed along with its task.
type Danger struct {
	Class string
	// Grave is what `rlp audit scan` says of a file that gives the class back:
	// high where it reaches programs, other agents or secrets.
	Grave bool
	// Families are what the class is about. Their tools are derived from them,
	// never listed.
	Families []caps.Family
	// Tools are those that are of no family: the ways to install something.
	// None of them is a host call of this version; a floor speaks of them so
	// that one that comes is denied from its first day.
	Tools []string
	About string
}

// Dangers is the one table of both built-in floors, and of what looks at the
// files that replace them.
func Dangers() []Danger {
	return []Danger{
		{Class: "memory-write", Families: []caps.Family{caps.KBWrite}, About: "write to, or delete from, the knowledge base"},
		{Class: "delegation", Grave: true, Families: []caps.Family{caps.Agents}, About: "launch other agents"},
		{Class: "exec", Grave: true, Families: []caps.Family{caps.Exec}, About: "start programs"},
		{Class: "secrets", Grave: true, Families: []caps.Family{caps.Secrets}, About: "use secrets"},
		{Class: "install", Grave: true, Tools: []string{
			"multi_agent:agent_install", "mcp:server_install",
			"tools:tool_install",
		}, About: "install agents, servers or tools"},
	}
}

// Entries are what a layer denies to keep the class out: its families as a
// whole, the tools that act on nothing else, and those of no family.
func (d Danger) Entries() []caps.Entry {
	var list []caps.Entry
	deny := func(g caps.Grant) {
		list = append(list, caps.Entry{Grant: g, Implied: true})
	}
	for _, f := range d.Families {
		deny(caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: "*"})
	}
	for _, scope := range d.scopes() {
		deny(caps.Grant{Family: caps.Tool, Modes: 1, Scope: scope})
	}
	return list
}

func (d Danger) scopes() []string {
	list := slices.Clone(d.Tools)
	for _, t := range caps.Tools() {
		if slices.Contains(d.Families, t.Family) {
			list = append(list, t.Scope())
		}
	}
	slices.Sort(list)
	return list
}
