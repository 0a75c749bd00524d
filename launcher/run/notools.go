package run

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
)

// A NoTool is a scope that a layer denies and by which no tool is called.
type NoTool struct {
	Layer string
	Scope string
	Pos   caps.Pos
}

// isTool reports whether any call can have the scope: a host call, a tool of the
// bundle, or one of a server that is configured.
func (p *Policy) isTool(scope string) bool {
	if _, known := caps.ToolScope(scope); !known && scope != "*" {
		return false
	}
	category, name, _ := strings.Cut(scope, ":")
	server, _, ofServer := strings.Cut(name, "/")
	switch {
	case p.Tools == nil || name == "*":
		return true
	case category == "tools":
		return slices.Contains(p.Tools, scope)
	case category == "mcp" && ofServer:
		return slices.Contains(p.Tools, "mcp:"+server+"/")
	}
	return true
}

// noTools are what the layers deny of tools that there are not. What a layer for
// many agents says of tools that only some of them have is not among them.
func (p *Policy) noTools() []NoTool {
	var list []NoTool
	for _, l := range p.all() {
		for _, e := range l.Deny {
			if e.Grant.Family != caps.Tool || e.Implied || e.Pos == (caps.Pos{}) || p.isTool(e.Grant.Scope) {
				continue
			}
			_, open := caps.ToolScope(e.Grant.Scope)
			if many := l.Name == "override:_default.toml" || strings.HasPrefix(l.Name, "profile:"); open && many {
				continue
			}
			list = append(list, NoTool{l.Name, e.Grant.Scope, e.Pos})
		}
	}
	return list
}
