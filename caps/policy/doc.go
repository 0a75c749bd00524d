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
	"io/fs"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// Options are what reading a document needs from outside. The zero Options
// refuse "~/" and templates, know the built-in domains, and look at no path.
type Options struct {
	Home    string   // the operator's home folder, absolute, that "~/" stands for
	Domains []string // domains of the knowledge base beside the built-in ones
	Stat    func(path string) (fs.FileInfo, error)
	// Resolve says where a path leads, and by which link if there is one on the
	// way; nil: whoever launches looks for links itself.
	Resolve  func(path string) (to, link string)
	Template func(name string) ([]byte, error) // the bytes of a template; the name was checked
}

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
