package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

const (
	schema01 = "0.1"
	schema02 = "0.2"
)

// Words reads single values: what a path, a name or a number of a document means,
// and what there is to say of it.
type words struct {
	report
	opt      Options
	layer    bool // the reading: false is a base
	floor    bool // a profile that takes the place of a built-in floor
	requires bool // of a manifest, whose schema stands in another file
	v02      bool
}

// A reader reads one document. What it makes are caps values; what it has to
// say are findings.
type reader struct {
	words

	allow        []caps.Entry
	seen         map[caps.Grant]bool // what allow holds
	bounds       []caps.Bound
	deny         []caps.Entry
	limits       caps.Limits
	conditions   caps.Constraints
	leases       []caps.Lease
	routes       []caps.Route
	placeholders []Placeholder
	values       map[string]Value

	about     About
	bounded   map[string]bool // keys of [capabilities] that are there
	restricts bool            // says anything that could narrow
	json      bool
}

func newReader(opt Options, layer bool) *reader { return &reader{words: words{opt: opt, layer: layer}} }

func (w *words) parse(file string, data []byte) (*tomlfile.Table, bool) {
	root, err := tomlfile.Parse(file, data)
	if err != nil {
		w.syntax(err)
		return nil, false
	}
	return root, true
}

// A Kind is a kind of document.
type Kind string

// The kinds. A profile is an override without values for placeholders; a grant
// is read wherever an override or a profile is, and told by what it says.
const (
	KindPolicy   Kind = "policy"
	KindManifest Kind = "manifest"
	KindOverride Kind = "override"
	KindProfile  Kind = "profile"
	KindTemplate Kind = "template"
	KindGrant    Kind = "grant"
)

// rootKeys are the keys of each kind of document that this package reads.
func rootKeys(kind Kind) []string {
	switch kind {
	case KindOverride:
		return append(rootKeys(KindProfile), "params")
	case KindProfile:
		return append([]string{"schema", "capabilities", "deny", "tools", "visible", "constraints", "leases", "limits"},
			metaKeys()...)
	case KindTemplate:
		return []string{"schema", "capabilities", "limits"}
	default:
		return []string{"schema", "templates", "capabilities", "inject", "leases", "limits"}
	}
}

func (r *reader) root(t *tomlfile.Table, kind Kind) {
	r.schema(t)
	r.bounded = boundedKeys(t)
	for i := range t.Entries {
		e := &t.Entries[i]
		switch {
		case !slices.Contains(rootKeys(kind), e.Key):
			r.misplaced(e, kind)
		case e.Key == "schema":
		case slices.Contains(metaKeys(), e.Key):
			r.meta(e)
		case e.Key == "templates":
			r.templates(&e.Value)
		case e.Key == injectKey:
			r.routes = routes(&r.report, e, r.needs02(e.Pos, "[[inject]]"))
		case r.is(&e.Value, "["+e.Key+"]", tomlfile.TableKind):
			r.restricts = r.restricts || says(e.Value.Table)
			r.section(e.Key, e.Value.Table)
		}
	}
}

// says reports whether a table holds any key beside those of empty tables.
func says(t *tomlfile.Table) bool {
	return slices.ContainsFunc(t.Entries, func(e tomlfile.Entry) bool {
		return e.Value.Kind != tomlfile.TableKind || says(e.Value.Table)
	})
}

func boundedKeys(root *tomlfile.Table) map[string]bool {
	e, ok := root.Get("capabilities")
	if !ok || e.Value.Table == nil {
		return nil
	}
	m := make(map[string]bool, len(e.Value.Table.Entries))
	for _, e := range e.Value.Table.Entries {
		m[e.Key] = true
	}
	return m
}

func (r *reader) section(key string, t *tomlfile.Table) {
	switch key {
	case "capabilities":
		r.capabilities(t, "[capabilities]")
	case "deny":
		r.denyTable(t)
	case "tools":
		r.toolsTable(t)
	case "visible":
		r.visibleTable(t)
	case "constraints":
		r.constraintsTable(t)
	case "leases":
		r.leaseTable(t)
	case "limits":
		r.limitTable(t)
	case "params":
		r.paramValues(t)
	}
}

// misplaced tells a key that is known elsewhere from one that is not known.
func (w *words) misplaced(e *tomlfile.Entry, kind Kind) {
	_, isLimit, _ := limitOf(e.Key)
	switch {
	case isCapability(e.Key):
		w.add(e.Pos, CodeMisplacedKey, "write [capabilities] on a line before it", "%s stands outside [capabilities]", e.Key)
	case isLimit:
		w.add(e.Pos, CodeMisplacedKey, "write [limits] on a line before it", "%s stands outside [limits]", e.Key)
	case foreignKeys()[e.Key] != "":
		w.add(e.Pos, CodeMisplacedKey, "here it is written "+foreignKeys()[e.Key], "%s is another system's word", e.Key)
	case slices.Contains([]string{"deny", "tools", "visible", "constraints", "leases"}, e.Key):
		w.add(e.Pos, CodeMisplacedKey, "what is not granted is denied anyway",
			"[%s] has no meaning in a %s: only an operator's file takes away", e.Key, kind)
	case slices.Contains(metaKeys(), e.Key):
		w.add(e.Pos, CodeMisplacedKey, "a bundle says it in manifest.toml", "%s has no meaning in a %s", e.Key, kind)
	case e.Key == "params":
		w.add(e.Pos, CodeMisplacedKey, "placeholders are declared in manifest.toml and given values in an override",
			"[params] has no meaning in a %s", kind)
	case e.Key == injectKey:
		w.add(e.Pos, CodeMisplacedKey, "a layer closes a route by what it takes of net and secrets",
			"[[inject]] has no place in this %s: a bundle's policy.caps has it", kind)
	case e.Key == "templates":
		w.add(e.Pos, CodeMisplacedKey, "name them in policy.caps", "templates has no meaning here")
	case e.Key == "requires":
		w.add(e.Pos, CodeMisplacedKey, "write [capabilities]", "[requires] belongs into manifest.toml")
	default:
		w.add(e.Pos, CodeUnknownKey, tomlfile.Nearest(e.Key, rootKeys(kind)), "unknown key %q", e.Key)
	}
}

func (w *words) schema(t *tomlfile.Table) {
	e, ok := t.Get("schema")
	if !ok || !w.is(&e.Value, "schema", tomlfile.String) {
		return
	}
	switch e.Value.Str {
	case schema01:
	case schema02:
		w.v02 = true
	default:
		w.add(e.Value.Pos, CodeBadSchema, `write "0.1" or "0.2"`, "schema %q is not known", e.Value.Str)
	}
}

// needs02 reports whether the document's schema has a form, and records if not.
func (w *words) needs02(pos tomlfile.Pos, what string) bool {
	if !w.v02 {
		where := "on the first line"
		if w.requires {
			where = "on the first line of policy.caps"
		}
		w.add(pos, CodeNeedsSchema02, `write schema = "0.2" `+where, "%s: schema 0.2 has this, 0.1 does not", what)
	}
	return w.v02
}

// templates reads the named capability sets and joins each to the base.
func (r *reader) templates(v *tomlfile.Value) {
	if !r.is(v, "templates", tomlfile.Array) || len(v.Items) > 0 && !r.needs02(v.Pos, "templates") {
		return
	}
	var seen []string
	for i := range v.Items {
		item := &v.Items[i]
		if !r.is(item, "templates["+strconv.Itoa(i)+"]", tomlfile.String) {
			continue
		}
		if slices.Contains(seen, item.Str) {
			r.add(item.Pos, CodeDuplicate, "", "the template %q is named already", item.Str)
			continue
		}
		seen = append(seen, item.Str)
		if !caps.IsName(caps.Agents, item.Str) {
			r.add(item.Pos, CodeBadTemplate, "lower-case letters, digits, - and _", "%q is not the name of a template", item.Str)
			continue
		}
		r.joinTemplate(item)
	}
}

func (r *reader) joinTemplate(name *tomlfile.Value) {
	if r.opt.Template == nil {
		r.add(name.Pos, CodeBadTemplate, "", "the template %q: there are no templates here", name.Str)
		return
	}
	data, err := r.opt.Template(name.Str)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.add(name.Pos, CodeBadTemplate, "put it into the home's caps/templates", "there is no template %q", name.Str)
		return
	case err != nil:
		r.add(name.Pos, CodeBadTemplate, "", "the template %q: %v", name.Str, err)
		return
	}
	sub := newReader(r.opt, false)
	if t, ok := sub.parse(fmt.Sprintf("caps/templates/%s.toml", name.Str), data); ok {
		sub.root(t, KindTemplate)
	}
	r.findings = append(r.findings, sub.findings...)
	r.allow = append(r.allow, sub.allow...)
	r.placeholders = append(r.placeholders, sub.placeholders...)
	r.limits = r.limits.Min(sub.limits)
}
