package config

import (
	"cmp"
	"slices"
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

const envPrefix = "RUNLOOP__"

// fromEnv lays RUNLOOP__SECTION__KEY=value over the file, before anything is
// read from it: the two are one document then, with one set of rules. A value
// is taken as it stands where a string is wanted, and read as TOML elsewhere.
func fromEnv(w *tomlfile.Walk, root *tomlfile.Table, env []string) {
	env = slices.Clone(env)
	slices.Sort(env)
	seen := map[string]string{}
	for _, pair := range env {
		variable, value, ok := strings.Cut(pair, "=")
		if !ok || !strings.HasPrefix(variable, envPrefix) {
			continue
		}
		pos := tomlfile.Pos{File: "environment variable " + variable}
		name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, envPrefix), "__", "."))
		if other, ok := seen[name]; ok {
			w.Errorf(pos, "", "sets %s, and so does %s", name, other)
			continue
		}
		seen[name] = variable
		if !isSettable(name) && !slices.Contains(strings.Split(name, "."), "") {
			w.Errorf(pos, cmp.Or(tomlfile.Nearest(variable, variables()), "docs/operators.md has the settings"),
				"there is no setting %s", name)
			continue
		}
		v, err := envValue(pos, name, value)
		if err == nil {
			err = root.Set(strings.Split(name, "."), v)
		}
		if err != nil {
			w.Errorf(pos, "", "%v", err)
		}
	}
}

// isSettable reports whether a dotted name is a setting, or a key of one that is a
// table.
func isSettable(name string) bool {
	_, kind := find(name)
	return kind != isUnknown || slices.ContainsFunc(settings(), func(s setting) bool {
		return strings.HasPrefix(name, s.name+".")
	})
}

func variables() []string {
	var list []string
	for _, s := range settings() {
		list = append(list, envPrefix+strings.ToUpper(strings.ReplaceAll(s.name, ".", "__")))
	}
	return list
}

func envValue(pos tomlfile.Pos, name, text string) (tomlfile.Value, error) {
	s, _ := find(name)
	if s.text || name != s.name && strings.HasPrefix(name, "delegation.bindings.") {
		return tomlfile.Value{Kind: tomlfile.String, Pos: pos, Str: text}, nil
	}
	t, err := tomlfile.Parse("", []byte("v = "+text))
	if err != nil || len(t.Entries) != 1 {
		return tomlfile.Value{}, &tomlfile.Error{
			Msg: "the value is not a TOML value", Hint: `such as true, 5 or ["a", "b"]`,
		}
	}
	v := t.Entries[0].Value
	place(&v, pos)
	return v, nil
}

// place gives a value and all in it one place: a variable has no lines.
func place(v *tomlfile.Value, pos tomlfile.Pos) {
	v.Pos = pos
	for i := range v.Items {
		place(&v.Items[i], pos)
	}
	if v.Table == nil {
		return
	}
	v.Table.Pos = pos
	for i := range v.Table.Entries {
		v.Table.Entries[i].Pos = pos
		place(&v.Table.Entries[i].Value, pos)
	}
}
