package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// Misnamed is a file in dir whose name is almost STEM.toml for one of stems: in
// other letters, with blanks at an end, with another ending or none. Nothing
// reads it, and whoever wrote it believes that it applies. Right is what it
// would be called; both are "" where there is none.
func Misnamed(dir string, stems ...string) (name, right string, err error) {
	entries, err := tomlfile.Names(dir)
	if err != nil {
		return "", "", err
	}
	name, right = misnamedOf(entries, stems)
	return name, right, nil
}

func misnamedOf(entries, stems []string) (name, right string) {
	for _, e := range entries {
		for _, stem := range stems {
			if e != stem+".toml" && strings.EqualFold(meant(e), stem) {
				return e, stem + ".toml"
			}
		}
	}
	return "", ""
}

// DefaultOverride is the stem of the override of every agent.
const DefaultOverride = "_default"

// MisnamedOverride is [Misnamed] of the overrides of an agent and of all agents,
// and finds more: a file with - for _ or _ for -, and one that is called default,
// defaults or _defaults. Such a name can be another agent's: it is let be where
// isAgent knows one of that name, or where the right file is there beside it.
func MisnamedOverride(dir, agent string, isAgent func(name string) bool) (name, right string, err error) {
	entries, err := tomlfile.Names(dir)
	if err != nil {
		return "", "", err
	}
	stems := []string{agent, DefaultOverride}
	if name, right = misnamedOf(entries, stems); name != "" {
		return name, right, nil
	}
	for _, e := range entries {
		stem := strings.ToLower(meant(e))
		for _, s := range stems {
			another := stem == agent || isAgent(stem) || slices.Contains(entries, s+".toml") && !strings.HasPrefix(stem, "_")
			if e != s+".toml" && alike(stem, s) && !another {
				return e, s + ".toml", nil
			}
		}
	}
	return "", "", nil
}

// alike reports whether a lower-case stem is another one but for - and _, or what
// somebody calls the override of all agents.
func alike(stem, wanted string) bool {
	plain := strings.ReplaceAll(stem, "-", "_")
	return plain == strings.ReplaceAll(wanted, "-", "_") ||
		wanted == DefaultOverride && strings.TrimSuffix(strings.TrimPrefix(plain, "_"), "s") == "default"
}

// misnamed is the error of a profile that has only a file with almost its name.
func misnamed(file, name string) error {
	switch other, _, err := Misnamed(filepath.Dir(file), name); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case other != "":
		return fmt.Errorf("%s is not read: the file of this profile is called %s, and is TOML (docs/profiles.md says how "+
			"other systems' keys are written)",
			filepath.Join(filepath.Dir(file), other), filepath.Base(file))
	}
	return nil
}

// meant is what a file was to be the settings of: its name without what stands
// at its ends.
func meant(name string) string {
	endings := []string{".toml", ".tml", ".caps", ".yaml", ".yml", ".json", ".conf", ".txt"}
	for range 2 { // x.toml.txt
		name = strings.TrimFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
		dot := strings.LastIndexByte(name, '.')
		if dot <= 0 || !slices.ContainsFunc(endings, func(end string) bool {
			return strings.EqualFold(end, strings.TrimSpace(name[dot:]))
		}) {
			break
		}
		name = name[:dot]
	}
	return strings.TrimSpace(name)
}
