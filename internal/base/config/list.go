package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A Shown is one setting as it is in force, and who says so.
type Shown struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Source string `json:"source"` // "default", the place in a file, or "environment variable NAME"
}

// List returns every setting in the order of its name, as [Parse] reads them from
// data and env. Each key of a table, such as [limits], is one of its own.
func List(file string, data []byte, env []string) ([]Shown, error) {
	root, err := tomlfile.Parse(file, data)
	if err != nil {
		return nil, err
	}
	if _, err := decode(root, env); err != nil { // which lays env over it
		return nil, err
	}
	var list []Shown
	for _, s := range settings() {
		v, given := valueAt(root, s.name)
		if !given {
			list = append(list, Shown{s.name, s.unsaid(), "default"})
			continue
		}
		list = append(list, leaves(s.name, v)...)
	}
	slices.SortFunc(list, func(a, b Shown) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// ListFile is [List] of a file, which is there or not, or what of it name is.
func ListFile(path string, env []string, name ...string) ([]Shown, error) {
	data, err := readIfThere(path)
	if err != nil {
		return nil, err
	}
	list, err := List(filepath.Base(path), data, env)
	if err != nil || len(name) == 0 {
		return list, err
	}
	return Select(list, name[0])
}

// readIfThere reads a file of settings; no file is an empty one.
func readIfThere(path string) ([]byte, error) {
	data, err := tomlfile.ReadFile(path, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("loading the settings: %w", err)
	}
	return data, nil
}

// Select returns what of a list name is: a setting, or all of a section.
func Select(list []Shown, name string) ([]Shown, error) {
	var found []Shown
	for _, s := range list {
		if s.Name == name || strings.HasPrefix(s.Name, name+".") {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil, noSetting(name)
	}
	return found, nil
}

func noSetting(name string) error {
	if _, _, is := caps.LimitOf(strings.TrimPrefix(name, "limits.")); is && strings.HasPrefix(name, "limits.") {
		return &tomlfile.Error{
			Msg: name + " is not set", Hint: "rlp caps show BUNDLE prints the limits that hold, docs/limits.md has each default",
		}
	}
	hint := tomlfile.Nearest(name, names())
	if hint == "" {
		hint = "rlp config list has them all"
	}
	return &tomlfile.Error{Msg: "there is no setting " + name, Hint: hint}
}

func names() []string {
	var list []string
	for _, s := range settings() {
		list = append(list, s.name)
	}
	return list
}

func (s setting) unsaid() any {
	if s.show == nil {
		return map[string]any{}
	}
	c := Default()
	return s.show(&c)
}

func valueAt(t *tomlfile.Table, name string) (*tomlfile.Value, bool) {
	key, rest, more := strings.Cut(name, ".")
	e, ok := t.Get(key)
	switch {
	case !ok:
		return nil, false
	case more && e.Value.Table != nil:
		return valueAt(e.Value.Table, rest)
	}
	return &e.Value, !more
}

// leaves are the values beneath v, which are no tables.
func leaves(name string, v *tomlfile.Value) []Shown {
	if v.Table == nil || len(v.Table.Entries) == 0 {
		return []Shown{{name, v.Plain(), v.Pos.String()}}
	}
	var list []Shown
	for i := range v.Table.Entries {
		e := &v.Table.Entries[i]
		list = append(list, leaves(name+"."+e.Key, &e.Value)...)
	}
	return list
}
