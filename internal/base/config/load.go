package config

import (
	"fmt"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// Load reads config.toml and lays the RUNLOOP__SECTION__KEY variables of env
// ("NAME=value", as of [os.Environ]) over it. No file is an empty file; a file
// that cannot be read, or that others may write, is an error. The error wraps
// every [*tomlfile.Error] found.
func Load(path string, env []string) (Config, error) {
	data, err := readIfThere(path)
	if err != nil {
		return Config{}, err
	}
	c, err := Parse(path, data, env)
	if err != nil {
		return Config{}, fmt.Errorf("loading the settings: %w", err)
	}
	return c, nil
}

// Parse is [Load] of a file that was read already.
func Parse(file string, data []byte, env []string) (Config, error) {
	root, err := tomlfile.Parse(file, data)
	if err != nil {
		return Config{}, err
	}
	return decode(root, env)
}

// decode lays env over a document, and reads that.
func decode(root *tomlfile.Table, env []string) (Config, error) {
	c, w := Default(), &tomlfile.Walk{}
	fromEnv(w, root, env)
	read(w, root, "", &c)
	refuse(w, root, &c)
	helperProgram(w, root, &c)
	knownDomains(w, root, &c)
	combine(w, &c)
	if err := w.Err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// read takes one table of the file, prefix being its dotted name and a dot.
func read(w *tomlfile.Walk, t *tomlfile.Table, prefix string, c *Config) {
	for i := range t.Entries {
		e := &t.Entries[i]
		name := prefix + e.Key
		switch s, kind := find(name); kind {
		case isSetting:
			s.set(w, name, &e.Value, c)
		case isSection:
			if w.Is(&e.Value, "["+name+"]", tomlfile.TableKind) {
				read(w, e.Value.Table, name+".", c)
			}
		default:
			w.Errorf(e.Pos, tomlfile.Nearest(e.Key, keysBelow(prefix)), "unknown key %q", name)
		}
	}
}

type found uint8

const (
	isUnknown found = iota
	isSection
	isSetting
)

// find tells what a dotted name is.
func find(name string) (setting, found) {
	kind := isUnknown
	for _, s := range settings() {
		if s.name == name {
			return s, isSetting
		}
		if strings.HasPrefix(s.name, name+".") {
			kind = isSection
		}
	}
	return setting{}, kind
}

// keysBelow lists the keys that may stand in a table.
func keysBelow(prefix string) []string {
	var keys []string
	seen := map[string]bool{}
	for _, s := range settings() {
		rest, ok := strings.CutPrefix(s.name, prefix)
		if !ok {
			continue
		}
		key, _, _ := strings.Cut(rest, ".")
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}
