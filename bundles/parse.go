package bundles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// ParseManifest reads a manifest. File is used in positions alone. The error
// wraps one [*Error] for everything that is wrong, in the order of the file's
// sections.
func ParseManifest(file string, data []byte) (*Manifest, error) {
	root, err := tomlfile.ParseMax(file, data, MaxManifest)
	if err != nil {
		return nil, manifestErrors(err)
	}
	p := &manifestParser{m: &Manifest{}}
	p.all(root)
	if err := p.Err(); err != nil {
		return nil, manifestErrors(err)
	}
	return p.m, nil
}

// manifestErrors restates the errors of a document as refusals.
func manifestErrors(err error) error {
	return restated(err, "manifest", func(message string) string { return message })
}

// restated is each error of a document as a refusal with a code, its message in
// the words of the document's format.
func restated(err error, code string, words func(message string) string) error {
	var at *tomlfile.Error
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range many.Unwrap() {
			all = append(all, restated(e, code, words))
		}
		return errors.Join(all...)
	}
	if !errors.As(err, &at) {
		return err
	}
	return &Error{
		File: at.Pos.File, Line: at.Pos.Line, Column: at.Pos.Column, Code: code, Message: words(at.Msg),
		Hint: at.Hint,
	}
}

type manifestParser struct {
	tomlfile.Walk
	m *Manifest
}

func (p *manifestParser) all(root *tomlfile.Table) {
	p.Known(root, "agent", entryWasm, entryProgram, "entry_native", "build", "caps", "requires", "limits", "params",
		"artifacts", "schemas", "ports", "input")
	agent, ok := p.Table(root, "agent")
	if _, there := root.Get("agent"); !there {
		p.Errorf(root.Pos, "begin with [agent], name, version and kind", "the table [agent] is missing")
	}
	if ok {
		p.agent(agent)
	}
	p.entry(root, agent)
	if t, ok := p.Table(root, "caps"); ok {
		p.caps(t)
	}
	if t, ok := p.Table(root, "build"); ok {
		p.m.Build = p.build(t)
	}
	p.m.Requires, _ = p.Table(root, "requires")
	p.m.Limits, _ = p.Table(root, "limits")
	p.each(root, "params", p.param)
	p.each(root, "artifacts", p.artifact)
	p.each(root, "schemas", p.schema)
	p.input(root)
	if t, ok := p.Table(root, "ports"); ok {
		p.Known(t, "in", "out")
		p.m.In, _ = p.Strings(t, "in")
		p.m.Out, _ = p.Strings(t, "out")
	}
}

func (p *manifestParser) agent(t *tomlfile.Table) {
	p.Known(t, "name", "version", "kind", "description", "variant", entryWasm, entryProgram, "entry_native")
	if e, ok := t.Get("name"); !ok {
		p.Errorf(t.Pos, `write name = "writer"`, "[agent] has no name")
	} else if name, ok := p.String(t, "name"); ok {
		id, err := ident.ParseAgent(name)
		if err != nil {
			p.identError(e.Value.Pos, err)
		}
		p.m.Agent = id
	}
	if e, ok := t.Get("kind"); !ok {
		p.Errorf(t.Pos, `write kind = "`+Kind+`"`, "[agent] has no kind")
	} else if kind, ok := p.String(t, "kind"); ok && kind != Kind && kind != KindProgram {
		p.Errorf(e.Value.Pos, `write kind = "`+Kind+`" or "`+KindProgram+`"`, "kind %q is not supported", kind)
	} else {
		p.m.Program = kind == KindProgram
	}
	for key, into := range map[string]*string{"version": &p.m.Version, "variant": &p.m.Variant} {
		s, ok := p.String(t, key)
		if ok && !isVersion(s) {
			e, _ := t.Get(key)
			p.Errorf(e.Value.Pos, `such as "0.1.0"`, "%s %q is not 1 to 64 letters, digits, dots, +, _ and -", key, s)
		}
		*into = s
	}
	p.m.Description = prose(&p.Walk, t)
}

func (p *manifestParser) identError(pos tomlfile.Pos, err error) {
	var bad *ident.Error
	if !errors.As(err, &bad) {
		p.Errorf(pos, "", "%v", err)
		return
	}
	hint := bad.Want
	if bad.Hint != "" {
		hint = fmt.Sprintf("write %q", bad.Hint)
	}
	p.Errorf(pos, hint, "%s %s is not valid", bad.Kind, quote(bad.Text))
}

// prose reads the description, a text that will be shown to people.
func prose(w *tomlfile.Walk, t *tomlfile.Table) string {
	const key = "description"
	s, ok := w.String(t, key)
	if !ok {
		return ""
	}
	e, _ := t.Get(key)
	if wrong := proseProblem(s); wrong != "" {
		w.Errorf(e.Value.Pos, "", "%s %s", key, wrong)
	}
	return s
}

// proseProblem is what is wrong with a text that will be shown to people, or "".
func proseProblem(s string) string {
	if len(s) > 4096 {
		return fmt.Sprintf("has %d bytes; at most 4096 are allowed", len(s))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) {
		return "contains a character that turns the reading direction"
	}
	return ""
}

// What names the module of an agent, and what its program.
const entryWasm, entryProgram = "entry_wasm", "entry_program"

// entry reads the module or the program, which stands in [agent] or at the top.
func (p *manifestParser) entry(root, agent *tomlfile.Table) {
	key, other := entryWasm, entryProgram
	example := `write entry_wasm = { path = "agent.wasm" } in [agent]`
	if p.m.Program {
		key, other = other, key
		example = `write entry_program = { path = "agent", sha256 = "..." } in [agent]`
	}
	var at *tomlfile.Table
	for _, t := range []*tomlfile.Table{agent, root} {
		if e, ok := t.Get("entry_native"); ok {
			p.m.native = &e.Pos
			p.Is(&e.Value, "entry_native", tomlfile.TableKind)
		}
		if e, ok := t.Get(other); ok {
			p.Errorf(e.Pos, example, "%s is of another kind of agent", other)
		}
		e, ok := t.Get(key)
		switch {
		case !ok:
		case at != nil:
			p.Errorf(e.Pos, "keep the one in [agent]", "%s is there twice", key)
		default:
			at = t
		}
	}
	if at == nil {
		if agent != nil {
			p.Errorf(agent.Pos, example, "the manifest names no %s", key)
		}
		return
	}
	t, ok := p.Table(at, key)
	if !ok {
		return
	}
	if !p.m.Program {
		p.Known(t, "path", "sha256", "blake3")
		p.m.Entry = p.file(t, "path", example)
		return
	}
	p.Known(t, "path", "args", "sha256")
	p.m.Args, _ = p.Strings(t, "args")
	p.m.Entry = p.placed(t, "path", example, func(path string) (wrong, hint string) {
		if strings.HasPrefix(path, "/") {
			return wrongPath(path)
		}
		return checkName(path), `a path inside the bundle, such as "bin/agent", or an absolute one of this machine`
	})
}

// build reads how the module of a source folder is made.
func (p *manifestParser) build(t *tomlfile.Table) *BuildStep {
	p.Known(t, "command", "output")
	b := &BuildStep{Pos: t.Pos}
	if e, ok := t.Get("command"); ok {
		b.Pos = e.Value.Pos
		if b.Command, ok = p.Strings(t, "command"); ok && (len(b.Command) == 0 || b.Command[0] == "") {
			p.Errorf(b.Pos, `write command = ["make"], or leave it out where something else makes the module`,
				"[build] command names no program")
		}
	}
	b.Output = p.file(t, "output", `write output = "agent.wasm", the module that there is after the command`).Path
	return b
}

func (p *manifestParser) caps(t *tomlfile.Table) {
	p.Known(t, "file", "sha256", "blake3")
	f := p.file(t, "file", `write file = "`+DefaultPolicyName+`"`)
	p.m.Policy = &f
}

// file reads the name and the digests of a file of the bundle.
func (p *manifestParser) file(t *tomlfile.Table, key, example string) File {
	return p.placed(t, key, example, func(path string) (wrong, hint string) {
		return checkName(path), `a path inside the bundle, such as "bin/agent.wasm"`
	})
}

// placed reads the path and the digests of a file, and whether it may lie there.
func (p *manifestParser) placed(
	t *tomlfile.Table, key, example string, check func(path string) (wrong, hint string),
) File {
	f := File{SHA256: p.digest(t, "sha256"), BLAKE3: p.digest(t, "blake3")}
	e, ok := t.Get(key)
	if !ok {
		p.Errorf(t.Pos, example, "the key %q is missing", key)
		return f
	}
	f.Pos = e.Value.Pos
	if f.Path, ok = p.String(t, key); !ok {
		return f
	}
	if wrong, hint := check(f.Path); wrong != "" {
		p.Errorf(f.Pos, hint, "%s: %s", quote(f.Path), wrong)
	} else if f.Path == ManifestName || f.Path == SignatureName {
		p.Errorf(f.Pos, "", "%s cannot be listed in the manifest", f.Path)
	}
	return f
}

func (p *manifestParser) digest(t *tomlfile.Table, key string) string {
	s, ok := p.String(t, key)
	if !ok {
		return ""
	}
	s = strings.ToLower(s)
	if sum, err := hex.DecodeString(s); err != nil || len(sum) != sha256.Size {
		e, _ := t.Get(key)
		p.Errorf(e.Value.Pos, "", "%s is not 64 hexadecimal digits", key)
	}
	return s
}

// each calls f for every table of a table of tables.
func (p *manifestParser) each(root *tomlfile.Table, key string, f func(name string, pos tomlfile.Pos,
	t *tomlfile.Table),
) {
	all, ok := p.Table(root, key)
	if !ok {
		return
	}
	for i := range all.Entries {
		e := &all.Entries[i]
		if p.Is(&e.Value, key+"."+e.Key, tomlfile.TableKind) {
			f(e.Key, e.Pos, e.Value.Table)
		}
	}
}

func (p *manifestParser) param(name string, pos tomlfile.Pos, t *tomlfile.Table) {
	if !isParam(name) {
		p.Errorf(pos, "a lower-case letter, then at most 63 of a-z, 0-9 and _", "%s is not the name of a param", quote(name))
	}
	p.Known(t, "kind", "description")
	p.Need(t, "kind")
	param := Param{Description: prose(&p.Walk, t), Pos: pos}
	if kind, ok := p.String(t, "kind"); ok {
		if kind != "dir" && kind != "file" {
			e, _ := t.Get("kind")
			p.Errorf(e.Value.Pos, `write "dir" or "file"`, "there is no kind of param %s", quote(kind))
		}
		param.Kind = kind
	}
	put(&p.m.Params, name, param)
}

func (p *manifestParser) artifact(name string, _ tomlfile.Pos, t *tomlfile.Table) {
	p.Known(t, "path", "sha256", "blake3", "version")
	a := Artifact{File: p.file(t, "path", `write path = "`+name+`.json"`)}
	a.Version, _ = p.Int(t, "version")
	put(&p.m.Artifacts, name, a)
}

func (p *manifestParser) schema(name string, pos tomlfile.Pos, t *tomlfile.Table) {
	text, err := json.Marshal(t.Plain())
	if err != nil {
		p.Errorf(pos, "", "the schema %s cannot be written as JSON: %v", quote(name), err)
		return
	}
	put(&p.m.Schemas, name, json.RawMessage(text))
}

// input reads what the agent's input is. With a schema it is JSON: there is nothing
// else that a schema is held against.
func (p *manifestParser) input(root *tomlfile.Table) {
	p.m.Input = InputJSON
	t, ok := p.Table(root, "input")
	if !ok {
		return
	}
	p.Known(t, "type")
	p.Need(t, "type")
	kind, ok := p.String(t, "type")
	if !ok {
		return
	}
	e, _ := t.Get("type")
	_, schema := p.m.Schemas["with"]
	switch {
	case kind != InputJSON && kind != InputText && kind != InputBytes:
		p.Errorf(e.Value.Pos, `write "json", "text" or "bytes"`, "input.type: there is no type of input %s", quote(kind))
	case kind != InputJSON && schema:
		p.Errorf(e.Value.Pos, `write type = "json", or leave [schemas.with] out`,
			"input.type is %q, and the schema [schemas.with] is one of JSON", kind)
	}
	p.m.Input = kind
}

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// isVersion reports whether s is 1 to 64 letters, digits, dots, +, _ and -,
// and begins with a letter or digit. Text forms are checked by hand here: four
// regular expressions cost half a millisecond at every start of the program.
func isVersion(s string) bool {
	ok := s != "" && len(s) <= 64 && !strings.Contains(".+_-", s[:1])
	for i := range len(s) {
		c := s[i] | 0x20
		ok = ok && ('a' <= c && c <= 'z' || '0' <= s[i] && s[i] <= '9' || strings.IndexByte(".+_-", s[i]) >= 0)
	}
	return ok
}

// isParam reports whether s is a lower-case letter, then at most 63 lower-case
// letters, digits and _, so that it is the name of a variable in upper case too.
func isParam(s string) bool {
	id, err := ident.ParseAgent(s)
	return err == nil && !strings.Contains(id.String(), "-")
}
