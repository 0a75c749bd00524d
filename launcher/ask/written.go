package ask

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A place is what an operator's file has at one place: an edit is told in the
// words of the file, which are not always those of what they mean. A tier, an
// effect and an adapter stand for many capabilities; a category that is not
// listed stands nowhere.
type place struct {
	key   string // the innermost one
	value *tomlfile.Value
	item  bool // value is one of a list
	v02   bool // the file is of schema 0.2
}

// placeAt is what the file of pos has there; false where it cannot be read, or is
// another one by now.
func (s *Subject) placeAt(pos caps.Pos) (place, bool) {
	if pos.Line == 0 {
		return place{}, false
	}
	data, err := tomlfile.ReadFile(s.file(pos.File), 0)
	if err != nil {
		return place{}, false
	}
	parse := tomlfile.Parse
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		parse = func(file string, data []byte) (*tomlfile.Table, error) {
			return tomlfile.ParseJSON(file, data, tomlfile.DefaultMax)
		}
	}
	root, err := parse(pos.File, data)
	if err != nil {
		return place{}, false
	}
	found, ok := placeIn(root, tomlfile.Pos(pos))
	if schema, is := root.Get("schema"); is {
		found.v02 = schema.Value.Str == "0.2"
	}
	return found, ok
}

// placeIn is the innermost thing of t at pos.
func placeIn(t *tomlfile.Table, pos tomlfile.Pos) (place, bool) {
	for i := range t.Entries {
		e := &t.Entries[i]
		v := &e.Value
		if v.Kind == tomlfile.TableKind {
			if s, ok := placeIn(v.Table, pos); ok {
				return s, true
			}
		}
		for j := range v.Items {
			if v.Items[j].Pos == pos {
				return place{key: e.Key, value: &v.Items[j], item: true}, true
			}
		}
		if v.Pos == pos || e.Pos == pos {
			return place{key: e.Key, value: v}, true
		}
	}
	return place{}, false
}

// reword says an edit in the words of the file: do and what are it in those of
// capabilities.
func (ed *editor) reword(pos caps.Pos, do, what string) (string, string) {
	s, ok := ed.of.placeAt(pos)
	switch {
	case !ok:
	case s.item && do == "remove" && s.value.Kind == tomlfile.String:
		return do, fmt.Sprintf("%q", ed.of.names.Capability(s.value.Str))
	case s.value.Kind == tomlfile.Array && s.key == "categories":
		return "add", listed(s.key, strings.Split(ed.request.Name, ":")[:1])
	case s.value.Kind == tomlfile.Array && s.key == "allowed_adapters":
		return "add", listed(s.key, []string{ed.adapter()})
	case do == "add" && s.value.Kind == tomlfile.Array && ed.request.Family == caps.Net && caps.TCP.Has(ed.request.Mode):
		return do, listed(s.key, []string{ed.request.Name}) // hosts of a layer bound bytes as well
	case do == "add" && s.value.Kind == tomlfile.Array && !s.item && !strings.HasPrefix(what, s.key+" = "):
		return do, ed.inList(s, what)
	case do == "add" && s.value.Kind == tomlfile.Bool:
		if f := ed.request.Family; !s.v02 && (f == caps.Exec || f == caps.Model) {
			what = s.key + " = true" // schema 0.1 has no names here
		}
		return "replace", what
	case do == "add" && s.value.Kind == tomlfile.TableKind:
		return do, ed.inNet(s, what)
	}
	return do, what
}

func listed(key string, words []string) string { return key + " = [" + quoted(words) + "]" }

// adapter is what a grant calls what is asked for.
func (ed *editor) adapter() string {
	if ed.request.Family == caps.Tool {
		return "tools"
	}
	return ed.request.Family.String()
}

// constraintLists are the keys by which [constraints] and grants bound scopes.
var constraintLists = [...]string{
	"paths", "tables", "programs", "models", "ids", "names", "servers", "hosts",
	"allow_hosts",
}

// inList is the line that adds the request to a list that has another key than
// [capabilities] has for it.
func (ed *editor) inList(s place, what string) string {
	if !slices.Contains(constraintLists[:], s.key) {
		return what
	}
	name := ed.shown.Name
	if ed.request.Family == caps.Net {
		name = bareHost(ed.request)
	}
	return listed(s.key, []string{name})
}

// bareHost is a host as policies write it: the port of its scheme is left out.
func bareHost(r caps.Request) string {
	if caps.TCP.Has(r.Mode) {
		return r.Name
	}
	if caps.HTTP.Has(r.Mode) {
		return strings.TrimSuffix(r.Name, ":80")
	}
	return strings.TrimSuffix(r.Name, ":443")
}

// inNet is the line that adds the request to a table of hosts and methods: what
// of the two it does not have.
func (ed *editor) inNet(s place, what string) string {
	if ed.request.Family != caps.Net {
		return what
	}
	var lines []string
	for i := range s.value.Table.Entries {
		e := &s.value.Table.Entries[i]
		has := func(word string) bool {
			return slices.ContainsFunc(e.Value.Items, func(v tomlfile.Value) bool { return v.Str == word })
		}
		switch e.Key {
		case "tcp":
			if caps.TCP.Has(ed.request.Mode) && !has(ed.request.Name) {
				return listed(e.Key, []string{ed.request.Name})
			}
		case "hosts", "allow_hosts":
			if host := bareHost(ed.request); !has(host) && !has(ed.request.Name) {
				lines = append(lines, listed(e.Key, []string{host}))
			}
		case "methods":
			words := slices.DeleteFunc(methodsOf(ed.modes), has)
			if len(words) > 0 {
				lines = append(lines, listed(e.Key, words))
			}
		}
	}
	if len(lines) == 0 {
		return what
	}
	return strings.Join(lines, ", ")
}

// methodsOf are the methods of HTTP in modes, as policies write them.
func methodsOf(modes caps.ModeSet) []string {
	var words []string
	for _, m := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"} {
		for _, scheme := range []string{"https", "http"} {
			if mode, ok := caps.NetMode(scheme, m); ok && modes.Has(mode) && !slices.Contains(words, m) {
				words = append(words, m)
			}
		}
	}
	return words
}
