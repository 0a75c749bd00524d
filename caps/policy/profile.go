package policy

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A Profile is a named document that narrows, one of the home's or a built-in
// one.
type Profile struct {
	About
	Source string // the file, or [Builtin]
	Data   []byte // of the file; nil for a built-in one
	Layer  *caps.Layer

	restricts bool
}

// Builtin is the source of a profile that is part of this program.
const Builtin = "built-in"

// ParseProfile reads a profile. The profile is nil if a finding is an error.
func ParseProfile(name, file string, data []byte, opt Options) (*Profile, []Finding) {
	r, ok := readLayer(file, data, KindProfile, opt)
	if !ok {
		return nil, r.findings
	}
	p := &Profile{About: r.about, Source: file, Layer: r.narrowing("profile:" + name), restricts: r.restricts}
	p.Name = name
	if !p.restricts {
		r.add(tomlfile.Pos{File: file}, CodeNoRestriction,
			`a profile that narrows nothing says so: [deny] and capabilities = [], or "forbidden_adapters": [] in JSON`,
			"the profile %s restricts nothing", name)
		return nil, r.findings
	}
	return p, r.findings
}

//go:embed profiles/*.toml
var builtin embed.FS

// BuiltinProfiles are the names of the profiles that are part of this program,
// sorted, the floors among them.
func BuiltinProfiles() []string {
	names := []string{Delegate, Untrusted}
	entries, _ := fs.ReadDir(builtin, "profiles")
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(names)
	return names
}

// ProfileText is the text of a built-in profile.
func ProfileText(name string) (string, bool) {
	if IsFloor(name) {
		return FloorText(name), true
	}
	data, err := builtin.ReadFile(path.Join("profiles", name+".toml"))
	return string(data), err == nil
}

// IsProfileName reports whether name can be that of a profile: an agent's name,
// which may have an underscore before it.
func IsProfileName(name string) bool { return caps.IsName(caps.Agents, strings.TrimPrefix(name, "_")) }

// LoadProfile is the profile of a name: the home's file, which replaces a
// built-in one of that name, else the built-in one. Nothing that is wrong is
// passed over, and a file that cannot be read is not "no file": but for the two
// floors, which [Floor] describes, there is no profile that could stand in for
// one that somebody wrote. It is nil, nil, nil where there is none.
func LoadProfile(name, file string, opt Options) (*Profile, []Finding, error) {
	if !IsProfileName(name) {
		return nil, nil, fmt.Errorf("%q can be no profile's name: lower-case letters, digits, - and _", name)
	}
	data, err := readOptional(file, opt)
	switch {
	case IsFloor(name):
		layer, warning := Floor(name, file, opt)
		return floorProfile(name, file, layer, data != nil && warning == ""), floorWarning(file, warning), nil
	case err != nil:
		return nil, nil, err
	case data != nil:
		p, findings := ParseProfile(name, file, data, opt)
		if p != nil {
			p.Data = data
		}
		return p, findings, nil
	}
	if err := misnamed(file, name); err != nil {
		return nil, nil, err
	}
	text, ok := ProfileText(name)
	if !ok {
		return nil, nil, nil
	}
	p, findings := ParseProfile(name, name+".toml", []byte(text), opt)
	if p != nil {
		p.Source = Builtin
	}
	return p, findings, nil
}

// floorProfile is a floor as a profile that somebody chose by its name: its
// denials are a profile's, and speak of no untrusted input.
func floorProfile(name, file string, floor *caps.Layer, own bool) *Profile {
	layer := *floor
	layer.Name, layer.Because = "profile:"+name, 0
	p := &Profile{Source: Builtin, Layer: &layer, restricts: true}
	p.Name, p.Description = name, floorAbout(name)
	if own {
		p.Source = file
	}
	return p
}

func floorWarning(file, warning string) []Finding {
	if warning == "" {
		return nil
	}
	return []Finding{{Path: file, Severity: CodeFloorKept.Severity(), Code: CodeFloorKept, Message: warning}}
}
