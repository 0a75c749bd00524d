package policy

import (
	"cmp"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/tomlfile"
)

// An adapter is what a grant calls a thing that an agent may be given: the key
// of a family, or another system's word for some.
type adapter struct {
	families []caps.Family
	tools    bool   // the tools that bundles bring
	table    string // of [constraints]
}

// otherAdapters are the words that are no key of a family. Computing alone
// needs no grant here, so core and wasm stand for nothing.
func otherAdapters() map[string]adapter {
	kb := adapter{families: []caps.Family{caps.KBRead, caps.KBWrite}, table: "kb"}
	return map[string]adapter{
		"core": {}, "wasm": {},
		"http":   {families: []caps.Family{caps.Net}, table: "net"},
		"sqlite": kb, "memory": kb, "db": kb, "cache": kb, "kb": kb,
		"agent": {families: []caps.Family{caps.Agents}, table: "agents"},
		"llm":   {families: []caps.Family{caps.Model}, table: "model"},
		"tools": {tools: true},
	}
}

func adapterOf(name string) (adapter, bool) {
	if f, ok := caps.FamilyOf(name); ok {
		a := adapter{families: []caps.Family{f}}
		if slices.Contains(constraintTables(), name) {
			a.table = name
		}
		return a, true
	}
	a, ok := otherAdapters()[name]
	return a, ok
}

func adapterNames() []string {
	list := []string{}
	for f := range caps.NumFamilies {
		list = append(list, f.String())
	}
	for name := range otherAdapters() {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// nearestAdapter is the hint for a name that no adapter has.
func nearestAdapter(name string) string {
	names := adapterNames()
	return cmp.Or(tomlfile.Nearest(name, names), "there are "+strings.Join(names, ", "))
}

// constrainable are the names of adapters that [constraints] bounds.
func constrainable() []string {
	return slices.DeleteFunc(adapterNames(), func(name string) bool {
		a, _ := adapterOf(name)
		return a.table == ""
	})
}
