package policy

import (
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// keys is the one table of [capabilities]: the parser, the hints and the JSON
// Schema derive from it.
func keys() []key {
	return []key{
		{"fs", caps.FS, formList, "Absolute folders or files to read; in an operator's file without fs_rw beside it, the " +
			"bound of reading and writing.", readPaths},
		{"fs_ro", caps.FS, formList, "The same as fs.", readPaths},
		{"fs_rw", caps.FS, formList, "Absolute folders or files to read, write, create and delete.", readPaths},
		{"net", caps.Net, formList | formTable, "Hosts to reach over https, with or without a port.", readNet},
		{"time", caps.Time, formBool, "Real clocks; without it the agent sees a virtual one.", readFlag},
		{
			"kb_read", caps.KBRead, formBool | formList,
			"Domains of the knowledge base to read; true is all of them, but no *_raw.", readDomains,
		},
		{"kb_write", caps.KBWrite, formBool | formList, "Domains of the knowledge base to write.", readDomains},
		{"secrets", caps.Secrets, formList | formSecret, "Ids of secrets, runloop/<scope>/<name>.", readSecrets},
		{"model", caps.Model, formBool | formList | formList02, "Models to use.", readNames},
		{"exec", caps.Exec, formBool | formList | formList02, "Programs to start, by absolute path.", readNames},
		{"env", caps.Env, formList, "Names of environment variables.", readNames},
		{"mcp", caps.MCP, formList, "Configured MCP servers to call.", readNames},
		{"agents", caps.Agents, formList, "Agents to launch.", readNames},
	}
}

func keyNames() []string {
	var names []string
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return names
}

func isCapability(name string) bool { return slices.Contains(keyNames(), name) }

func (r *reader) capabilities(t *tomlfile.Table, where string) {
	rows := keys()
	for i := range t.Entries {
		e := &t.Entries[i]
		at := slices.IndexFunc(rows, func(k key) bool { return k.name == e.Key })
		_, isLimit, _ := limitOf(e.Key)
		switch {
		case at >= 0:
			if r.takes(rows[at], &e.Value) {
				rows[at].read(r, rows[at], &e.Value)
			}
		case isLimit:
			r.add(e.Pos, CodeMisplacedKey, "write [limits] on a line before it", "%s stands in %s", e.Key, where)
		case e.Key == injectKey && r.requires:
			r.routes = routes(&r.report, e, r.needs02(e.Pos, "[[requires.inject]]"))
		case e.Key == injectKey:
			r.add(e.Pos, CodeMisplacedKey, "write [[inject]] on a line of its own", "%s stands in %s", e.Key, where)
		default:
			r.add(e.Pos, CodeUnknownKey, tomlfile.Nearest(e.Key, keyNames()), "unknown key %q in %s", e.Key, where)
		}
	}
	if r.layer {
		r.boundPaths(t)
	} else {
		r.tellReadOnly(t)
	}
}

func readFlag(r *reader, k key, v *tomlfile.Value) { r.wide(k, v) }

func readNames(r *reader, k key, v *tomlfile.Value) {
	if r.wide(k, v) {
		if v.Bool && !r.layer && k.family == caps.Exec {
			r.add(v.Pos, CodeExecAny, `list the programs: exec = ["/usr/bin/grep"] (schema "0.2")`,
				"exec = true lets the agent start every program")
		}
		return
	}
	r.bound(k.family, caps.AllModes(k.family), v)
	r.strings(k.name, v, func(item *tomlfile.Value) {
		if scope, ok := r.name(k, item); ok {
			r.grant(item, item.Str, caps.Grant{Family: k.family, Modes: caps.AllModes(k.family), Scope: scope})
		}
	})
	if k.family == caps.Exec && !r.layer {
		orders(&r.report, v)
	}
}
