package caps_test

import (
	"fmt"

	"runloop.dev/rlp/caps"
)

// grants parses capability strings, each at its line of a file.
func grants(file string, list ...string) []caps.Entry {
	var entries []caps.Entry
	for i, s := range list {
		g, err := caps.ParseGrant(s)
		if err != nil {
			panic(err)
		}
		entries = append(entries, caps.Entry{Grant: g, Pos: caps.Pos{File: file, Line: i + 1}})
	}
	return entries
}

// A bundle's policy makes the base; an operator's layer takes away from it, and
// what it names beyond the base is ignored and listed as such.
func ExampleSet_Narrow() {
	base, err := caps.Base(grants("policy.caps", "fs:read:/srv/notes", "network:https:api.example.com"), caps.Limits{})
	if err != nil {
		panic(err)
	}
	held, changes, err := base.Narrow(&caps.Layer{
		Name:   "override",
		Bounds: []caps.Bound{{Family: caps.Net, Modes: caps.AllModes(caps.Net)}},
		Allow:  grants("override.toml", "network:https:other.example.com"),
		Deny:   grants("override.toml", "fs:read:/srv/notes/private"),
	})
	if err != nil {
		panic(err)
	}
	for _, g := range held.Grants() {
		fmt.Println("holds", g)
	}
	for _, g := range held.Except() {
		fmt.Println("except", g)
	}
	for _, c := range changes {
		fmt.Println(c.Kind, c.Grant)
	}
	// Output:
	// holds fs:read:/srv/notes
	// except fs:read:/srv/notes/private
	// revoked fs:read:/srv/notes/private
	// revoked network:https:api.example.com
	// ignored network:https:other.example.com
}

// Explain says what every layer says of a request, not only the first refusal.
func ExampleSet_Explain() {
	base, err := caps.Base(grants("policy.caps", "fs:read:/srv/notes"), caps.Limits{})
	if err != nil {
		panic(err)
	}
	held, _, err := base.Narrow(&caps.Layer{Name: "override", Deny: grants("override.toml", "fs:read:/srv/notes/private")})
	if err != nil {
		panic(err)
	}
	asked, err := caps.ParseRequest("fs:read:/srv/notes/private/salary.md")
	if err != nil {
		panic(err)
	}
	e := held.Explain(asked[0])
	fmt.Println(e.Asked, e.Allow, e.Code)
	for _, v := range e.Votes {
		fmt.Println(v.Layer, v.Allow, v.Pos)
	}
	// Output:
	// fs:read:/srv/notes/private/salary.md false path_not_permitted
	// base true policy.caps:1
	// override false override.toml:1
}
