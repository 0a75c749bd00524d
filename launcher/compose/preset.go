package compose

import (
	"fmt"
	"strings"

	"runloop.dev/rlp/caps/policy"
)

// A Preset is a base for a program that is widely used.
type Preset struct {
	Name   string   `json:"name"`
	About  string   `json:"about"`
	Source string   `json:"source"` // its file, or "built-in"
	Asks   []string `json:"asks"`   // capability strings
	Text   string   `json:"text"`   // of the file, as policy.caps is written
}

// Presets are the presets of a home, sorted; of one name where names has it alone. An
// error says which file is wrong, or which presets there are.
func Presets(r *Reader, names ...string) ([]Preset, error) {
	h, cfg, err := r.Settings()
	if err != nil {
		return nil, err
	}
	all, err := PresetNames(h)
	if err != nil {
		return nil, inputErr(err)
	}
	opt := r.Options(h, cfg)
	if len(names) == 0 {
		names = all
	}
	var list []Preset
	for _, name := range names {
		text, source, err := policy.PresetText(name, h.Preset(name), opt)
		if err == nil && text == nil {
			err = fmt.Errorf("there is no preset %q; these are: %s", name, strings.Join(all, ", "))
		}
		if err != nil {
			return nil, inputErr(err)
		}
		file := source
		if file == policy.Builtin {
			file = name + ".toml"
		}
		base, findings := policy.ParseBase(file, text, opt)
		if base == nil {
			return nil, inputErr(policy.AsError(findings))
		}
		p := Preset{Name: name, About: policy.PresetAbout(text), Source: source, Asks: []string{}, Text: string(text)}
		for _, e := range base.Entries {
			p.Asks = append(p.Asks, e.Grant.Strings()...)
		}
		list = append(list, p)
	}
	return list, nil
}
