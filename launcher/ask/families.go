package ask

import "runloop.dev/rlp/caps"

// A Family is a row of the table of families.
type Family struct {
	Family        string   `json:"family"`
	Category      string   `json:"category"`
	Tier          string   `json:"privilege_tier"`
	Effects       []string `json:"effects"`
	Destructive   bool     `json:"destructive"`
	NetworkFacing bool     `json:"network_facing"`
	SandboxSafe   bool     `json:"sandbox_safe"`
	Tools         []string `json:"tools"` // the calls that use it
}

// Families is what is known of every family beside its scopes.
func Families() []Family {
	list := make([]Family, 0, caps.NumFamilies)
	for f := range caps.NumFamilies {
		m := caps.MetadataOf(f)
		d := Family{
			Family: f.String(), Category: m.Category, Tier: m.Tier.String(), Destructive: m.Destructive,
			NetworkFacing: m.NetworkFacing, SandboxSafe: m.SandboxSafe, Tools: []string{},
		}
		var effects caps.EffectSet
		for mode := range caps.Mode(32) {
			if caps.AllModes(f).Has(mode) {
				effects |= caps.EffectOf(f, mode)
			}
		}
		d.Effects = effects.Words()
		for _, t := range caps.Tools() {
			if t.Family == f {
				d.Tools = append(d.Tools, t.Name)
			}
		}
		list = append(list, d)
	}
	return list
}
