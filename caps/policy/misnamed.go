package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"runloop.dev/rlp/internal/tomlfile"
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
	for _, e := range entries {
		for _, stem := range stems {
			if e != stem+".toml" && strings.EqualFold(meant(e), stem) {
				return e, stem + ".toml", nil
			}
		}
	}
	return "", "", nil
}

// misnamed is the error of a profile that has only a file with almost its name.
func misnamed(file, name string) error {
	switch other, _, err := Misnamed(filepath.Dir(file), name); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case other != "":
		return fmt.Errorf("%s is not read: the file of this profile is called %s, and is TOML (docs/profiles.md says how other systems' keys are written)",
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
		if dot <= 0 || !slices.ContainsFunc(endings, func(end string) bool { return strings.EqualFold(end, strings.TrimSpace(name[dot:])) }) {
			break
		}
		name = name[:dot]
	}
	return strings.TrimSpace(name)
}
