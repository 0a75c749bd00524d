package policy

import (
	"slices"
	"strconv"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A form is a type that a key of [capabilities] takes beside false, which takes
// away whatever the key is. The parser and the JSON Schema go by the same bits.
type form uint8

const (
	formBool   form = 1 << iota // true and false
	formList                    // an array of strings
	formTable                   // the table of net
	formSecret                  // {id, hosts} within the array
	formList02                  // the array is of schema 0.2; empty, it is of both
)

// A key is a row of [capabilities].
type key struct {
	name   string
	family caps.Family
	forms  form
	about  string
	read   func(r *reader, k key, v *tomlfile.Value)
}

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

// takes reports whether a key takes values of this kind in this schema, and
// records if not.
func (w *words) takes(k key, v *tomlfile.Value) bool {
	switch {
	case v.Kind == tomlfile.Bool && (k.forms&formBool != 0 || !v.Bool):
		return true
	case v.Kind == tomlfile.Bool:
		w.add(v.Pos, CodeWrongType, "write what is granted, or false to take all away",
			"%s must be an array: true would have no bounds", k.name)
	case v.Kind == tomlfile.Array && k.forms&formList02 != 0 && len(v.Items) > 0:
		return w.needs02(v.Pos, "an array for "+k.name)
	case v.Kind == tomlfile.Array && k.forms&formList != 0, v.Kind == tomlfile.TableKind && k.forms&formTable != 0:
		return true
	default:
		w.add(v.Pos, CodeWrongType, brackets(v, k.forms&formList != 0), "%s must be %s, not %s", k.name, k.forms, v.Kind)
	}
	return false
}

// String says what may be written.
func (f form) String() string {
	switch {
	case f&formBool != 0 && f&formList != 0:
		return "true, false or an array"
	case f&formBool != 0:
		return "true or false"
	case f&formTable != 0:
		return "an array or a table"
	}
	return "an array"
}

// grant adds what one item names; what is there already is said, and counts
// once. What is the item's text, "" where repetition is worth no word.
func (r *reader) grant(item *tomlfile.Value, what string, gs ...caps.Grant) {
	if r.seen == nil {
		r.seen = make(map[caps.Grant]bool)
	}
	for _, g := range gs {
		if what != "" && r.seen[g] {
			r.add(item.Pos, CodeDuplicate, "", "%q is there already", what)
			return
		}
		r.seen[g] = true
		r.allow = append(r.allow, caps.Entry{Grant: g, Pos: place(item.Pos)})
	}
}

// bound says that the layer restricts a family in some modes. A base has no
// bounds: what it does not name is not granted.
func (r *reader) bound(f caps.Family, modes caps.ModeSet, v *tomlfile.Value) {
	if r.layer {
		r.bounds = append(r.bounds, caps.Bound{Family: f, Modes: modes, Pos: place(v.Pos)})
	}
}

// strings calls do for every string of an array, and records what is none.
func (w *words) strings(name string, v *tomlfile.Value, do func(item *tomlfile.Value)) {
	for i := range v.Items {
		item := &v.Items[i]
		if item.Kind == tomlfile.String || w.is(item, name+"["+strconv.Itoa(i)+"]", tomlfile.String) {
			do(item)
		}
	}
}

// wide reads a boolean where true stands for everything in the family: a grant
// in a base, and in a layer no bound. It reports whether v was one.
func (r *reader) wide(k key, v *tomlfile.Value) bool {
	switch {
	case v.Kind != tomlfile.Bool:
		return false
	case !v.Bool:
		r.bound(k.family, caps.AllModes(k.family), v)
	default: // in a layer, which it does not bound, it is told where the base has nothing of the family
		r.grant(v, "", caps.Grant{Family: k.family, Modes: caps.AllModes(k.family), Scope: "*"})
	}
	return true
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

// name judges one name of model, exec, env, mcp or agents.
func (w *words) name(k key, item *tomlfile.Value) (string, bool) {
	s := item.Str
	w.hidden(item)
	switch {
	case k.family == caps.Exec:
		return w.program(item)
	case k.family == caps.Model && isModelPattern(s):
		if s == "*" && !w.layer {
			w.add(item.Pos, CodeWildcardScope, `name providers: "openai:*"`, "model %q is every model", s)
		}
		return s, true
	case caps.IsName(k.family, s):
		return s, true
	}
	hint := map[caps.Family]string{
		caps.Model: `"provider:name", "provider:*"`, caps.Env: `such as "PATH"`,
		caps.MCP: "the name of a server in config.toml", caps.Agents: "lower-case letters, digits, - and _",
	}[k.family]
	w.add(item.Pos, CodeBadName, hint, "%q is no name for %s", s, k.name)
	return "", false
}

// isModelPattern asks the algebra itself: a scope is what its own words read as.
func isModelPattern(s string) bool {
	g, err := caps.ParseGrant("model:use:" + s)
	return err == nil && g.Scope == s
}

func (w *words) program(item *tomlfile.Value) (string, bool) {
	path, dotdot, err := caps.CleanPath(item.Str)
	switch {
	case err != nil:
		w.add(item.Pos, CodeBadProgram, `such as "/usr/bin/grep"`, "exec: %v", err)
	case path == "/":
		w.add(item.Pos, CodeBadProgram, `such as "/usr/bin/grep"`, "exec: %q is no program", item.Str)
	case dotdot:
		w.add(item.Pos, CodePathDotDot, "write "+path, "%q has .. in it and is read as %s", item.Str, path)
		return path, true
	default:
		return path, true
	}
	return "", false
}
