package policy

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// Detect tells what kind of document a file is: by its name where that is
// fixed, else by what only one kind has. data may be nil. What nothing tells is
// an override, the kind of which a misreading grants nothing.
func Detect(file string, data []byte) Kind {
	file = filepath.ToSlash(file)
	dir, name := filepath.Split(file)
	switch {
	case strings.HasSuffix(name, ".caps"):
		return KindPolicy
	case name == "manifest.toml":
		return KindManifest
	case strings.HasSuffix(dir, "templates/"):
		return KindTemplate
	case strings.HasSuffix(dir, "overrides/"):
		return KindOverride
	case strings.HasSuffix(dir, "profiles/"):
		return KindProfile
	}
	root, err := tomlfile.ParseMax(file, data, 1<<20)
	if err != nil {
		return KindOverride
	}
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { _, ok := root.Get(k); return ok })
	}
	switch {
	case has("agent", "requires", "entry_wasm"):
		return KindManifest
	case has("templates"):
		return KindPolicy
	}
	return KindOverride
}

// Lint returns every finding of one document, sorted. Of a manifest it looks at
// [requires], [limits] and [params] alone; the rest is judged where bundles are
// read.
func Lint(kind Kind, file string, data []byte, opt Options) []Finding {
	var findings []Finding
	switch kind {
	case KindPolicy:
		_, findings = ParseBase(file, data, opt)
	case KindManifest:
		findings = lintManifest(file, data, opt)
	case KindTemplate:
		_, findings = ParseTemplate(file, data, opt)
	case KindProfile:
		_, findings = ParseProfile(stemOf(file), file, data, opt)
	default:
		_, findings = ParseLayer("override", file, data, opt)
	}
	Sort(findings)
	return findings
}

func lintManifest(file string, data []byte, opt Options) []Finding {
	root, err := tomlfile.ParseMax(file, data, 1<<20)
	if err != nil {
		var r report
		r.syntax(err)
		return r.findings
	}
	// The schema stands in the policy beside it, which is not seen from here:
	// what both schemas take is judged, the step between them is not.
	var r report
	requires, limits := r.table(root, "requires"), r.table(root, "limits")
	base, findings := ParseRequires(requires, limits, schema02, opt)
	params, more := ParseParams(root)
	findings = append(append(r.findings, findings...), more...)
	if base != nil {
		findings = append(findings, base.CheckPlaceholders(params)...)
	}
	return findings
}

// ParseTemplate reads a template as [ParseBase] does a policy.caps.
func ParseTemplate(file string, data []byte, opt Options) (*Base, []Finding) {
	r := newReader(opt, false)
	root, ok := r.parse(file, data)
	if !ok {
		return nil, r.findings
	}
	r.root(root, KindTemplate)
	return r.result()
}

// FileFinding is the finding for a file that could not be read.
func FileFinding(path string, err error) Finding {
	f := Finding{Path: path, Severity: CodeFile.Severity(), Code: CodeFile, Message: err.Error()}
	if file, ok := errors.AsType[*tomlfile.FileError](err); ok {
		f.Message, f.Hint = file.Path+": "+file.Msg, file.Hint
	}
	return f
}

// Extras turns what a layer could not do into warnings, one for each thing that
// was written: its entries that the base does not have, and what kb_read = true
// quietly takes away.
func Extras(changes []caps.Change) []Finding {
	var r report
	for _, c := range changes {
		pos := tomlfile.Pos(c.Source)
		plain, raw := strings.CutSuffix(c.Grant.Scope, rawSuffix)
		switch {
		case c.Kind == caps.Ignored:
			r.add(pos, CodeCapsExtra, "an override can only take away", "%s: %s is not in the base and is ignored",
				c.Grant.Family, c.Grant)
		case c.Grant.Family == caps.KBRead && raw:
			r.add(pos, CodeRawRevoked, "to keep it, name it, or leave the key out",
				"this takes %s away, and with it the sight of unmasked %s", c.Grant.Scope, plain)
		}
	}
	seen := map[Finding]bool{}
	return slices.DeleteFunc(r.findings, func(f Finding) bool {
		f.Message = ""
		twice := seen[f] && f.Line > 0
		seen[f] = true
		return twice
	})
}
