package archtest

import (
	"go/build/constraint"
	"slices"
	"strings"
	"testing"
)

// heavy are rooms that only the whole program links: the slim one starts
// faster for being without them.
var heavy = []string{
	"internal/model/providers", "internal/evidence", "launcher/ask",
	"internal/service", "internal/access", "internal/api", "internal/console", "internal/mcpserver", "internal/telemetry", "internal/client", "internal/top",
}

func TestSlimProgramsLinkNothingHeavy(t *testing.T) { judge(t, fat) }

// fat complains about imports of heavy rooms by files that a slim build has.
func fat(t *tree) []complaint {
	var found []complaint
	for _, f := range t.sources() {
		if slices.Contains(heavy, f.room) {
			continue // whoever links it links the other
		}
		for _, spec := range f.ast.Imports {
			for _, room := range heavy {
				if strings.Trim(spec.Path.Value, `"`) == t.module+"/"+room && isSlim(f) {
					found = append(found, complaint{"slim", f.room + " " + room, t.at(spec) + ": a slim build has " + room})
				}
			}
		}
	}
	return found
}

// isSlim reports whether a build with the tag slim has f.
func isSlim(f *file) bool {
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil {
				return expr.Eval(func(tag string) bool { return tag == "slim" })
			}
		}
	}
	return true
}

func TestControlSlim(t *testing.T) {
	got := fat(repo(t, map[string]string{
		"cmd/rlp/a.go":  `package main; import _ "example.org/m/internal/model/providers"`,
		"cmd/rlp/b.go":  "//go:build !slim\n\npackage main\n\nimport _ \"example.org/m/internal/model/providers\"\n",
		"launcher/a.go": "//go:build slim\n\npackage launcher\n\nimport _ \"example.org/m/internal/model/providers\"\n",
		"cmd/rlp/c.go":  `package main; import _ "example.org/m/internal/model"`,
	}))
	wantComplaints(t, got, "slim cmd/rlp internal/model/providers", "slim launcher internal/model/providers")
}
