package policy

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"runloop.dev/rlp/caps"
)

//go:embed presets/*.toml
var presets embed.FS

// BuiltinPresets are the names of the presets that are part of this program, sorted.
func BuiltinPresets() []string {
	entries, _ := presets.ReadDir("presets")
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".toml")
	}
	return names
}

// PresetText is the text of a preset, a base for a program that is widely used: the
// home's file, which replaces a built-in one of that name, else the built-in one.
// Source is the file or [Builtin]. It is nil where there is none; a file that is there
// and cannot be read is an error, and never "no file".
func PresetText(name, file string, opt Options) (text []byte, source string, err error) {
	if !caps.IsName(caps.Agents, name) {
		return nil, "", fmt.Errorf("%q can be no preset's name: lower-case letters, digits, - and _", name)
	}
	if text, err = readOptional(file, opt); err != nil || text != nil {
		return text, file, err
	}
	text, err = presets.ReadFile(path.Join("presets", name+".toml"))
	if err != nil {
		return nil, "", nil
	}
	return text, Builtin, nil
}

// PresetAbout is what the text of a preset says of itself: its first line, a comment.
func PresetAbout(text []byte) string {
	line, _, _ := strings.Cut(string(text), "\n")
	about, is := strings.CutPrefix(line, "# ")
	if !is {
		return ""
	}
	return about
}
