package caps

import (
	"slices"
	"strings"
)

// A Tier says how much an operator trusts whoever may use a family. The zero
// Tier is the highest: what nothing is known of is operator_sensitive.
type Tier uint8

// The privilege tiers.
const (
	OperatorSensitive Tier = iota
	Network
	LocalState
	Pure
	numTiers
)

var tiers = [numTiers]string{"operator_sensitive", "network", "local_state", "pure"}

// String is the tier's word, such as "local_state".
func (t Tier) String() string {
	if t >= numTiers {
		return tiers[OperatorSensitive]
	}
	return tiers[t]
}

// ParseTier is the tier that word names.
func ParseTier(word string) (Tier, bool) {
	i := slices.Index(tiers[:], word)
	return Tier(max(i, 0)), i >= 0
}

// TierNames are the words of all tiers, the lowest first.
func TierNames() []string {
	list := slices.Clone(tiers[:])
	slices.Reverse(list)
	return list
}

// An EffectSet is what using something does, as a set.
type EffectSet uint8

// The effects.
const (
	NoEffect EffectSet = 1 << iota // pure: nothing beyond the run
	IORead
	IOWrite
	Control // starts or steers other work
	Meta    // looks at the run itself
	allEffects
)

var effects = []struct {
	word string
	set  EffectSet
}{
	{"pure", NoEffect},
	{"io-read", IORead},
	{"io-write", IOWrite},
	{"control", Control},
	{"meta", Meta},
	{"io", IORead | IOWrite},
}

// Words are the effects of e, one by one.
func (e EffectSet) Words() []string {
	var list []string
	for _, row := range effects {
		if row.word != "io" && e&row.set != 0 {
			list = append(list, row.word)
		}
	}
	return list
}

// ParseEffect is the effects that word names; "io" names reading and writing.
func ParseEffect(word string) (EffectSet, bool) {
	for _, row := range effects {
		if row.word == word {
			return row.set, true
		}
	}
	return 0, false
}

// EffectNames are the words of all effects.
func EffectNames() []string {
	var list []string
	for _, row := range effects {
		list = append(list, row.word)
	}
	return list
}

type flag uint8

const (
	destructive flag = 1 << iota
	networkFacing
	sandboxSafe
)

// Metadata is what is known of a family beside its scopes. The zero Metadata
// is that of what nothing is known of.
type Metadata struct {
	Category      string
	Tier          Tier
	Destructive   bool // some mode of it can lose or change what others keep
	NetworkFacing bool // it reaches beyond this machine
	SandboxSafe   bool // it stays within what the host itself confines
}

// MetadataOf is the row of f.
func MetadataOf(f Family) Metadata {
	if f >= numUniverses {
		return Metadata{}
	}
	row := &families[f]
	return Metadata{
		Category: row.category, Tier: row.tier, Destructive: row.flags&destructive != 0,
		NetworkFacing: row.flags&networkFacing != 0, SandboxSafe: row.flags&sandboxSafe != 0,
	}
}

// EffectOf is what a request of family f in mode m does; everything, for what
// nothing is known of.
func EffectOf(f Family, m Mode) EffectSet {
	if f >= numUniverses {
		return allEffects - 1
	}
	list := families[f].effects
	return list[min(int(m), len(list)-1)]
}

func netEffects() []EffectSet {
	list := make([]EffectSet, numNetModes)
	list[Bytes] = IORead | IOWrite
	for m := range Bytes {
		switch methodWords[m%numMethods] {
		case "get", "head", "options":
			list[m] = IORead
		default:
			list[m] = IOWrite
		}
	}
	return list
}

// TierGrants is everything of the tier, as a deny list takes it away.
func TierGrants(t Tier) []Grant {
	return whole(func(f Family, _ Mode) bool { return families[f].tier == t })
}

// EffectGrants is everything that has any effect of e.
func EffectGrants(e EffectSet) []Grant {
	return whole(func(f Family, m Mode) bool { return EffectOf(f, m)&e != 0 })
}

// whole is the widest scope of every family, in the modes that in accepts.
func whole(in func(f Family, m Mode) bool) []Grant {
	var list []Grant
	for f := range NumFamilies {
		var set ModeSet
		for m := range families[f].modes {
			if in(f, m) {
				set |= 1 << m
			}
		}
		if set != 0 {
			list = append(list, Grant{Family: f, Modes: set, Scope: f.root()})
		}
	}
	return list
}

// A ToolInfo is one host call that layers can speak of by name.
type ToolInfo struct {
	Name     string // as records call it, such as "net_http"
	Category string
	Family   Family
}

// Scope is the tool's scope on the axis [Tool], such as "web:net_http".
func (t ToolInfo) Scope() string { return t.Category + ":" + t.Name }

// Qualified is the tool's name with its category, such as "web__net_http".
func (t ToolInfo) Qualified() string { return t.Category + "__" + t.Name }

// Tools are the host calls of this program. Attached tools and those of MCP
// servers are of the categories "tools" and "mcp", and are not in it.
func Tools() []ToolInfo {
	var list []ToolInfo
	for f := range numUniverses {
		for _, name := range families[f].tools {
			list = append(list, ToolInfo{name, families[f].category, f})
		}
	}
	return list
}

// Categories are the categories that tools can be of.
func Categories() []string {
	var list []string
	for f := range numUniverses {
		list = append(list, families[f].category)
	}
	list = append(list, attached)
	slices.Sort(list)
	return slices.Compact(list)
}

// attached is the category of the tools that a bundle brings.
const attached = "tools"

// ToolScope is the scope of the axis [Tool] that a spelling means: a bare name
// "net_http", a qualified one "web__net_http" or "mcp__server__tool", a scope
// "web:net_http" or "web:*". A bare name that no host call has is that of an
// attached tool; known is false for it, and for what a category does not have. What
// programs do by themselves has a scope, too, such as "web:connect".
// The scope is "" for what can be no tool's name.
func ToolScope(spelling string) (scope string, known bool) {
	category, name, qualified := strings.Cut(spelling, ":")
	if !qualified {
		category, name, qualified = strings.Cut(spelling, "__")
		if category == families[MCP].category {
			name = strings.Replace(name, "__", "/", 1)
		}
	}
	if !qualified {
		if scope := toolScopes(spelling); scope != "" {
			return scope, true
		}
		category, name = attached, spelling
	}
	scope = oneTool(category + ":" + name)
	if !isScope(Tool, scope) || spelling == "*" {
		return "", false
	}
	// a server alone is no tool
	open := category == attached || category == families[MCP].category && strings.Contains(name, "/")
	return scope, qualified && (open || name == "*" && slices.Contains(Categories(), category) ||
		toolScopes(name) == scope || slices.ContainsFunc(families[:], func(f family) bool {
		return f.by != "" && f.category+":"+f.by == scope
	}))
}

// oneTool is the one scope of a tool: what a bundle attaches is called as a tool
// of the server "tools", and can be written so.
func oneTool(scope string) string {
	if name, ok := strings.CutPrefix(scope, families[MCP].category+":"+attached+"/"); ok {
		return attached + ":" + name
	}
	return scope
}

// DenyTool is what denying a scope of the axis [Tool] takes away. By mcp_call
// what a bundle attaches is called as well, so that its denial takes both.
func DenyTool(scope string) []Grant {
	list := []Grant{{Tool, 1, scope}}
	if scope == families[MCP].category+":mcp_call" {
		list = append(list, Grant{Tool, 1, attached + ":*"})
	}
	return list
}

// toolScopes is the scope of the host call name, "" if there is none.
func toolScopes(name string) string {
	for f := range numUniverses {
		if slices.Contains(families[f].tools, name) {
			return families[f].category + ":" + name
		}
	}
	return ""
}

func isTool(s string) bool {
	category, name, _ := strings.Cut(s, ":")
	return isDomain(category) && isWord(name, 200, func(c byte) bool {
		return alnum(c) || strings.IndexByte("_-./",
			c) >= 0
	})
}
