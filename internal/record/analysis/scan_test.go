package analysis_test

import (
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/analysis"
)

func classes() []analysis.Class {
	var list []analysis.Class
	for _, d := range policy.Dangers() {
		c := analysis.Class{Name: d.Class, About: d.About, Grave: d.Grave}
		for _, f := range d.Families {
			c.Grants = append(c.Grants, caps.Grant{Family: f, Modes: caps.AllModes(f), Scope: "*"})
		}
		list = append(list, c)
	}
	return list
}

// Whatever a floor's file leaves of a class is a finding with the class's own
// severity, and what it denies is none; the built-in floor has no finding.
//
//rlp:holds Y47
func TestRegranted(t *testing.T) {
	for text, want := range map[string]string{
		policy.FloorText(policy.Delegate): "",
		"[deny]\ncapabilities = []\n": "HIGH regrant:delegation HIGH regrant:exec HIGH regrant:secrets MED " +
			"regrant:memory-write",
		"[deny]\ncapabilities = [\"process:exec:*\", \"agents:launch:*\", \"secrets:read:*\"]\n":                   "MED regrant:memory-write",
		"[capabilities]\nkb_write = [\"drafts\"]\nexec = false\nagents = []\nsecrets = [\"runloop/a/k\"]\n":        "HIGH regrant:secrets MED regrant:memory-write",
		"[deny]\ncapabilities = [\"process:exec:/usr/bin/rm\", \"kb:write:*\", \"agents:*:*\", \"secrets:*:*\"]\n": "HIGH regrant:exec",
		"[visible]\ncategories = [\"file\", \"memory\"]\n":                                                         "MED regrant:memory-write",
		// by a bundle's own tools
		"[tools]\nallow = [\"kb_get\", \"tools:weather\"]\n":                                                          "HIGH regrant:exec HIGH regrant:secrets",
		"[tools]\nallow = [\"kb_get\"]\n":                                                                             "",
		"[deny]\ntools = [\"exec_run\", \"agent_launch\", \"memory:*\"]\n":                                            "HIGH regrant:exec HIGH regrant:secrets",
		"[deny]\ntools = [\"exec_run\", \"kb_put\", \"tools:*\"]\n":                                                   "HIGH regrant:delegation HIGH regrant:secrets MED regrant:memory-write",
		"schema = \"0.2\"\n[capabilities]\nkb_write = []\nexec = [\"/usr/bin/grep\"]\nagents = false\nsecrets = []\n": "HIGH regrant:exec",
	} {
		p, findings := policy.ParseProfile("_delegate", "_delegate.toml", []byte(text), options)
		if p == nil {
			t.Fatalf("%v\n%s", findings, text)
		}
		left, err := caps.Base(analysis.Everything(nil), caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if left, _, err = left.Narrow(p.Layer); err != nil {
			t.Fatal(err)
		}
		list := analysis.Regranted(left, p.Layer, "_delegate.toml", classes())
		analysis.SortFindings(list)
		var got []string
		for _, f := range list {
			got = append(got, string(f.Severity)+" "+f.Rule)
			if !strings.HasPrefix(f.Location, "_delegate.toml") {
				t.Errorf("%+v", f)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, got, want)
		}
	}
}

func agent(t *testing.T, name, document string) analysis.Agent {
	t.Helper()
	b, findings := policy.ParseBase(name+"/policy.caps", []byte(document), options)
	if b == nil {
		t.Fatal(findings)
	}
	held, err := caps.Base(b.Entries, b.Limits)
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := held.Narrow(policy.BuiltinFloor(policy.Untrusted))
	if err != nil {
		t.Fatal(err)
	}
	return analysis.Agent{Name: name, Location: name + "/policy.caps", Held: held, After: after, Entries: b.Entries}
}

// Three things are lethal together, and no two of them.
func TestTrifecta(t *testing.T) {
	trust := analysis.Trust{
		Trusted:   func(g caps.Grant) bool { return g.Scope == "own.example:443" },
		Untrusted: func(g caps.Grant) bool { return strings.HasPrefix(g.Scope, "/downloads") },
	}
	given := trust
	given.Input = true
	if f := analysis.Trifecta([]analysis.Agent{agent(t, "a",
		"[capabilities]\nfs = [\"/notes\"]\nnet = [\"own.example\"]\n")}, given); len(f) != 1 ||
		!strings.Contains(f[0].Detail, "its input") {
		t.Errorf("%+v", f)
	}
	const private, outside, egress = "fs = [\"/notes\"]\n", "fs = [\"/downloads\"]\n", "net = [\"own.example\"]\n"
	for _, c := range []struct{ a, b, want string }{
		{private + "net = [\"any.example\"]\n", "", "HIGH trifecta"},
		{private + egress, "", ""},                                        // nobody from outside speaks to it
		{outside + egress, "", "HIGH trifecta"},                           // what is downloaded is on this machine, too
		{private, "", ""},                                                 // nothing leaves
		{"net = [\"any.example\"]\n", "", ""},                             // there is nothing to tell
		{"kb_read = [\"notes\"]\nmcp = [\"web\"]\n", "", "HIGH trifecta"}, // a server is both
		{private + "exec = true\n", "", ""},                               // programs reach no network
		{private + "agents = [\"b\"]\n", "net = [\"x.example\"]\n", "MED trifecta:chain"},
		{private + "agents = [\"other\"]\n", "net = [\"x.example\"]\n", ""},
	} {
		agents := []analysis.Agent{agent(t, "a", "[capabilities]\n"+c.a)}
		if c.b != "" {
			agents = append(agents, agent(t, "b", "[capabilities]\n"+c.b))
		}
		var got []string
		for _, f := range analysis.Trifecta(agents, trust) {
			got = append(got, string(f.Severity)+" "+f.Rule)
			if f.Severity == analysis.High && !strings.Contains(f.Detail, " at a/policy.caps:2:") {
				t.Errorf("no line in %s", f.Detail)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q %q: %v, want %q", c.a, c.b, got, c.want)
		}
	}
}

// Only agents that somebody may launch are reached.
//
//rlp:holds Y51
func TestReachable(t *testing.T) {
	agents := []analysis.Agent{
		agent(t, "a", "[capabilities]\nagents = [\"b\", \"gone\"]\n"),
		agent(t, "b", "[capabilities]\ntime = true\n"), agent(t, "c", "[capabilities]\ntime = true\n"),
	}
	got := analysis.Reachable(agents, []string{"a", "b", "c", "gone"})
	if len(got) != 2 || got["b"][0] != "a" || got["gone"][0] != "a" {
		t.Errorf("%v", got)
	}
}

// A class is of modes, too: what may be written but not removed is not it.
func TestRegrantedModes(t *testing.T) {
	class := []analysis.Class{{
		Name: "destructive-fs", About: "remove files",
		Grants: []caps.Grant{{Family: caps.FS, Modes: caps.Modes(caps.Delete), Scope: "/"}},
	}}
	for text, want := range map[string]int{
		"[deny]\ncapabilities = [\"fs:delete:*\"]\n": 0,
		"[deny]\ncapabilities = [\"fs:write:*\"]\n":  1, "[capabilities]\nfs_rw = [\"/out\"]\n": 1,
	} {
		p, findings := policy.ParseProfile("p", "p.toml", []byte(text), options)
		if p == nil {
			t.Fatal(findings)
		}
		left, err := caps.Base(analysis.Everything(nil), caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if left, _, err = left.Narrow(p.Layer); err != nil {
			t.Fatal(err)
		}
		if got := analysis.Regranted(left, p.Layer, "p.toml", class); len(got) != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// A floor that leaves no way out once content from outside was seen parts the
// three; and what an agent keeps is told by class.
func TestTrifectaUnderAStricterFloor(t *testing.T) {
	nobody := analysis.Trust{Trusted: func(caps.Grant) bool { return false }, Untrusted: func(caps.Grant) bool {
		return false
	}}
	a := agent(t, "a", "[capabilities]\nfs = [\"/notes\"]\nnet = [\"any.example\"]\nkb_write = [\"drafts\"]\nexec = true\n")
	if got := analysis.Trifecta([]analysis.Agent{a}, nobody); len(got) != 1 {
		t.Fatalf("control: %v", got)
	}
	var err error
	if a.After, _, err = a.After.Narrow(&caps.Layer{Deny: []caps.Entry{{Grant: caps.Grant{
		Family: caps.Net,
		Modes:  caps.AllModes(caps.Net), Scope: "*",
	}}}}); err != nil {
		t.Fatal(err)
	}
	if got := analysis.Trifecta([]analysis.Agent{a}, nobody); len(got) != 0 {
		t.Errorf("%v", got)
	}
	var rules []string
	for _, f := range analysis.Kept(&a, []string{"boss"}, classes()) {
		rules = append(rules, string(f.Severity)+" "+f.Rule+" "+f.Location)
	}
	if strings.Join(rules, ", ") != "INFO inherit:memory-write a/policy.caps:4:13, INFO inherit:exec a/policy.caps:5:8" {
		t.Errorf("%v", rules)
	}
}

// What one agent may carry into the knowledge base from outside comes from
// outside to the next one that reads it there.
func TestTrifectaByWayOfTheStore(t *testing.T) {
	trust := analysis.Trust{
		Trusted:   func(g caps.Grant) bool { return g.Scope == "own.example:443" },
		Untrusted: func(caps.Grant) bool { return false },
	}
	carrier := agent(t, "carrier", "[capabilities]\nnet = [\"any.example\"]\nkb_write = [\"drafts\"]\n")
	reader := agent(t, "reader", "[capabilities]\nnet = [\"own.example\"]\nkb_read = [\"drafts\"]\n")
	if got := analysis.Trifecta([]analysis.Agent{carrier, reader}, trust); len(got) != 0 {
		t.Errorf("the built-in floor keeps the carrier from writing: %v", got)
	}
	carrier.After = carrier.Held
	if got := analysis.Trifecta([]analysis.Agent{carrier, reader}, trust); len(got) != 1 ||
		!strings.HasPrefix(got[0].Detail, "reader has ") {
		t.Errorf("%v", got)
	}
}
