package policy

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// grantKeys are the seven fields of a grant, as callers of the service and
// their tools write it. Each of them can only take away.
func grantKeys() []string {
	return []string{
		"allowed_adapters", "forbidden_adapters", "forbidden_effects", "forbidden_effect_tiers",
		"forbidden_privilege_tiers", "limits", "adapter_constraints",
	}
}

// ParseGrant reads a grant in JSON or in TOML. A field that is null or not there
// restricts nothing, [] is nothing at all, 0 is none; what is not understood is
// an error with the path of its field. The layer is nil if a finding is an
// error.
//
// There is no merging of grants but the meet of layers: an adapter list is the
// denial of every family that is not on it.
func ParseGrant(name, file string, data []byte, opt Options) (*caps.Layer, []Finding) {
	r := newReader(opt, true)
	root, ok := r.parseEither(file, data)
	if !ok {
		return nil, r.findings
	}
	grantReader{r}.grantDocument(root)
	if HasErrors(r.findings) {
		return nil, r.findings
	}
	return r.narrowing(name), r.findings
}

// parseEither parses JSON, which begins with a brace as no TOML does, or TOML.
func (r *reader) parseEither(file string, data []byte) (*tomlfile.Table, bool) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return r.parse(file, data)
	}
	root, err := tomlfile.ParseJSON(file, data, tomlfile.DefaultMax)
	if err != nil {
		r.syntax(err)
		return nil, false
	}
	r.json = true
	return root, true
}

// isGrant tells a grant from the other documents that narrow: by a field that
// only grants have, and by being JSON.
func (r *reader) isGrant(root *tomlfile.Table) bool {
	return r.json || slices.ContainsFunc(grantKeys(), func(k string) bool {
		_, ok := root.Get(k)
		return ok && k != "limits"
	})
}

// A grantReader reads what has the fields of a grant.
type grantReader struct{ *reader }

// grantDocument reads a grant and gives its findings the paths of their fields.
func (g grantReader) grantDocument(root *tomlfile.Table) {
	g.v02 = true // a grant has no schema: it has every form
	first := len(g.findings)
	for i := range root.Entries {
		e := &root.Entries[i]
		switch {
		case e.Value.Kind == tomlfile.Null && slices.Contains(grantKeys(), e.Key):
		case slices.Contains(grantKeys(), e.Key):
			g.restricts = g.restricts || !unrestricted(e) && (e.Value.Kind != tomlfile.TableKind || says(e.Value.Table))
			g.grantField(e.Key, &e.Value)
		case !g.json && slices.Contains(metaKeys(), e.Key):
			g.meta(e)
		case slices.Contains(rootKeys(KindOverride), e.Key):
			g.add(e.Pos, CodeMisplacedKey, "write it in a file of its own", "%s is no field of a grant, which has %s", e.Key,
				strings.Join(grantKeys(), ", "))
		default:
			g.add(e.Pos, CodeUnknownKey, tomlfile.Nearest(e.Key, grantKeys()), "unknown field %q of a grant", e.Key)
		}
	}
	fields := map[tomlfile.Pos]string{}
	fieldsOf("", root, fields)
	for i := first; i < len(g.findings); i++ {
		f := &g.findings[i]
		f.Field = fields[tomlfile.Pos{File: f.Path, Line: f.Line, Column: f.Column}]
		if f.Field != "" && !strings.HasPrefix(f.Message, f.Field+" ") {
			f.Message = f.Field + ": " + f.Message
		}
	}
}

func fieldsOf(prefix string, t *tomlfile.Table, fields map[tomlfile.Pos]string) {
	for i := range t.Entries {
		e := &t.Entries[i]
		name := prefix + e.Key
		fields[e.Pos] = name
		fieldOf(name, &e.Value, fields)
	}
}

func fieldOf(name string, v *tomlfile.Value, fields map[tomlfile.Pos]string) {
	if v.Kind == tomlfile.TableKind {
		fieldsOf(name+".", v.Table, fields)
	}
	if _, told := fields[v.Pos]; !told {
		fields[v.Pos] = name
	}
	for i := range v.Items {
		fieldOf(name+"["+strconv.Itoa(i)+"]", &v.Items[i], fields)
	}
}

// unrestricted reports whether a field says what null says, where there is no
// null.
func unrestricted(e *tomlfile.Entry) bool {
	return e.Key == "allowed_adapters" && e.Value.Kind == tomlfile.String && e.Value.Str == "operator_defined"
}

func (g grantReader) grantField(key string, v *tomlfile.Value) {
	want := tomlfile.Array
	switch {
	case unrestricted(&tomlfile.Entry{Key: key, Value: *v}):
		return
	case key == "limits" || key == "adapter_constraints":
		want = tomlfile.TableKind
	}
	if !g.is(v, key, want) {
		return
	}
	switch key {
	case "allowed_adapters":
		g.allowedAdapters(v)
	case "forbidden_adapters":
		g.strings(key, v, g.forbidAdapter)
	case "forbidden_effects", "forbidden_effect_tiers":
		g.denyEffects(key, v)
	case "forbidden_privilege_tiers":
		g.denyTiers(key, v)
	case "limits":
		g.limitTable(v.Table)
	case "adapter_constraints":
		g.adapterConstraints(v.Table)
	}
}

// allowedAdapters denies every family that no adapter of the list is. Denials
// meet whatever else the grant says; an allow list of families would join it.
func (g grantReader) allowedAdapters(v *tomlfile.Value) {
	var families []caps.Family
	tools := false
	g.strings("allowed_adapters", v, func(item *tomlfile.Value) {
		a, ok := adapterOf(item.Str)
		if !ok {
			g.add(item.Pos, CodeUnknownAdapter, nearestAdapter(item.Str),
				"there is no adapter %q; allowing it does nothing", item.Str)
		}
		families, tools = append(families, a.families...), tools || a.tools
		// Without a bound these allow nothing; one that the base does not have is
		// told as any other extra is, but for one of two families, of which the
		// base may have either.
		for _, f := range a.families {
			g.allow = append(g.allow, caps.Entry{Grant: wholeFamily(f), Pos: place(item.Pos), Implied: len(a.families) > 1})
		}
	})
	for f := range caps.NumFamilies {
		if !slices.Contains(families, f) {
			g.deny = append(g.deny, caps.Entry{Grant: wholeFamily(f), Pos: place(v.Pos), Implied: true})
		}
	}
	if !tools {
		g.deny = append(g.deny, caps.Entry{Grant: toolGrant("tools:*"), Pos: place(v.Pos), Implied: true})
	}
}

// forbidAdapter denies what an adapter is. One that is not known is kept as the
// tool of that name, which may be there tomorrow.
func (g grantReader) forbidAdapter(item *tomlfile.Value) {
	a, ok := adapterOf(item.Str)
	deny := func(denied caps.Grant) {
		g.deny = append(g.deny, caps.Entry{Grant: denied, Pos: place(item.Pos), Implied: true})
	}
	for _, f := range a.families {
		deny(wholeFamily(f))
	}
	if a.tools {
		deny(toolGrant("tools:*"))
	}
	if ok {
		return
	}
	scope, known := caps.ToolScope(item.Str)
	if scope == "" {
		g.add(item.Pos, CodeBadName, tomlfile.Nearest(item.Str, adapterNames()), "%q can be no adapter's name", item.Str)
		return
	}
	if !known {
		g.add(item.Pos, CodeUnknownAdapter, nearestAdapter(item.Str),
			"there is no adapter %q; it matches nothing, so forbidding it takes nothing away", item.Str)
	}
	deny(toolGrant(scope))
}

func wholeFamily(f caps.Family) caps.Grant {
	scope := "*"
	if f == caps.FS {
		scope = "/"
	}
	return caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: scope}
}

// adapterConstraints reads, for each adapter, what [constraints] has for its
// families.
func (g grantReader) adapterConstraints(t *tomlfile.Table) {
	given := map[string]string{}
	for i := range t.Entries {
		e := &t.Entries[i]
		a, ok := adapterOf(e.Key)
		switch {
		case !ok || a.table == "":
			g.add(e.Pos, CodeUnknownKey, tomlfile.Nearest(e.Key, constrainable()),
				"there is nothing to constrain of an adapter %q", e.Key)
			continue
		case given[a.table] != "":
			g.add(e.Pos, CodeTwoSpellings, "keep one", "%s and %s are one adapter here", e.Key, given[a.table])
			continue
		}
		given[a.table] = e.Key
		if e.Value.Kind != tomlfile.Null && g.is(&e.Value, e.Key, tomlfile.TableKind) {
			v := e.Value
			v.Table = g.ourFields(a.table, v.Table)
			g.constrain(a.table, e.Key, &v)
		}
	}
}

// ourFields is t with "allow_hosts" and its like under the names that
// [constraints] has for them.
func (w *words) ourFields(table string, t *tomlfile.Table) *tomlfile.Table {
	out := &tomlfile.Table{Pos: t.Pos}
	lists, given := constraintFields(table), map[string]string{}
	for _, e := range t.Entries {
		name := e.Key
		if rest := strings.TrimPrefix(name, "allow_"); slices.Contains(lists, rest) {
			name = rest
		}
		if given[name] != "" {
			w.add(e.Pos, CodeTwoSpellings, "keep one", "%s and %s are one field", e.Key, given[name])
			continue
		}
		given[name] = e.Key
		out.Put(tomlfile.Entry{Key: name, Pos: e.Pos, Value: e.Value})
	}
	return out
}
