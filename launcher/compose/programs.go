package compose

import (
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/run"
)

// programsNamed are the programs that each policy names which bounds exec, the
// bundle's first, as they are written; nil when the bundle asks for none.
func programsNamed(p run.Policy) [][]string {
	base := execScopes(p.Base)
	if len(base) == 0 {
		return nil
	}
	lists := [][]string{base}
	for _, l := range p.Layers {
		if slices.ContainsFunc(l.Bounds, func(b caps.Bound) bool { return b.Family == caps.Exec }) {
			lists = append(lists, execScopes(l.Allow))
		}
	}
	return lists
}

func execScopes(entries []caps.Entry) []string {
	var list []string
	for _, e := range entries {
		if e.Grant.Family == caps.Exec {
			list = append(list, e.Grant.Scope)
		}
	}
	return list
}

// secretVariables begins the names of the variables in which the provider "env"
// finds secrets.
const secretVariables = "RLP_SECRET_"

// guestVariable looks up a variable of the operator's environment for an agent,
// or for a program that one starts. Variables that hold secrets are not there:
// no grant of a name makes a value of them.
func (a *Runner) guestVariable(name string) (string, bool) {
	if strings.HasPrefix(name, secretVariables) {
		return "", false
	}
	return a.lookup(name)
}
