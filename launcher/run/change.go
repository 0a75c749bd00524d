package run

import (
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/places"
)

// A Change is one capability that a layer took away, or named in vain.
type Change struct {
	Layer      string `json:"layer"`
	Source     string `json:"source"`
	Capability string `json:"capability"`
	Kind       string `json:"kind"`
}

// Flatten gives each capability string of the changes a line of its own.
func Flatten(changes []caps.Change) []Change { return flatten(changes, nil) }

func flatten(changes []caps.Change, n *places.Names) []Change {
	list := []Change{}
	for _, c := range changes {
		for _, s := range c.Grant.Strings() {
			list = append(list, Change{
				Layer: c.Layer, Source: n.Pos(c.Source).String(), Capability: n.Capability(s), Kind: c.Kind.String(),
			})
		}
	}
	return list
}

// GrantStrings are the capability strings of the grants.
func GrantStrings(grants []caps.Grant) []string {
	list := []string{}
	for _, g := range grants {
		list = append(list, g.Strings()...)
	}
	return list
}
