package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// grant reads a grant in JSON.
func grant(t testing.TB, text string) *caps.Layer {
	t.Helper()
	l, findings := policy.ParseGrant("grant", "grant.json", []byte(text), options)
	if l == nil {
		t.Fatalf("grant %s: %v", text, findings)
	}
	return l
}

// under is the broad base narrowed by grants in JSON.
func under(t testing.TB, grants ...string) caps.Set {
	t.Helper()
	set := base(t, broad)
	for _, g := range grants {
		set, _ = narrow(t, set, grant(t, g))
	}
	return set
}

// left are the families of which a set grants anything.
func left(set caps.Set) string {
	var list []string
	for f := range caps.NumFamilies {
		if set.Any(f) {
			list = append(list, f.String())
		}
	}
	return strings.Join(list, " ")
}

const everything = "fs net time kb_read kb_write secrets model exec env mcp agents"

// What each field of a grant takes, alone and with another grant: null is no
// restriction and [] is nothing; lists meet, denials add up, and forbidden wins.
//
//rlp:holds A2 A3 A4 A5 A6 A21 A22 A24 A26 A38 Y5 Y9
func TestGrantsNarrow(t *testing.T) {
	for _, c := range []struct{ want, one, two string }{
		{everything, `{}`, `{}`},
		{everything, `{"allowed_adapters":null,"forbidden_adapters":null,"forbidden_effects":null,"forbidden_effect_tiers":null,"forbidden_privilege_tiers":null,"limits":null,"adapter_constraints":null}`, `{}`},
		{everything, `{"forbidden_adapters":[],"forbidden_effects":[],"limits":{},"adapter_constraints":{}}`, `{}`},
		{everything, `{"allowed_adapters":"operator_defined"}`, `{}`},
		{"", `{"allowed_adapters":[]}`, `{}`},
		{"", `{"allowed_adapters":[]}`, `{"allowed_adapters":null}`},
		{"", `{"allowed_adapters":null}`, `{"allowed_adapters":[]}`},
		{"", `{"allowed_adapters":[]}`, `{"allowed_adapters":["http","fs"]}`},
		{"", `{"allowed_adapters":["core"]}`, `{}`},
		{"", `{"allowed_adapters":["core","wasm"]}`, `{}`},
		{"fs", `{"allowed_adapters":["fs"]}`, `{"allowed_adapters":null}`},
		{"fs", `{"allowed_adapters":null}`, `{"allowed_adapters":["fs"]}`},
		{"net", `{"allowed_adapters":["core","http"]}`, `{}`},
		{"kb_read kb_write", `{"allowed_adapters":["sqlite"]}`, `{"allowed_adapters":["memory","db","cache"]}`},
		{"agents", `{"allowed_adapters":["agent"]}`, `{"allowed_adapters":["agents"]}`},
		{"model", `{"allowed_adapters":["llm"]}`, `{"allowed_adapters":["model"]}`},
		{"net", `{"allowed_adapters":["core","http"]}`, `{"allowed_adapters":["http","fs"]}`},
		{"", `{"allowed_adapters":["core"]}`, `{"allowed_adapters":["core","http"]}`},
		{"fs time kb_read kb_write secrets model exec env mcp agents", `{"forbidden_adapters":["http"]}`, `{}`},
		{"fs time secrets model exec env mcp agents", `{"forbidden_adapters":["http"]}`, `{"forbidden_adapters":["sqlite"]}`},
		{"fs", `{"allowed_adapters":["fs","http"],"forbidden_adapters":["http"]}`, `{}`},
		{"fs", `{"allowed_adapters":["fs","http"],"forbidden_adapters":["http"]}`, `{"forbidden_adapters":[]}`},
		{
			"fs", `{"allowed_adapters":["fs","http"],"forbidden_adapters":["http"]}`,
			`{"forbidden_adapters":null,"allowed_adapters":null}`,
		},
		{
			"fs time kb_read kb_write env", `{"forbidden_privilege_tiers":["operator_sensitive"]}`,
			`{"forbidden_privilege_tiers":["network"]}`,
		},
		{
			"time", `{"forbidden_privilege_tiers":["operator_sensitive","network","local_state"]}`,
			`{"forbidden_privilege_tiers":[]}`,
		},
		{"agents", `{"forbidden_effects":["io"]}`, `{}`},
		{"agents", `{"forbidden_effects":["io-read"]}`, `{"forbidden_effect_tiers":["io-write"]}`},
		{
			"fs net time kb_read secrets env agents", `{"forbidden_effects":["io-write"]}`,
			`{"forbidden_effects":["pure","meta"]}`,
		},
	} {
		for i, set := range []caps.Set{under(t, c.one, c.two), under(t, c.two, c.one), under(t, c.one, c.two, c.two, c.one)} {
			if got := left(set); got != c.want {
				t.Errorf("%s and %s, way %d: %q is left, want %q", c.one, c.two, i, got, c.want)
			}
		}
	}
	whole := base(t, broad)
	if set := under(t, `{}`, `{"allowed_adapters":null}`); set.Digest() != whole.Digest() {
		t.Error("the empty grant is not the identity")
	}
}

// The fields in TOML are the fields in JSON.
//
//rlp:holds A1
func TestGrantsInTOML(t *testing.T) {
	text := "description = \"a grant\"\nallowed_adapters = [\"core\", \"http\", \"sqlite\"]\nforbidden_adapters = " +
		"[\"sqlite\"]\nforbidden_effects = [\"io-write\"]\n" +
		"forbidden_effect_tiers = [\"control\"]\nforbidden_privilege_tiers = [\"operator_sensitive\"]\n[limits]\nmax_steps " +
		"= 7\n[adapter_constraints.http]\nallow_hosts = [\"a.example\"]\n"
	toml, findings := policy.ParseGrant("grant", "grant.toml", []byte(text), options)
	if toml == nil {
		t.Fatal(findings)
	}
	same := grant(t, `{"allowed_adapters":["core","http","sqlite"],"forbidden_adapters":["sqlite"],"forbidden_effects":["io-write"],
		"forbidden_effect_tiers":["control"],"forbidden_privilege_tiers":["operator_sensitive"],"limits":{"max_steps":7},"adapter_constraints":{"http":{"allow_hosts":["a.example"]}}}`)
	b := base(t, broad)
	one, _ := narrow(t, b, toml)
	two, _ := narrow(t, b, same)
	if one.Digest() != two.Digest() || one.Limits() != two.Limits() || left(one) != "net" {
		t.Errorf("%s and %s", one, two)
	}
	o, findings := policy.ParseLayer("override:x", "x.toml", []byte(text), options)
	if o == nil {
		t.Fatalf("as an override: %v", findings)
	}
	if three, _ := narrow(t, b, o.Layer); three.Digest() != one.Digest() {
		t.Error("as an override it is another layer")
	}
}

// The example that the model of grants is explained by.
//
//rlp:holds A28 A36
func TestGrantExample(t *testing.T) {
	server := `{"allowed_adapters":["core","http","sqlite"],"forbidden_privilege_tiers":["operator_sensitive"],"limits":{"max_steps":2000}}`
	caller := `{"allowed_adapters":["core","http"],"forbidden_adapters":["sqlite"],"limits":{"max_steps":500}}`
	set := under(t, server, caller)
	if got := left(set); got != "net" {
		t.Errorf("%q is left", got)
	}
	_, steps, _ := caps.ParseLimit("max_steps", 500)
	if got, _ := set.Limits().Get(caps.CPUFuel); got != steps {
		t.Errorf("max_steps is %d units, want %d", got, steps)
	}
	if set := under(t, server, `{"allowed_adapters":null,"forbidden_adapters":[],"forbidden_privilege_tiers":[],"limits":{"max_steps":9000}}`); left(set) != "net kb_read kb_write" {
		t.Errorf("a caller's nothing lifts: %s", left(set))
	} else if got, _ := set.Limits().Get(caps.CPUFuel); got != 4*steps {
		t.Errorf("a caller raises max_steps to %d", got)
	}
}

// Limits meet by key at the lesser value; 0 is none, and stays none.
//
//rlp:holds A7 A8 A23 A58
func TestGrantLimits(t *testing.T) {
	set := under(t, `{"limits":{"max_steps":3,"max_adapter_calls":9,"max_depth":4}}`,
		`{"limits":{"max_steps":0,"max_time_ms":8,"max_depth":5}}`)
	want := map[string]int64{"cpu_fuel": 0, "hostcalls_max": 9, "wall_time_ms": 8, "max_depth": 4}
	if got := set.Limits().Map(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("limits %v, want %v", got, want)
	}
}

// badGrants are grants that are refused, with the field and why.
func badGrants() []badGrant {
	return []badGrant{
		{`{"limits":{"max_steps":-1}}`, "limits.max_steps", policy.CodeBadLimit},
		{`{"limits":{"max_steps":"5"}}`, "limits.max_steps", policy.CodeWrongType},
		{`{"limits":{"max_steps":5.0}}`, "limits.max_steps", policy.CodeWrongType},
		{`{"limits":{"max_steps":1e3}}`, "limits.max_steps", policy.CodeWrongType},
		{`{"limits":{"max_steps":true}}`, "limits.max_steps", policy.CodeWrongType},
		{`{"limits":{"max_steps":null}}`, "limits.max_steps", policy.CodeWrongType},
		{`{"limits":{"max_steps":9223372036854775807}}`, "limits.max_steps", policy.CodeBadLimit},
		{`{"limits":{"max_steps":9223372036854775808}}`, "limits.max_steps", policy.CodeSyntax},
		{
			`{"adapter_constraints":{"http":{"hosts":["a.example",1e999]}}}`, "adapter_constraints.http.hosts[1]",
			policy.CodeSyntax,
		},
		{`{"allowed_adapters":["core",["a\u0000"]]}`, "allowed_adapters[1][0]", policy.CodeSyntax},
		{`{"limits":{"max_steps":NaN}}`, "limits.max_steps", policy.CodeSyntax},
		{`{"limits":{"max_stepz":1}}`, "limits.max_stepz", policy.CodeUnknownKey},
		{`{"limits":{"Max_steps":1}}`, "limits.Max_steps", policy.CodeUnknownKey},
		{`{"limits":{"max_frame_bytes":1}}`, "limits.max_frame_bytes", policy.CodeUnknownKey},
		{`{"limits":{"max_steps":1,"cpu_fuel":1}}`, "limits.cpu_fuel", policy.CodeTwoSpellings},
		{`{"limits":[]}`, "limits", policy.CodeWrongType},
		{`{"allowed_adapters":"core"}`, "allowed_adapters", policy.CodeWrongType},
		{`{"allowed_adapters":{}}`, "allowed_adapters", policy.CodeWrongType},
		{`{"allowed_adapters":true}`, "allowed_adapters", policy.CodeWrongType},
		{`{"allowed_adapters":["core",null]}`, "allowed_adapters[1]", policy.CodeWrongType},
		{`{"allowed_adapters":["core",["fs"]]}`, "allowed_adapters[1]", policy.CodeWrongType},
		{`{"forbidden_adapters":["http",1]}`, "forbidden_adapters[1]", policy.CodeWrongType},
		{`{"forbidden_adapters":["a b"]}`, "forbidden_adapters[0]", policy.CodeBadName},
		{`{"forbidden_effects":["iowrite"]}`, "forbidden_effects[0]", policy.CodeBadEffect},
		{`{"forbidden_effect_tiers":["io-write","x"]}`, "forbidden_effect_tiers[1]", policy.CodeBadEffect},
		{`{"forbidden_privilege_tiers":["root"]}`, "forbidden_privilege_tiers[0]", policy.CodeBadTier},
		{`{"forbidden_destructive":true}`, "forbidden_destructive", policy.CodeUnknownKey},
		{`{"Allowed_adapters":["core"]}`, "Allowed_adapters", policy.CodeUnknownKey},
		{`{"allowed_adapters":[],"deny":{}}`, "deny", policy.CodeMisplacedKey},
		{`{"allowed_adapters":[],"allowed_adapters":["fs"]}`, "allowed_adapters", policy.CodeSyntax},
		{`[]`, "", policy.CodeSyntax},
		{`{} {}`, "", policy.CodeSyntax},
		{`{"adapter_constraints":{"http":[]}}`, "adapter_constraints.http", policy.CodeWrongType},
		{`{"adapter_constraints":{"http":{"host":["a.example"]}}}`, "adapter_constraints.http.host", policy.CodeUnknownKey},
		{`{"adapter_constraints":{"http":{"hosts":"a.example"}}}`, "adapter_constraints.http.hosts", policy.CodeWrongType},
		{
			`{"adapter_constraints":{"http":{"hosts":["a.example",1]}}}`, "adapter_constraints.http.hosts[1]",
			policy.CodeWrongType,
		},
		{`{"adapter_constraints":{"http":{"timeout_ms":[1]}}}`, "adapter_constraints.http.timeout_ms", policy.CodeWrongType},
		{
			`{"adapter_constraints":{"http":{"hosts":[],"allow_hosts":["a.example"]}}}`, "adapter_constraints.http.allow_hosts",
			policy.CodeTwoSpellings,
		},
		{
			`{"adapter_constraints":{"http":{"hosts":[]},"net":{"hosts":["a.example"]}}}`, "adapter_constraints.net",
			policy.CodeTwoSpellings,
		},
		{
			`{"adapter_constraints":{"sqlite":{"tables":["drafts"]},"memory":{"tables":["notes"]}}}`,
			"adapter_constraints.memory", policy.CodeTwoSpellings,
		},
		{`{"adapter_constraints":{"core":{}}}`, "adapter_constraints.core", policy.CodeUnknownKey},
		{`{"adapter_constraints":{"htp":{}}}`, "adapter_constraints.htp", policy.CodeUnknownKey},
	}
}

type badGrant struct {
	text, field string
	code        policy.Code
}

// What is not understood is an error that names the field, as a caller wrote
// it; none of it is dropped.
//
//rlp:holds A8 A9 A10 A15 A16
func TestGrantsRefused(t *testing.T) {
	for _, c := range badGrants() {
		l, findings := policy.ParseGrant("grant", "g", []byte(c.text), options)
		errs := errorsOf(findings)
		if l != nil || len(errs) != 1 {
			t.Errorf("%s: refused %v, %v", c.text, l == nil, findings)
			continue
		}
		if errs[0].Code != c.code || errs[0].Field != c.field {
			t.Errorf("%s: %q %v, want %s of %q", c.text, errs[0].Field, errs[0], c.code, c.field)
		}
	}
}

// A caller's adapter that the base does not have stays out, and is told.
//
//rlp:holds A37
func TestGrantExtras(t *testing.T) {
	small := base(t, "[capabilities]\nfs = [\"/data\"]\nkb_read = [\"notes\", \"contacts\", \"contacts_raw\"]\n")
	set, changes := narrow(t, small, grant(t, `{"allowed_adapters":["core","http","fs","sqlite"]}`))
	if left(set) != "fs kb_read" || set.String() != small.String() {
		t.Errorf("%s is left", set)
	}
	changes = slices.DeleteFunc(changes, func(c caps.Change) bool { return c.Kind != caps.Ignored })
	if len(changes) != 1 || changes[0].Kind != caps.Ignored || changes[0].Grant.Family != caps.Net {
		t.Errorf("%v", changes)
	}
	if f := policy.Extras(changes); len(f) != 1 || f[0].Code != policy.CodeCapsExtra {
		t.Errorf("%v", f)
	}
}

// The schema takes the grants that the reader takes, and refuses what it refuses.
func TestGrantSchema(t *testing.T) {
	schema := compiled(t, policy.KindGrant)
	value := func(text string) (any, bool) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		return v, err == nil
	}
	// Beyond a schema: two names of one thing, 5.0 beside 5, what overflows in its unit.
	unseen := []string{"5.0", "1e3", "9223372036854775807", `[],"allowed`}
	seen := 0
	for _, c := range badGrants() {
		v, ok := value(c.text)
		if !ok || c.code == policy.CodeSyntax || c.code == policy.CodeTwoSpellings || slices.ContainsFunc(unseen,
			func(s string) bool { return strings.Contains(c.text, s) }) {
			continue
		}
		seen++
		if err := schema.Validate(v); err == nil {
			t.Errorf("the schema takes %s", c.text)
		}
	}
	if seen < 25 {
		t.Errorf("%d refusals were compared", seen)
	}
	r := rand.New(rand.NewPCG(5, 2))
	for range 100 {
		text := randomGrant(r)
		v, _ := value(text)
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	v, _ := value(`{"allowed_adapters":null,"forbidden_adapters":null,"limits":null,"adapter_constraints":{"http":{"allow_hosts":["a.example"],"min_tls":"1.3"},"kb":null}}`)
	if err := schema.Validate(v); err != nil {
		t.Error(err)
	}
}

// There is one reader: the same text is the same layer, whoever brings it.
//
//rlp:holds A60 Y2
func TestOneReader(t *testing.T) {
	b := base(t, broad)
	for _, text := range layerFiles() {
		o, findings := policy.ParseLayer("override:f", "f", []byte(text), options)
		p, more := policy.ParseProfile("f", "f", []byte(text), options)
		if o == nil || p == nil {
			t.Fatalf("%v %v\n%s", findings, more, text)
		}
		one, _ := narrow(t, b, o.Layer)
		two, _ := narrow(t, b, p.Layer)
		if one.Digest() != two.Digest() {
			t.Errorf("as an override %s, as a profile %s\n%s", one, two, text)
		}
		if l, _ := policy.ParseGrant("f", "f", []byte(text), options); l != nil {
			if three, _ := narrow(t, b, l); three.Digest() != one.Digest() {
				t.Errorf("as a grant %s, as an override %s\n%s", three, one, text)
			}
		}
	}
}

// Names that are not known are told: allowed and forbidden in vain, and denied once
// there is such a tool.
func TestUnknownAdapters(t *testing.T) {
	l, findings := policy.ParseGrant("grant", "g",
		[]byte(`{"allowed_adapters":["fs","tiktok"],"forbidden_adapters":["calendar","net_http"]}`), options)
	if l == nil || len(findings) != 2 || findings[0].Code != policy.CodeUnknownAdapter ||
		findings[1].Field != "forbidden_adapters[0]" {
		t.Fatalf("%v", findings)
	}
	set, _ := narrow(t, base(t, broad), l)
	if left(set) != "fs" {
		t.Errorf("%q is left", left(set))
	}
	for tool, want := range map[string]bool{"tools:calendar": false, "web:net_http": false, "file:path_open": true} {
		if got := set.Check(caps.Request{Family: caps.Tool, Name: tool}).Allow; got != want {
			t.Errorf("%s: %v", tool, got)
		}
	}
}

// Constraints meet by the polarity of each field; lists that have nothing in
// common leave nothing, never everything; a field that one side has holds.
//
//rlp:holds A11 A12 A13 A14 A17 A18 A56
func TestGrantConstraints(t *testing.T) {
	http := func(fields string) string { return `{"adapter_constraints":{"http":{` + fields + `}}}` }
	reach := func(set caps.Set) (out []string) {
		for _, h := range []string{"a.example", "b.example:8443"} {
			if allows(t, set, "network:https:"+h) {
				out = append(out, h)
			}
		}
		return out
	}
	for _, c := range []struct{ one, two, hosts, rest string }{
		{http(`"hosts":["a.example"]`), http(`"allow_hosts":["a.example","b.example:8443"]`), "[a.example]", "map[]"},
		{http(`"hosts":["a.example"]`), http(`"hosts":["b.example:8443"]`), "[]", "map[]"},
		{http(`"hosts":[]`), `{}`, "[]", "map[]"},
		{http(`"hosts":["c.example"]`), `{}`, "[]", "map[]"},
		{
			http(`"timeout_ms":50,"max_response_bytes":10`), http(`"timeout_ms":70`), "[a.example b.example:8443]",
			"map[net.max_response_bytes:10 net.timeout_ms:50]",
		},
		{http(`"timeout_ms":0`), http(`"timeout_ms":70`), "[a.example b.example:8443]", "map[net.timeout_ms:0]"},
		{
			http(`"allow_redirects":true`), http(`"allow_redirects":false`), "[a.example b.example:8443]",
			"map[net.allow_redirects:0]",
		},
		{http(`"min_tls":"1.2"`), http(`"min_tls":"1.3"`), "[a.example b.example:8443]", "map[net.min_tls:13]"},
		{`{"adapter_constraints":{"http":{"hosts":["a.example"]}},"allowed_adapters":["fs"]}`, `{}`, "[]", "map[]"},
	} {
		for i, set := range []caps.Set{under(t, c.one, c.two), under(t, c.two, c.one)} {
			if got := fmt.Sprint(reach(set)); got != c.hosts {
				t.Errorf("%s and %s, way %d: reaches %s, want %s", c.one, c.two, i, got, c.hosts)
			}
			if got := fmt.Sprint(set.Constraints().Map()); got != c.rest {
				t.Errorf("%s and %s, way %d: %s, want %s", c.one, c.two, i, got, c.rest)
			}
		}
	}
	set := under(t, `{"adapter_constraints":{"fs":{"paths":["/data/sub"]},"sqlite":{"tables":["notes"]},"exec":{"programs":["/bin/a"]},"llm":{"models":["local:echo"]},"http":{"methods":["GET"]}}}`)
	for s, want := range map[string]bool{
		"fs:read:/data/sub/x": true, "fs:write:/data/sub/x": true, "fs:read:/data/x": false, "fs:read:/ro/x": false,
		"kb:read:notes": true, "kb:read:contacts": false,
		"kb:write:artifacts": false, "process:exec:/bin/a": true, "process:exec:/bin/b": false, "model:use:local:echo": true,
		"model:use:openai:gpt":        false,
		"network:https:get@a.example": true, "network:https:post@a.example": false, "mcp:call:x": true,
	} {
		if got := allows(t, set, s); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
}

// randomGrant is a grant of any of the fields, as a caller may write it.
func randomGrant(r *rand.Rand) string {
	words := func(from ...string) string {
		r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		return `["` + strings.Join(from[:r.IntN(len(from))+1], `","`) + `"]`
	}
	fields := []string{
		`"allowed_adapters":` + words("core", "fs", "http", "sqlite", "agent", "exec", "mcp", "secrets", "env", "time", "llm",
			"tools"),
		`"forbidden_adapters":` + words("fs", "http", "memory", "exec", "tools", "net_http", "calendar"),
		`"forbidden_effects":` + words("io", "io-read", "pure", "control"),
		`"forbidden_effect_tiers":` + words("io-write", "meta"),
		`"forbidden_privilege_tiers":` + words("network", "local_state", "operator_sensitive", "pure"),
		fmt.Sprintf(`"limits":{"max_steps":%d,"hostcalls_max":%d}`, r.IntN(5), r.IntN(5)),
		fmt.Sprintf(`"adapter_constraints":{"http":{"hosts":%s,"timeout_ms":%d,"allow_redirects":%v},"fs":{"paths":%s}}`,
			words("a.example", "b.example:8443", "c.example"), r.IntN(100), r.IntN(2) == 0, words("/data", "/data/sub", "/ro")),
	}
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return "{" + strings.Join(fields[:r.IntN(4)], ",") + "}"
}

// Grants meet as sets do: the order and repetition of grants mean nothing, and
// what is left is at least as narrow as each of them leaves it, in every field.
//
//rlp:holds A19 A20
func TestGrantsAreALattice(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	print := func(s caps.Set) string { return fmt.Sprint(s.Digest(), s.Limits(), s.Constraints().Map(), s.String()) }
	rounds, different := 300, 0
	if testing.Short() {
		rounds = 40
	}
	for range rounds {
		a, b, c := randomGrant(r), randomGrant(r), randomGrant(r)
		abc := under(t, a, b, c)
		different += min(1, strings.Compare(print(abc), print(under(t, a)))&1)
		for _, order := range [][]string{{c, b, a}, {b, a, c, b, a}, {a, a, c, c, b}} {
			if got := under(t, order...); print(got) != print(abc) {
				t.Fatalf("%v: %s, want %s", order, print(got), print(abc))
			}
		}
		for _, one := range []string{a, b, c} {
			narrower(t, abc, under(t, one), one)
		}
	}
	if different < rounds/4 {
		t.Errorf("%d of %d meets differ from their first grant: the generator shows little", different, rounds)
	}
}

// narrower fails if a allows what b, made by the grant text, does not.
func narrower(t *testing.T, a, b caps.Set, text string) {
	t.Helper()
	for _, s := range strings.Fields(universe) {
		if allows(t, a, s) && !allows(t, b, s) {
			t.Fatalf("%s is allowed beyond %s", s, text)
		}
	}
	for _, tool := range caps.Tools() {
		q := caps.Request{Family: caps.Tool, Name: tool.Scope()}
		if a.Check(q).Allow && !b.Check(q).Allow {
			t.Fatalf("%s is allowed beyond %s", tool.Scope(), text)
		}
	}
	limitsAreLower(t, b.Limits(), a.Limits(), text)
	if a.Constraints() != a.Constraints().Meet(b.Constraints()) {
		t.Fatalf("constraints %v are looser than %s", a.Constraints().Map(), text)
	}
}

// Every name of an adapter is one that the other rows of the table know.
func TestAdapterNames(t *testing.T) {
	for _, name := range []string{
		"core", "wasm", "fs", "http", "sqlite", "memory", "db", "cache", "agent", "llm", "tools",
		"net", "kb_read", "exec", "secrets", "mcp",
	} {
		_, findings := policy.ParseGrant("g", "g", []byte(`{"allowed_adapters":["`+name+`"]}`), options)
		if slices.ContainsFunc(findings, func(f policy.Finding) bool { return f.Code == policy.CodeUnknownAdapter }) {
			t.Errorf("%s is not known", name)
		}
	}
}
