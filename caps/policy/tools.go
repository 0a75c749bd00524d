package policy

import (
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// denyTools reads the tools of [deny]. One that is not known is kept: it may be
// there tomorrow, and was to be denied. Until then it matches nothing, which is
// told.
func (r *reader) denyTools(v *tomlfile.Value) {
	r.strings("tools", v, func(item *tomlfile.Value) {
		scope, known, ok := r.tool(item)
		if !ok {
			return
		}
		if !known {
			r.unknownTool(item, "it matches nothing, so denying it takes nothing away")
		}
		for i, g := range caps.DenyTool(scope) {
			r.deny = append(r.deny, caps.Entry{Grant: g, Pos: place(item.Pos), Implied: i > 0})
		}
	})
}

// toolsTable reads [tools]. A name that is not known allows nothing; a tool of an
// MCP server allows the host call that calls it.
func (r *reader) toolsTable(t *tomlfile.Table) {
	r.known(t, "[tools]", []string{"allow"})
	e, ok := t.Get("allow")
	if !ok || !r.is(&e.Value, "allow", tomlfile.Array) {
		return
	}
	r.bound(caps.Tool, 1, &e.Value)
	r.strings("allow", &e.Value, func(item *tomlfile.Value) {
		scope, known, ok := r.tool(item)
		switch {
		case !ok:
		case !known:
			r.unknownTool(item, "allowing it does nothing")
		default:
			r.allow = append(r.allow, caps.Entry{Grant: toolGrant(scope), Pos: place(item.Pos)})
			if strings.HasPrefix(scope, "mcp:") && strings.Contains(scope, "/") { // is called by it
				r.allow = append(r.allow, caps.Entry{Grant: toolGrant("mcp:mcp_call"), Pos: place(item.Pos), Implied: true})
			}
		}
	})
}

// visibleTable reads [visible]: every category that is not listed is hidden,
// and what is hidden is refused by name too. It is read as a deny list, so that
// it meets [tools] instead of joining it. A category that there is not lists
// nothing.
func (r *reader) visibleTable(t *tomlfile.Table) {
	r.known(t, "[visible]", []string{"categories"})
	e, ok := t.Get("categories")
	if !ok || !r.is(&e.Value, "categories", tomlfile.Array) {
		return
	}
	all := caps.Categories()
	var shown []string
	r.strings("categories", &e.Value, func(item *tomlfile.Value) {
		if !slices.Contains(all, item.Str) {
			r.add(item.Pos, CodeUnknownCategory, tomlfile.Nearest(item.Str, all), "there is no category %q; it shows nothing",
				item.Str)
		}
		shown = append(shown, item.Str)
	})
	for _, c := range all {
		if !slices.Contains(shown, c) {
			r.deny = append(r.deny, caps.Entry{Grant: toolGrant(c + ":*"), Pos: place(e.Value.Pos), Implied: true})
		}
	}
}

func toolGrant(scope string) caps.Grant { return caps.Grant{Family: caps.Tool, Modes: 1, Scope: scope} }

// tool reads the name of one tool, in any of its spellings.
func (w *words) tool(item *tomlfile.Value) (scope string, known, ok bool) {
	w.hidden(item)
	if item.Str == "*" {
		return "*", true, true
	}
	scope, known = caps.ToolScope(item.Str)
	if scope == "" {
		w.add(item.Pos, CodeBadName, `such as "net_http", "web__net_http", "web:*", "tools:weather", "mcp__github__search"`,
			"%q can be no tool's name", item.Str)
		return "", false, false
	}
	return scope, known, true
}

func (w *words) unknownTool(item *tomlfile.Value, so string) {
	scope, _ := caps.ToolScope(item.Str)
	if w.floor && slices.ContainsFunc(Dangers(), func(d Danger) bool { return slices.Contains(d.Tools, scope) }) {
		return // which the built-in floors speak of, and so their copies
	}
	server, ofServer := strings.CutPrefix(scope, "mcp:")
	var names []string
	for _, t := range caps.Tools() {
		names = append(names, t.Name)
	}
	hint := tomlfile.Nearest(item.Str, names)
	switch ours := foreignTools()[item.Str]; {
	case ours != "":
		hint = "here it is written " + ours
	case hint == "" && ofServer:
		hint = fmt.Sprintf("a server as a whole is mcp:call:%s under capabilities, one tool of it mcp__%s__NAME", server,
			server)
	case hint == "":
		hint = `a tool that the bundle brings is "tools:NAME", one of an MCP server "mcp:SERVER/NAME"`
	}
	if strings.HasPrefix(scope, "tools:") {
		w.add(item.Pos, CodeUnknownTool, hint,
			"there is no tool %q among the host calls; unless a bundle brings one of that name, %s", item.Str, so)
		return
	}
	w.add(item.Pos, CodeUnknownTool, hint, "there is no tool %q; %s", item.Str, so)
}

// foreignTools are another system's names of tools, in their two spellings, and
// the host calls that do the same here.
func foreignTools() map[string]string {
	return map[string]string{
		"exec__sandboxed_exec": `"exec_run"`, "sandboxed_exec": `"exec_run"`,
		"memory_operation__remember_shared": `"kb_put"`, "remember_shared": `"kb_put"`,
		"memory_operation__remember_agent": `"kb_put"`, "remember_agent": `"kb_put"`,
		"memory_operation__forget": `"kb_delete"`, "forget_memory": `"kb_delete"`,
		"multi_agent__delegate": `"agent_launch"`, "delegate_to_agent": `"agent_launch"`,
		"session_spawn": `"agent_launch"`, "agent_spawn": `"agent_launch"`,
		"hooks_add":    `"turn_next", the call at whose turn's end files are read again`,
		"file__delete": `"path_unlink_file"`, "delete_file": `"path_unlink_file"`,
	}
}
