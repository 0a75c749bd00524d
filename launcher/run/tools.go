package run

import (
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
)

// An Attachment is what became of a tool of the bundle at launch.
type Attachment struct {
	ID       string `json:"id"`
	Attached bool   `json:"attached"`
	// Reason, Capability and Layer say what is missing of a tool that is not attached.
	Reason     string `json:"reason,omitempty"`
	Capability string `json:"capability,omitempty"`
	Layer      string `json:"layer,omitempty"`

	Needs                []string `json:"needs"`
	Tier                 string   `json:"privilege_tier"`
	Effects              []string `json:"effects"`
	Destructive          bool     `json:"destructive"`
	NetworkFacing        bool     `json:"network_facing"`
	SandboxSafe          bool     `json:"sandbox_safe"`
	RequiresConfirmation bool     `json:"requires_confirmation"`
	Tags                 []string `json:"tags,omitempty"`
}

// Attachments says which of tools a run attaches that holds set: those whose
// every need is in it. A tool is of the highest tier of anything that it needs.
func Attachments(set caps.Set, tools []hostcalls.Tool) []Attachment {
	list := make([]Attachment, 0, len(tools))
	for i := range tools {
		t := &tools[i]
		a := attachment(t)
		if d, missing := hostcalls.Missing(set, t); missing {
			a.Attached, a.Reason, a.Capability = false, d.Decision.Code.String(), d.Request.String()
			if d.Decision.Layer > 0 {
				a.Layer = set.LayerName(d.Decision.Layer)
			}
		}
		list = append(list, a)
	}
	return list
}

// attachment is what t can do, by the columns of the families that it needs.
func attachment(t *hostcalls.Tool) Attachment {
	a := Attachment{ID: t.ID, Attached: true, RequiresConfirmation: t.Confirm, Tags: t.Tags, SandboxSafe: true}
	tier, effects := caps.Pure, caps.EffectSet(0)
	listed := map[string]bool{}
	for _, r := range t.All() {
		if need := r.String(); !listed[need] {
			listed[need] = true
			a.Needs = append(a.Needs, need)
		}
		m := caps.MetadataOf(r.Family)
		tier = min(tier, m.Tier)
		effects |= caps.EffectOf(r.Family, r.Mode)
		a.Destructive = a.Destructive || m.Destructive
		a.NetworkFacing = a.NetworkFacing || m.NetworkFacing
		a.SandboxSafe = a.SandboxSafe && m.SandboxSafe
	}
	a.Tier, a.Effects = tier.String(), effects.Words()
	return a
}
