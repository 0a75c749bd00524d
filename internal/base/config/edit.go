package config

import (
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// EditFile is [Edit] of a file, which is there or not; it writes nothing.
func EditFile(path, name, value string) ([]byte, error) {
	data, err := readIfThere(path)
	if err != nil {
		return nil, err
	}
	return Edit(path, data, name, value)
}

// Edit returns the text of a file in which the setting name has a value: as it
// stands where a string is wanted, as TOML elsewhere. All else of the text stays
// as it is, comments too. What [Parse] would refuse is refused.
func Edit(file string, data []byte, name, value string) ([]byte, error) {
	if !isSettable(name) {
		return nil, noSetting(name)
	}
	v, err := envValue(tomlfile.Pos{}, name, value)
	if err != nil {
		return nil, &tomlfile.Error{Msg: name + " must be a TOML value" + rejected(value), Hint: `such as true, 5 or '["a", "b"]'`}
	}
	literal := strings.TrimSpace(value)
	if v.Kind == tomlfile.String {
		literal = tomlfile.Literal(v.Str)
	}
	root, err := tomlfile.Parse(file, data)
	if err != nil {
		return nil, err
	}
	path := strings.Split(name, ".")
	if err := root.Set(path, v); err != nil {
		return nil, err
	}
	// Before the text is looked at: what is wrong with the value is said of the value.
	if _, err := decode(root, nil); err != nil {
		return nil, err
	}
	return tomlfile.Edit(file, data, path, literal, v)
}
