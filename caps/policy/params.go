package policy

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A Param is the declaration of a placeholder in a manifest's [params].
type Param struct {
	Name        string
	Kind        string // "dir" or "file"
	Description string
	Pos         caps.Pos
}

const paramPattern = `[a-z][a-z0-9_]{0,63}`

// ParseParams reads the [params] of a manifest: what each placeholder is for.
// Errors among the findings refuse the manifest.
func ParseParams(manifest *tomlfile.Table) ([]Param, []Finding) {
	r := newReader(Options{}, false)
	t := r.table(manifest, "params")
	if t == nil {
		return nil, r.findings
	}
	var params []Param
	for i := range t.Entries {
		p := &t.Entries[i]
		if !isParam(p.Key) {
			r.add(p.Pos, CodeBadParam, "lower-case letters, digits and _", "%q is no name of a placeholder", p.Key)
			continue
		}
		if !r.is(&p.Value, p.Key, tomlfile.TableKind) {
			continue
		}
		t := p.Value.Table
		r.known(t, p.Key, []string{"kind", "description"})
		param := Param{Name: p.Key, Pos: place(p.Pos), Kind: r.text(t, "kind"), Description: r.text(t, "description")}
		if k, ok := t.Get("kind"); !ok {
			r.add(p.Pos, CodeMissing, `kind = "dir" or "file"`, "%s lacks its kind", p.Key)
		} else if k.Value.Kind == tomlfile.String && param.Kind != "dir" && param.Kind != "file" {
			r.add(k.Value.Pos, CodeBadParam, `"dir" or "file"`, "%q is no kind of placeholder", param.Kind)
		}
		params = append(params, param)
	}
	return params, r.findings
}

// text returns the string at a key, "" if there is none.
func (r *report) text(t *tomlfile.Table, key string) string {
	e, ok := t.Get(key)
	if !ok || !r.is(&e.Value, key, tomlfile.String) {
		return ""
	}
	return e.Value.Str
}

func (r *reader) paramValues(t *tomlfile.Table) {
	r.values = map[string]Value{}
	for i := range t.Entries {
		e := &t.Entries[i]
		if !isParam(e.Key) {
			r.add(e.Pos, CodeBadParam, "lower-case letters, digits and _", "%q is no name of a placeholder", e.Key)
			continue
		}
		if !r.is(&e.Value, e.Key, tomlfile.String) {
			continue
		}
		r.hidden(&e.Value)
		if p, ok := r.path(&e.Value, e.Value.Str); ok {
			r.values[e.Key] = Value{Path: p, Pos: place(e.Value.Pos)}
		}
	}
}

// Given is what the operator gives to the placeholders of a base.
type Given struct {
	Values map[string]Value
	Dir    string // absolute; what relative values start from. "" refuses them
	Home   string // what "~/" stands for. "" refuses it
}

// Resolved is a base without placeholders.
type Resolved struct {
	Entries []caps.Entry
	Params  map[string]string // absolute clean paths by placeholder
}

// A ParamError says everything that is wrong with the placeholders of a launch:
// which are missing, with their descriptions, and which values fit nothing.
type ParamError struct {
	Missing  []Param
	Findings []Finding
}

// Error lists what is missing and how to give it, then the rest.
func (e *ParamError) Error() string {
	var lines []string
	for _, p := range e.Missing {
		lines = append(lines, fmt.Sprintf("missing parameter %s%s: give it with --param %s=PATH, or in the override's "+
			"[params]",
			p.Name, about(p), p.Name))
	}
	for _, f := range e.Findings {
		if f.Code != CodeParamUnset {
			lines = append(lines, f.String())
		}
	}
	return strings.Join(lines, "\n")
}

func about(p Param) string {
	if p.Description == "" {
		return ""
	}
	return " (" + p.Description + ")"
}

// CheckPlaceholders reports placeholders that the manifest does not declare.
func (b *Base) CheckPlaceholders(declared []Param) []Finding {
	var r report
	var names []string
	for _, p := range declared {
		names = append(names, p.Name)
	}
	for _, p := range b.Placeholders {
		if !slices.Contains(names, p.Name) {
			r.add(tomlfile.Pos(p.Pos), CodeParamUndecl, declareHint(p.Name, names), "the placeholder {%s} is not declared",
				p.Name)
		}
	}
	return r.findings
}

func declareHint(name string, names []string) string {
	if hint := tomlfile.Nearest(name, names); hint != "" && !strings.HasPrefix(hint, "one of") {
		return hint
	}
	return fmt.Sprintf(`add %s = { kind = "dir", description = "..." } under [params] of manifest.toml`, name)
}

// Resolve puts the operator's values in the place of placeholders. The error is
// a [*ParamError] that lists everything.
func (b *Base) Resolve(declared []Param, given Given) (Resolved, error) {
	r := report{findings: b.CheckPlaceholders(declared)}
	out := Resolved{Entries: slices.Clone(b.Entries), Params: map[string]string{}}
	var missing []Param
	var names []string
	for _, p := range declared {
		names = append(names, p.Name)
		v, ok := given.Values[p.Name]
		if !ok {
			missing = append(missing, p)
			r.add(tomlfile.Pos(p.Pos), CodeParamUnset, "--param "+p.Name+"=PATH", "the placeholder {%s}%s has no value", p.Name,
				about(p))
			continue
		}
		clean, err := given.Absolute(v.Path)
		if err != nil {
			r.add(tomlfile.Pos(v.Pos), CodeBadParam, "", "the value of %s: %v", p.Name, err)
			continue
		}
		out.Params[p.Name] = clean
	}
	for _, name := range slices.Sorted(maps.Keys(given.Values)) {
		if !slices.Contains(names, name) {
			r.add(tomlfile.Pos(given.Values[name].Pos), CodeParamUndecl, tomlfile.Nearest(name, names),
				"there is no placeholder %s", strconv.Quote(name))
		}
	}
	if HasErrors(r.findings) {
		return Resolved{}, &ParamError{Missing: missing, Findings: r.findings}
	}
	for _, p := range b.Placeholders {
		out.Entries = append(out.Entries, caps.Entry{
			Pos:   p.Pos,
			Grant: caps.Grant{Family: caps.FS, Modes: p.Modes, Scope: path.Join(out.Params[p.Name], p.Rest)},
		})
	}
	return out, nil
}

// Absolute makes a value an absolute clean path. ".." is resolved by the text,
// as a shell's user expects of a relative path.
func (g Given) Absolute(s string) (string, error) {
	switch {
	case s == "~" || strings.HasPrefix(s, "~/"):
		if g.Home == "" {
			return "", fmt.Errorf("%q: no home folder is known", s)
		}
		s = g.Home + s[1:]
	case s != "" && s[0] != '/' && g.Dir != "":
		s = g.Dir + "/" + s
	}
	clean, _, err := caps.CleanPath(s)
	return clean, err
}
