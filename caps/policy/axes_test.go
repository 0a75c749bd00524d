package policy_test

import (
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// profile reads a profile of the home.
func profile(t testing.TB, name, text string) *caps.Layer {
	t.Helper()
	p, findings := policy.ParseProfile(name, "/home/op/.runloop/caps/profiles/"+name+".toml", []byte(text), options)
	if p == nil {
		t.Fatalf("profile %q: %v", text, findings)
	}
	return p.Layer
}

// calls says which of the tools may be called under the layers.
func calls(t testing.TB, tools string, layers ...*caps.Layer) string {
	t.Helper()
	set := base(t, broad)
	for _, l := range layers {
		set, _ = narrow(t, set, l)
	}
	var out []string
	for _, name := range strings.Fields(tools) {
		scope, _ := caps.ToolScope(name)
		d := set.Check(caps.Request{Family: caps.Tool, Name: scope})
		if d.Allow {
			out = append(out, name)
		} else if d.Code != caps.ToolHidden {
			t.Errorf("%s is refused for %s", name, d.Code)
		}
	}
	return strings.Join(out, " ")
}

// The axis of tools: a list allows, a list denies and wins, none is no
// restriction and an empty one is nothing; a category hides, and what is hidden
// is refused by its name as well; every spelling of a name is the tool.
//
//rlp:holds Y5 Y7 Y9 Y10 Y11 Y12 Y13 Y20 Y21 Y22 Y23
func TestToolAxis(t *testing.T) {
	const all = "net_http kb_get kb_put exec_run agent_launch path_open mcp__github__search tools:weather"
	for _, c := range []struct{ want, one, two string }{
		{all, "[deny]\ntools = []\n", "[deny]\ntools = []\n"},
		{"", "[tools]\nallow = []\n", "[deny]\ntools = []\n"},
		{"", "[deny]\ntools = [\"*\"]\n", "[tools]\nallow = [\"net_http\"]\n"},
		{"net_http", "[tools]\nallow = [\"net_http\"]\n", "[deny]\ntools = [\"kb_put\"]\n"},
		{"net_http", "[tools]\nallow = [\"web:*\"]\n", "[tools]\nallow = [\"web__net_http\", \"kb_get\"]\n"},
		{"", "[tools]\nallow = [\"net_http\"]\n", "[tools]\nallow = [\"kb_get\"]\n"},
		{
			"kb_get", "[tools]\nallow = [\"net_http\", \"kb_get\"]\n[deny]\ntools = [\"web:net_http\"]\n",
			"[deny]\ntools = []\n",
		},
		{"kb_get", "[tools]\nallow = [\"net_http\", \"kb_get\"]\n", "[deny]\ntools = [\"web__net_http\"]\n"},
		{
			strings.Replace(all, "exec_run ", "", 1), "[deny]\ntools = [\"exec_run\"]\n",
			"[deny]\ntools = [\"exec__exec_run\"]\n",
		},
		{
			strings.Replace(all, " mcp__github__search", "", 1), "[deny]\ntools = [\"mcp:github/search\"]\n",
			"[deny]\ntools = [\"mcp__github__search\"]\n",
		},
		{
			strings.Replace(all, " tools:weather", "", 1), "[deny]\ntools = [\"weather\"]\n",
			"[deny]\ntools = [\"tools__weather\"]\n",
		},
		{"net_http path_open", "[visible]\ncategories = [\"file\", \"web\"]\n", "[deny]\ntools = []\n"},
		{"net_http", "[visible]\ncategories = [\"file\", \"web\"]\n", "[visible]\ncategories = [\"memory\", \"web\"]\n"},
		{"", "[visible]\ncategories = []\n", "[visible]\ncategories = [\"web\"]\n"},
		{"net_http", "[visible]\ncategories = [\"web\", \"reyn_source\"]\n", "[deny]\ntools = []\n"},
		{
			"kb_get", "[visible]\ncategories = [\"memory\"]\n[tools]\nallow = [\"net_http\", \"kb_get\"]\n",
			"[deny]\ntools = []\n",
		},
		{"tools:weather", "[visible]\ncategories = [\"tools\"]\n", "[tools]\nallow = [\"tools:weather\", \"weathr\"]\n"},
	} {
		one, two := profile(t, "one", c.one), profile(t, "two", c.two)
		for i, layers := range [][]*caps.Layer{{one, two}, {two, one}, {one, two, one, two}} {
			if got := calls(t, all, layers...); got != c.want {
				t.Errorf("%q and %q, way %d: %q, want %q", c.one, c.two, i, got, c.want)
			}
		}
	}
}

// Seeing is not being allowed: a category that is kept gives nothing that the
// base does not hold, and neither does a tool that is allowed.
//
//rlp:holds Y12
func TestVisibleGrantsNothing(t *testing.T) {
	small := base(t, "[capabilities]\nfs = [\"/data\"]\n")
	for _, text := range []string{
		"[visible]\ncategories = [\"exec\", \"web\", \"file\"]\n",
		"[tools]\nallow = [\"*\"]\n",
	} {
		set, _ := narrow(t, small, profile(t, "p", text))
		if set.Any(caps.Exec) || set.Any(caps.Net) || allows(t, set, "process:exec:/bin/a") ||
			!allows(t, set, "fs:read:/data/x") {
			t.Errorf("%q: %s", text, set)
		}
	}
}

// The axis of MCP servers is the family's own: a list, none, and denials that
// win.
//
//rlp:holds Y3 Y6 Y8
func TestServerAxis(t *testing.T) {
	for text, want := range map[string]string{
		"[capabilities]\nmcp = [\"x\"]\n":                                          "mcp:call:y",
		"[capabilities]\nmcp = []\n":                                               "mcp:call:x mcp:call:y",
		"[deny]\ncapabilities = [\"mcp:call:x\"]\n":                                "mcp:call:x",
		"[capabilities]\nmcp = [\"x\"]\n[deny]\ncapabilities = [\"mcp:call:x\"]\n": "mcp:call:x mcp:call:y",
		"[capabilities]\nmcp = [\"x\", \"z\"]\n[deny]\ncapabilities = []\n":        "mcp:call:y",
		"[constraints.mcp]\nservers = [\"y\"]\n":                                   "mcp:call:x",
		"[deny]\ncapabilities = []\n":                                              "",
	} {
		if got := denied(t, profile(t, "p", text)); got != want {
			t.Errorf("%q takes %q, want %q", text, got, want)
		}
	}
}

// The keys of another system's profiles are refused by name, each with what stands
// in its place: a file of theirs never narrows by half.
//
//rlp:holds Y3
func TestKeysOfOtherProfiles(t *testing.T) {
	for line, want := range map[string]string{
		"role = \"writer\"":                     "description",
		"created_at = \"2026-01-02T03:04:05Z\"": "the file has its date",
		"allowed_mcp = [\"github\"]":            "[capabilities] mcp = [\"github\"]",
		"mcp_allow = [\"github\"]":              "[capabilities] mcp = [\"github\"]",
	} {
		const good = "name = \"p\"\n[deny]\ntools = [\"exec_run\"]\n"
		for _, text := range []string{line + "\n" + good, strings.Replace(good, "\n", "\n"+line+"\n", 1)} {
			p, findings := policy.ParseProfile("p", "p.toml", []byte(text), policy.Options{})
			err := policy.AsError(findings)
			key, _, _ := strings.Cut(line, " ")
			if p != nil || err == nil || !slices.ContainsFunc(findings, func(f policy.Finding) bool {
				return strings.Contains(f.Message, key) && strings.Contains(f.Hint, want)
			}) {
				t.Errorf("%q: %+v %v", text, p, findings)
			}
		}
		if p, findings := policy.ParseProfile("p", "p.toml", []byte(good), policy.Options{}); p == nil ||
			policy.AsError(findings) != nil {
			t.Errorf("control: %v", findings)
		}
	}
}

// A profile is a table that says something: everything else is malformed, and
// never no restriction.
//
//rlp:holds Y17 Y18 Y19
func TestProfilesRefused(t *testing.T) {
	for _, c := range []struct {
		text string
		code policy.Code
	}{
		{"", policy.CodeNoRestriction},
		{"# only a comment\n", policy.CodeNoRestriction},
		{"name = \"p\"\ndescription = \"x\"\n", policy.CodeNoRestriction},
		{"[deny]\n", policy.CodeNoRestriction},
		{"[constraints.net]\n[limits]\n", policy.CodeNoRestriction},
		{"{}", policy.CodeNoRestriction},
		{"{\"limits\": {}, \"adapter_constraints\": {\"http\": {}}}", policy.CodeNoRestriction},
		{"{\"limits\": null}", policy.CodeNoRestriction},
		{"{\"allowed_adapters\": \"operator_defined\"}", policy.CodeNoRestriction},
		{"allowed_adapters = \"operator_defined\"\n", policy.CodeNoRestriction},
		{"null\n", policy.CodeSyntax},
		{"- a\n- b\n", policy.CodeSyntax},
		{"\"text\"\n", policy.CodeSyntax},
		{"[]", policy.CodeSyntax},
		{"[[deny]]\ntools = []\n", policy.CodeWrongType},
		{"tool_denny = []\n", policy.CodeUnknownKey},
		{"[deny]\ntool = []\n", policy.CodeUnknownKey},
		{"[deny]\ntools = true\n", policy.CodeWrongType},
		{"[deny]\ntools = \"x\"\n", policy.CodeWrongType},
		{"[deny]\ntools = [1]\n", policy.CodeWrongType},
		{"[capabilities]\nmcp = \"x\"\n", policy.CodeWrongType},
		{"[visible]\ncategories = {}\n", policy.CodeWrongType},
		{"name = \"other\"\n[deny]\ntools = []\n", policy.CodeBadName},
		{"[deny]\ntools = []\n[params]\nx = \"/a\"\n", policy.CodeMisplacedKey},
		{"mcp_deny = [\"x\"]\n", policy.CodeMisplacedKey},
	} {
		p, findings := policy.ParseProfile("p", "p.toml", []byte(c.text), options)
		if errs := errorsOf(findings); p != nil || len(errs) != 1 || errs[0].Code != c.code {
			t.Errorf("%q: %v, want %s", c.text, findings, c.code)
		}
	}
}

// What is not said is "" and restricts nothing.
//
//rlp:holds Y5 Y15
func TestProfileDefaults(t *testing.T) {
	p, findings := policy.ParseProfile("p", "p.toml", []byte("[limits]\nmax_depth = 3\n"), options)
	if p == nil || p.Description != "" || p.Name != "p" || denied(t, p.Layer) != "" {
		t.Errorf("%+v, %v", p, findings)
	}
}

// Names that are not known are warnings: denied, allowed and shown in vain.
//
//rlp:holds Y11
func TestUnknownWords(t *testing.T) {
	_, findings := policy.ParseProfile("p", "p.toml",
		[]byte("[deny]\ntools = [\"remember_shared\", \"web:net_htp\"]\n[tools]\nallow = "+
			"[\"forget\"]\n[visible]\ncategories = [\"rag_corpus\", \"web\"]\n"), options)
	var got []policy.Code
	for _, f := range findings {
		if f.Severity != policy.SeverityWarning {
			t.Errorf("%v is no warning", f)
		}
		got = append(got, f.Code)
	}
	want := []policy.Code{
		policy.CodeUnknownTool, policy.CodeUnknownTool, policy.CodeUnknownTool,
		policy.CodeUnknownCategory,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", findings)
	}
}

// A server alone is no tool of it: who denies one by its name as a tool is told
// that nothing is denied. What the floors speak of is known before it is there.
func TestAServerIsNoTool(t *testing.T) {
	for name, want := range map[string]int{
		"mcp__github": 1, "mcp:github": 1, "mcp__github__search": 0,
		"mcp:github/search": 0, "mcp:*": 0, "mcp_call": 0,
	} {
		_, findings := policy.ParseProfile("p", "p.toml", []byte("[deny]\ntools = [\""+name+"\"]\n"), options)
		if len(findings) != want || want == 1 && (findings[0].Code != policy.CodeUnknownTool ||
			!strings.Contains(findings[0].Hint, "mcp:call:github")) {
			t.Errorf("%s: %v", name, findings)
		}
	}
	for _, floor := range []string{policy.Untrusted, policy.Delegate} {
		if _, findings := policy.ParseProfile(floor, floor+".toml", []byte(policy.FloorText(floor)),
			options); len(findings) != 0 {
			t.Errorf("the built-in %s: %v", floor, findings)
		}
	}
}

// Tiers and effects are the columns of the family table, written out.
//
//rlp:holds A5 A43
func TestTiersAndEffects(t *testing.T) {
	for text, want := range map[string]string{
		"tiers = [\"network\"]":            "fs time kb_read kb_write secrets exec env mcp agents",
		"tiers = [\"operator_sensitive\"]": "fs net time kb_read kb_write model env",
		"tiers = [\"local_state\"]":        "net time secrets model exec mcp agents",
		"tiers = [\"pure\"]":               "fs net kb_read kb_write secrets model exec env mcp agents",
		"effects = [\"control\"]":          "fs net time kb_read kb_write secrets model exec env mcp",
		"effects = [\"io-write\"]":         "fs net time kb_read secrets env agents",
		"effects = [\"io\"]":               "agents",
		"effects = [\"pure\", \"meta\"]":   everything,
	} {
		set, _ := narrow(t, base(t, broad), layer(t, "[deny]\n"+text+"\n"))
		if got := left(set); got != want {
			t.Errorf("%s leaves %q, want %q", text, got, want)
		}
	}
	set, _ := narrow(t, base(t, broad), layer(t, "[deny]\neffects = [\"io-write\"]\n"))
	for s, want := range map[string]bool{
		"fs:read:/data/x": true, "fs:write:/data/x": false, "fs:delete:/data/x": false, "network:https:get@a.example": true,
		"network:https:post@a.example": false,
	} {
		if got := allows(t, set, s); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
}

// A lease bounds what is left, in a base and in layers; the earliest end and
// the fewest uses hold.
func TestLeases(t *testing.T) {
	text := "schema = \"0.2\"\n[leases]\n\"fs:write:/data\" = { expires = 2030-01-01T00:00:00Z, max_uses = 9 " +
		"}\n\"kb:write:artifacts\" = { max_uses = 0 }\n"
	b, findings := policy.ParseBase("policy.caps", []byte(text+"[capabilities]\nfs_rw = [\"/data\"]\n"), options)
	if b == nil || len(b.Leases) != 2 || b.Leases[0].MaxUses != 9 || b.Leases[1].Expires != caps.Forever {
		t.Fatalf("%+v, %v", b, findings)
	}
	one := layer(t, text)
	two := layer(t, "schema = \"0.2\"\n[leases]\n\"fs:write:/data\" = { expires = 2029-01-01T00:00:00+01:00, max_uses = "+
		"12 }\n")
	for _, layers := range [][]*caps.Layer{{one, two}, {two, one}, {two, one, one}} {
		set := base(t, broad)
		for _, l := range layers {
			set, _ = narrow(t, set, l)
		}
		held := set.Leases()
		if len(held) != 2 || held[0].MaxUses != 9 || held[0].Expires != 1861916400000 || held[1].MaxUses != 0 {
			t.Errorf("%+v", held)
		}
	}
}
