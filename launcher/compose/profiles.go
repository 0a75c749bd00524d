package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// ProfileLayers are the layers of the profiles that apply: the settings' own,
// which every launch has, and those that this invocation names. Neither their
// order nor a name given twice means anything, so they are sorted.
func (a *Reader) ProfileLayers(c *Composition, named []string) ([]*caps.Layer, error) {
	for _, name := range named {
		if !policy.IsProfileName(name) {
			return nil, Usagef("--profile %s: the name of a profile is lower-case letters, digits, - and _", name)
		}
	}
	names := slices.Clone(named)
	if p := c.Config.Security.Profile; p != "" {
		names = append(names, p)
	}
	slices.Sort(names)
	var layers []*caps.Layer
	for _, name := range slices.Compact(names) {
		p, err := a.Profile(c, name)
		if err != nil && !slices.Contains(named, name) {
			// which the settings or the environment say
			err = fmt.Errorf("%ssecurity.profile: %w", c.Config.Security.ProfileAt, err)
		}
		if err != nil {
			return nil, err
		}
		layers = append(layers, p.Layer)
		if p.Data != nil {
			c.NarrowedBy(a.ProfileAgain(c, p))
		}
	}
	// What requests from outside will start from is judged before the first one.
	if name := c.Config.Security.RunGrant; name != "" {
		if _, err := a.Profile(c, name); err != nil {
			return nil, fmt.Errorf("%ssecurity.run_grant: %w", c.Config.Security.RunGrantAt, err)
		}
	}
	return layers, nil
}

// ProfileAgain is how the file of a profile is read between turns.
func (a *Reader) ProfileAgain(c *Composition, p *policy.Profile) Narrowing {
	path := c.Home.Profile(p.Name)
	return Narrowing{name: p.Layer.Name, Path: path, data: p.Data, layer: p.Layer, parse: func(data []byte) (*caps.Layer,
		[]policy.Finding,
	) {
		again, findings := policy.ParseProfile(p.Name, path, data, a.Options(c.Home, c.Config))
		if again == nil {
			return nil, findings
		}
		return again.Layer, findings
	}}
}

// Profile is the profile of a name. One that is unknown or malformed refuses:
// to start without it would be to start with more than was meant.
func (a *Reader) Profile(c *Composition, name string) (*policy.Profile, error) {
	p, findings, err := policy.LoadProfile(name, c.Home.Profile(name), a.Options(c.Home, c.Config))
	if err != nil {
		return nil, InputErr(fmt.Errorf("reading the profile %s: %w", name, err))
	}
	c.Findings = append(c.Findings, findings...)
	a.tellFloor(findings)
	if err := policy.AsError(findings); err != nil {
		return nil, InputErr(fmt.Errorf("the profile %s is refused: %w", name, err))
	}
	if p == nil {
		names, err := ProfileNames(c.Home)
		if err != nil {
			return nil, InputErr(err)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !policy.IsProfileName(name) })
		return nil, InputErr(&UnknownProfileError{name, names})
	}
	return p, nil
}

// An UnknownProfileError says that there is no profile of a name, and which there
// are.
type UnknownProfileError struct {
	name  string
	known []string
}

func (e *UnknownProfileError) Error() string {
	text := fmt.Sprintf("there is no profile %q; the profiles are %s", e.name, strings.Join(e.known, ", "))
	if near := e.Nearest(); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return text
}

// Nearest is the profile that was most likely meant; "": none is near.
func (e *UnknownProfileError) Nearest() string { return tomlfile.Near(e.name, e.known) }

// tellFloor says that a floor's file is not used, whatever is asked
// of this program: its author believes that it is.
func (a *Reader) tellFloor(findings []policy.Finding) {
	for _, f := range findings {
		if f.Code == policy.CodeFloorKept {
			a.Say(f.Message)
		}
	}
}

// ProfileNames are the names of all profiles, the home's and the built-in ones, sorted.
func ProfileNames(h home.Home) ([]string, error) {
	return namesOf(h.Profile, policy.BuiltinProfiles(), "profiles")
}

// PresetNames are the names of all presets, the home's and the built-in ones, sorted.
func PresetNames(h home.Home) ([]string, error) {
	return namesOf(h.Preset, policy.BuiltinPresets(), "presets")
}

// namesOf are names, and those of the files beside which file puts one of a name.
func namesOf(file func(name string) string, names []string, what string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(file("x")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the %s: %w", what, err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
