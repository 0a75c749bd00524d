package program

import (
	"fmt"
	"strings"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// A Preset is a base for a program that is widely used.
type Preset struct {
	Name   string   `json:"name"`
	About  string   `json:"about"`
	Source string   `json:"source"` // its file, or "built-in"
	Asks   []string `json:"asks"`   // capability strings
	Text   string   `json:"text"`   // of the file, as policy.caps is written
}

// Presets are those of names, all of them where it is empty; file is where the home
// has one. An error says which file is wrong, or which presets there are.
func Presets(all, names []string, file func(name string) string, opt policy.Options) ([]Preset, error) {
	if len(names) == 0 {
		names = all
	}
	var list []Preset
	for _, name := range names {
		text, source, err := policy.PresetText(name, file(name), opt)
		if err == nil && text == nil {
			err = fmt.Errorf("there is no preset %q; these are: %s", name, strings.Join(all, ", "))
			if near := tomlfile.Near(name, all); near != "" {
				err = fmt.Errorf("%w; did you mean %q?", err, near)
			}
		}
		if err != nil {
			return nil, err
		}
		from := source
		if from == policy.Builtin {
			from = name + ".toml"
		}
		base, findings := policy.ParseBase(from, text, opt)
		if base == nil {
			return nil, policy.AsError(findings)
		}
		p := Preset{Name: name, About: policy.PresetAbout(text), Source: source, Asks: []string{}, Text: string(text)}
		for _, e := range base.Entries {
			p.Asks = append(p.Asks, e.Grant.Strings()...)
		}
		list = append(list, p)
	}
	return list, nil
}
