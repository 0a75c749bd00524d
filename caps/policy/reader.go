package policy

import (
	"io/fs"
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

// A Placeholder is a path of a base that begins with "{name}", which the
// operator replaces when the agent is launched.
type Placeholder struct {
	Name  string
	Rest  string // what follows: "" or "/sub/path"
	Modes caps.ModeSet
	Pos   caps.Pos
}

// A Value is what somebody gave for a placeholder; Pos is where. A path that is
// not absolute is taken from the folder that [Given] names.
type Value struct {
	Path string
	Pos  caps.Pos
}

// About is what an operator's document says of itself. It restricts nothing.
type About struct {
	SchemaVersion, Name, Description, IntendedUse string
	// Expectations are what whoever starts agents under it is expected to do.
	Expectations []string
}

// A key is a row of [capabilities].
type key struct {
	name   string
	family caps.Family
	forms  form
	about  string
	read   func(r *reader, k key, v *tomlfile.Value)
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
