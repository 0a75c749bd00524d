// Package policy turns documents into capability values: policy.caps and the
// manifest into a base, overrides into layers. It enforces nothing.
//
// There is one parser and two readings of what it parsed. In a base a missing
// key grants nothing; in a layer a missing key restricts nothing; [] and false
// take away in both. A key that is not known, a value of the wrong type, a form
// that the document's schema does not have, a restriction that this version
// cannot keep: each is an error with its place, and none is ever taken for
// "nothing was said". Every function reports all that it finds, not the first.
//
// The package reads no environment and no clock, and no file but those of the
// operator's that [Floor] and [LoadProfile] are told of: bytes, the operator's
// home folder and the means to look at paths come in through [Options].
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

// A Base is what one document asks for. Entries whose path begins with a
// placeholder are not in Entries but in Placeholders, until [Base.Resolve].
type Base struct {
	Schema       string // "0.1" or "0.2"
	Entries      []caps.Entry
	Limits       caps.Limits
	Leases       []caps.Lease // bound what is granted; a launch applies them as a layer
	Routes       []caps.Route // where a program's requests are given secrets
	Placeholders []Placeholder
}

// Join returns what a and b ask for together: the union of their entries and
// the stricter of their limits. It is how a manifest's [requires] joins the
// policy beside it.
func Join(a, b *Base) *Base {
	return &Base{
		Schema:       max(a.Schema, b.Schema),
		Entries:      append(append([]caps.Entry(nil), a.Entries...), b.Entries...),
		Limits:       a.Limits.Min(b.Limits),
		Leases:       append(append([]caps.Lease(nil), a.Leases...), b.Leases...),
		Routes:       append(append([]caps.Route(nil), a.Routes...), b.Routes...),
		Placeholders: append(append([]Placeholder(nil), a.Placeholders...), b.Placeholders...),
	}
}

// An Override is an operator's document that narrows: its layer, and the values
// that it gives to placeholders.
type Override struct {
	Layer  *caps.Layer
	Params map[string]Value
}

// ParseBase reads a policy.caps. The base is nil if a finding is an error.
func ParseBase(file string, data []byte, opt Options) (*Base, []Finding) {
	r := newReader(opt, false)
	root, ok := r.parse(file, data)
	if !ok {
		return nil, r.findings
	}
	r.root(root, KindPolicy)
	return r.result()
}

// ParseRequires reads the tables [requires] and [limits] of a manifest as a
// base; either may be nil. Schema is that of the policy.caps beside it; "" is
// "0.1".
func ParseRequires(requires, limits *tomlfile.Table, schema string, opt Options) (*Base, []Finding) {
	r := newReader(opt, false)
	r.requires, r.v02 = true, schema == schema02
	if requires != nil {
		r.capabilities(requires, "[requires]")
	}
	if limits != nil {
		r.limitTable(limits)
	}
	return r.result()
}

// ParseLayer reads a document of the operator's that narrows, or a grant, which
// [ParseGrant] describes. Name is what
// explanations and records call the layer, such as "override:writer.toml". The
// override is nil if a finding is an error.
func ParseLayer(name, file string, data []byte, opt Options) (*Override, []Finding) {
	r, ok := readLayer(file, data, KindOverride, opt)
	if !ok {
		return nil, r.findings
	}
	return &Override{Layer: r.narrowing(name), Params: r.values}, r.findings
}

// readLayer reads a document that narrows; not ok says that a finding refuses
// it.
func readLayer(file string, data []byte, kind Kind, opt Options) (r *reader, ok bool) {
	r = newReader(opt, true)
	r.floor = kind == KindProfile && IsFloor(stemOf(file))
	root, ok := r.parseEither(file, data)
	if !ok {
		return r, false
	}
	if r.isGrant(root) {
		grantReader{r}.grantDocument(root)
	} else {
		r.root(root, kind)
	}
	return r, !HasErrors(r.findings)
}

func (r *reader) narrowing(name string) *caps.Layer {
	return &caps.Layer{
		Name: name, Bounds: r.bounds, Allow: r.allow, Deny: r.deny,
		Limits: r.limits, Constraints: r.conditions, Leases: r.leases,
	}
}

// ParseLimits reads a table of limits, such as [limits] of config.toml.
func ParseLimits(t *tomlfile.Table) (caps.Limits, []Finding) {
	r := newReader(Options{}, true)
	r.limitTable(t)
	return r.limits, r.findings
}

func (r *reader) result() (*Base, []Finding) {
	if HasErrors(r.findings) {
		return nil, r.findings
	}
	schema := schema01
	if r.v02 {
		schema = schema02
	}
	return &Base{
		Schema: schema, Entries: r.allow, Limits: r.limits, Leases: r.leases, Routes: r.routes,
		Placeholders: r.placeholders,
	}, r.findings
}

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
