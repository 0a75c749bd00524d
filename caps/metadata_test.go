package caps_test

import (
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
)

// What nothing is known of is of the highest tier and has every effect.
//
//rlp:holds A42 A43
func TestTiers(t *testing.T) {
	if m := caps.MetadataOf(caps.NumFamilies + 1); m.Tier != caps.OperatorSensitive || m.SandboxSafe {
		t.Errorf("an unknown family: %+v", m)
	}
	if e := caps.EffectOf(caps.NumFamilies+1, 0); e&caps.IOWrite == 0 || e&caps.Control == 0 {
		t.Errorf("an unknown family does %v", e.Words())
	}
	if got := caps.TierNames(); !slices.Equal(got, []string{"pure", "local_state", "network", "operator_sensitive"}) {
		t.Errorf("tiers %v", got)
	}
	for f, want := range map[caps.Family]caps.Tier{
		caps.Time: caps.Pure, caps.FS: caps.LocalState, caps.KBWrite: caps.LocalState, caps.Net: caps.Network,
		caps.Model: caps.Network,
		caps.Exec:  caps.OperatorSensitive, caps.Secrets: caps.OperatorSensitive, caps.Agents: caps.OperatorSensitive,
	} {
		if got := caps.MetadataOf(f).Tier; got != want {
			t.Errorf("%s is %s, want %s", f, got, want)
		}
	}
	if _, ok := caps.ParseTier("root"); ok {
		t.Error("a tier that there is not")
	}
	// Every family is of exactly one tier, and denying them all leaves nothing.
	s, deny := everything(t), &caps.Layer{Name: "tiers"}
	for _, word := range caps.TierNames() {
		tier, _ := caps.ParseTier(word)
		for _, g := range caps.TierGrants(tier) {
			deny.Deny = append(deny.Deny, caps.Entry{Grant: g})
		}
	}
	if left := narrow(t, s, deny); !left.IsEmpty() {
		t.Errorf("without any tier there is %v", left)
	}
}

// Effects take the modes that have them, and no others.
func TestEffects(t *testing.T) {
	deny := &caps.Layer{Name: "effects"}
	e, _ := caps.ParseEffect("io-write")
	for _, g := range caps.EffectGrants(e) {
		deny.Deny = append(deny.Deny, caps.Entry{Grant: g})
	}
	left := narrow(t, everything(t), deny)
	post, _ := caps.NetMode("https", "POST")
	get, _ := caps.NetMode("https", "GET")
	for _, c := range []struct {
		r    caps.Request
		want bool
	}{
		{caps.Request{Family: caps.FS, Mode: caps.Read, Name: "/a"}, true},
		{caps.Request{Family: caps.FS, Mode: caps.Write, Name: "/a"}, false},
		{caps.Request{Family: caps.FS, Mode: caps.Delete, Name: "/a"}, false},
		{caps.Request{Family: caps.Net, Mode: get, Name: "x.org:443"}, true},
		{caps.Request{Family: caps.Net, Mode: post, Name: "x.org:443"}, false},
		{caps.Request{Family: caps.KBRead, Name: "notes"}, true},
		{caps.Request{Family: caps.KBWrite, Name: "notes"}, false},
		{caps.Request{Family: caps.Exec, Name: "/bin/ls"}, false},
	} {
		if got := left.Check(c.r).Allow; got != c.want {
			t.Errorf("%v: %v", c.r, got)
		}
	}
}

// Every spelling of a tool is one scope, derived from one table.
//
//rlp:holds Y20
func TestToolSpellings(t *testing.T) {
	for _, tool := range caps.Tools() {
		for _, spelling := range []string{tool.Name, tool.Qualified(), tool.Scope()} {
			if scope, known := caps.ToolScope(spelling); scope != tool.Scope() || !known {
				t.Errorf("%s is %q, %v; want %q", spelling, scope, known, tool.Scope())
			}
		}
	}
	for spelling, want := range map[string]string{
		"mcp__github__search": "mcp:github/search", "mcp:github/search": "mcp:github/search",
		"tools:send_mail":  "tools:send_mail",
		"tools__send_mail": "tools:send_mail", "web:*": "web:*",
		"web:connect": "web:connect", "web__connect": "web:connect", "exec:execve": "exec:execve", // programs
	} {
		if scope, known := caps.ToolScope(spelling); scope != want || !known {
			t.Errorf("%s is %q, %v; want %q", spelling, scope, known, want)
		}
	}
	for spelling, want := range map[string]string{
		"send_mail": "tools:send_mail", "connect": "tools:connect",
		"exec:connect": "exec:connect", "web__nothing": "web:nothing", "a b": "",
		"*": "", "": "",
	} {
		if scope, known := caps.ToolScope(spelling); scope != want || known {
			t.Errorf("%s is %q, %v; want %q", spelling, scope, known, want)
		}
	}
}

func toolEntry(scope string) caps.Entry {
	return caps.Entry{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: scope}}
}

// The tool axis narrows by the same step as everything else: deny wins over
// allow, none is no restriction, an empty list is nothing, and what a layer
// leaves is no more than what the one before it left.
//
//rlp:holds Y7 Y8 Y9 Y10 Y12
func TestToolAxis(t *testing.T) {
	base := everything(t)
	ask := func(s caps.Set, scope string) caps.Decision {
		return s.Check(caps.Request{Family: caps.Tool, Name: scope})
	}
	if !ask(base, "web:net_http").Allow {
		t.Fatal("control: hidden without a layer")
	}
	bound := []caps.Bound{{Family: caps.Tool, Modes: 1}}
	both := narrow(t, base, &caps.Layer{
		Name: "both", Bounds: bound, Allow: []caps.Entry{toolEntry("web:*"), toolEntry("exec:exec_run")},
		Deny: []caps.Entry{toolEntry("exec:exec_run")},
	})
	for scope, want := range map[string]bool{
		"web:net_http": true, "exec:exec_run": false, "memory:kb_put": false,
		"mcp:a/b": false,
	} {
		if d := ask(both, scope); d.Allow != want || !want && d.Code != caps.ToolHidden {
			t.Errorf("%s: %+v", scope, d)
		}
	}
	if none := narrow(t, base, &caps.Layer{Name: "none", Bounds: bound}); ask(none, "web:net_http").Allow {
		t.Error("an empty list leaves a tool")
	}
	if again := narrow(t, both, &caps.Layer{
		Name: "more", Bounds: bound,
		Allow: []caps.Entry{toolEntry("*")},
	}); again.Digest() != both.Digest() {
		t.Error("a wider list changed what was left")
	}
	if got := narrow(t, base, both.Layer("parent")); got.Digest() != both.Digest() {
		t.Error("the layer of a set does not hold its tools")
	}
	if both.Digest() == base.Digest() || both.IsEmpty() {
		t.Error("what tools are left is no part of the digest, or of what is granted")
	}
}

// The reason of a layer is the reason of its refusals, and of no others.
func TestBecause(t *testing.T) {
	floor := &caps.Layer{Name: "_untrusted", Because: caps.UntrustedContext, Deny: denies(t, "kb:write:*", "exec:*:*")}
	s := narrow(t, set(t, "kb:write:drafts", "kb:read:notes"), floor)
	for name, c := range map[string]struct {
		r    caps.Request
		want caps.Code
	}{
		"the whole family":  {caps.Request{Family: caps.KBWrite, Name: "drafts"}, caps.UntrustedContext},
		"not in the base":   {caps.Request{Family: caps.Exec, Name: "/bin/ls"}, caps.CapMissing},
		"another's refusal": {caps.Request{Family: caps.KBRead, Name: "drafts"}, caps.DomainNotPermitted},
	} {
		if d := s.Check(c.r); d.Allow || d.Code != c.want {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Constraints meet by the polarity that their registry declares.
//
//rlp:holds A12 A13 A16 A17
func TestConstraintsMeet(t *testing.T) {
	a := caps.Constraints{}.With(caps.NetMaxResponseBytes, 10).With(caps.NetAllowRedirects, 1).With(caps.NetMinTLS, 12)
	b := caps.Constraints{}.With(caps.NetMaxResponseBytes, 20).With(caps.NetAllowRedirects, 0).With(caps.NetMinTLS,
		13).With(caps.KBMaxValueBytes, 0)
	want := caps.Constraints{}.With(caps.NetMaxResponseBytes, 10).With(caps.NetAllowRedirects, 0).With(caps.NetMinTLS,
		13).With(caps.KBMaxValueBytes, 0)
	if a.Meet(b) != want || b.Meet(a) != want || want.Meet(want) != want || a.Meet(caps.Constraints{}) != a {
		t.Errorf("%v and %v meet at %v", a.Map(), b.Map(), a.Meet(b).Map())
	}
	for c := range caps.NumConstraints {
		table, key := c.Key()
		if back, ok := caps.ConstraintOf(table, key); !ok || back != c {
			t.Errorf("%s.%s is %v", table, key, back)
		}
	}
	if got := (caps.Constraints{}).With(caps.NetMinTLS, -1); got == (caps.Constraints{}).With(caps.NetMinTLS, 0) {
		t.Error("a minimum that makes no sense demands nothing")
	}
}

// Of two leases of one scope the earliest end and the fewest uses hold.
func TestLeasesMeet(t *testing.T) {
	lease := func(expires, uses int64) *caps.Layer {
		return &caps.Layer{
			Name: "lease",
			Leases: []caps.Lease{{
				Entry:   entriesOf([]caps.Grant{{Family: caps.FS, Modes: 2, Scope: "/out"}})[0],
				Expires: expires, MaxUses: uses,
			}},
		}
	}
	base := set(t, "fs:write:/out")
	one, two := lease(100, caps.Unbounded), lease(caps.Forever, 3)
	ab, ba := narrow(t, narrow(t, base, one), two), narrow(t, narrow(t, base, two), one)
	if ab.Digest() != ba.Digest() || ab.Digest() == base.Digest() {
		t.Error("the order of leases matters, or they do not")
	}
	if got := ab.Leases(); len(got) != 1 || got[0].Expires != 100 || got[0].MaxUses != 3 {
		t.Errorf("leases %+v", got)
	}
	if !ab.Check(caps.Request{Family: caps.FS, Mode: caps.Write, Name: "/out/x"}).Allow {
		t.Error("a lease takes away by itself")
	}
}

// What a lease leaves a number of uses of is known by scope and mode, and when the
// first one ends.
func TestCountedScopes(t *testing.T) {
	lease := func(modes caps.ModeSet, scope string, expires, uses int64) caps.Lease {
		return caps.Lease{
			Entry: entriesOf([]caps.Grant{{Family: caps.FS, Modes: modes, Scope: scope}})[0], Expires: expires,
			MaxUses: uses,
		}
	}
	s := narrow(t, set(t, "fs:read:/out", "fs:write:/out", "fs:read:/out/a/deep"),
		&caps.Layer{Name: "l", Leases: []caps.Lease{
			lease(caps.Modes(caps.Read), "/out/a", caps.Forever, 0), lease(caps.Modes(caps.Read), "/out/b", 100, caps.Unbounded),
		}})
	counted := s.Counted(caps.FS)
	for scope, want := range map[string]bool{"/out": false, "/out/a": true, "/out/a/deep": true, "/out/b": false} {
		id := s.ScopeID(caps.FS, scope)
		if id < 0 || counted(id, caps.Read) != want || counted(id, caps.Write) {
			t.Errorf("%s (%d): %v %v", scope, id, counted(id, caps.Read), counted(id, caps.Write))
		}
	}
	over := narrow(t, s, &caps.Layer{
		Name: "over",
		Deny: entriesOf([]caps.Grant{{Family: caps.FS, Modes: caps.Modes(caps.Read), Scope: "/out/b"}}),
	})
	if got := over.Ending(caps.FS); got != caps.Forever {
		t.Errorf("a lease that is over ends at %d", got)
	}
	if got, none := s.Ending(caps.FS), s.Ending(caps.Net); got != 100 || none != caps.Forever {
		t.Errorf("the first lease ends at %d and %d", got, none)
	}
}

// Every word of a tier, an effect and a condition is read back as what it is.
func TestWordsAreReadBack(t *testing.T) {
	for _, word := range caps.TierNames() {
		if tier, ok := caps.ParseTier(word); !ok || tier.String() != word {
			t.Errorf("%s is %s, %v", word, tier, ok)
		}
	}
	if tier, ok := caps.ParseTier("root"); ok || tier != caps.OperatorSensitive {
		t.Errorf("a tier that there is not is %s, %v", tier, ok)
	}
	for _, word := range caps.EffectNames() {
		e, ok := caps.ParseEffect(word)
		if words := e.Words(); !ok || word != "io" && !slices.Equal(words, []string{word}) {
			t.Errorf("%s is %v, %v", word, words, ok)
		}
	}
	if got := caps.EffectNames(); !slices.Equal(got, []string{"pure", "io-read", "io-write", "control", "meta", "io"}) {
		t.Errorf("effects %q", got)
	}
	if e, ok := caps.ParseEffect("magic"); ok || e != 0 {
		t.Errorf("an effect that there is not is %v", e.Words())
	}
	for _, c := range [][2]string{{"net", "nope"}, {"nope", "timeout_ms"}, {"kb", "timeout_ms"}, {"", ""}} {
		if constraint, ok := caps.ConstraintOf(c[0], c[1]); ok || constraint != 0 {
			t.Errorf("%q is constraint %d", c, constraint)
		}
	}
	x := caps.Constraints{}.With(caps.NetTimeoutMS, 7).With(caps.ExecTimeoutMS, 0)
	if got := x.Map(); len(got) != 2 || got["net.timeout_ms"] != 7 || got["exec.timeout_ms"] != 0 {
		t.Errorf("conditions %v", got)
	}
	if got := (caps.Constraints{}).Meet(x); got != x {
		t.Errorf("no condition and %v meet at %v", x.Map(), got.Map())
	}
}

// The tables of tiers, effects, tools and categories, as policies can name them.
func TestTablesOfMetadata(t *testing.T) {
	if got := caps.TierGrants(caps.Pure); !slices.Equal(got, []caps.Grant{{Family: caps.Time, Modes: 1, Scope: "*"}}) {
		t.Errorf("the pure tier is %v", got)
	}
	for method, want := range map[string]caps.EffectSet{
		"GET": caps.IORead, "HEAD": caps.IORead, "OPTIONS": caps.IORead, "POST": caps.IOWrite, "PUT": caps.IOWrite,
		"PATCH": caps.IOWrite, "DELETE": caps.IOWrite, "TRACE": caps.IOWrite,
	} {
		for _, scheme := range []string{"https", "http"} {
			m, _ := caps.NetMode(scheme, method)
			if got := caps.EffectOf(caps.Net, m); got != want {
				t.Errorf("%s over %s does %v", method, scheme, got.Words())
			}
		}
	}
	categories := []string{
		"env", "exec", "file", "mcp", "memory", "model", "multi_agent", "secrets", "session", "time",
		"tools", "web",
	}
	if got := caps.Categories(); !slices.Equal(got, categories) {
		t.Errorf("categories %q", got)
	}
	seen := map[string]bool{}
	for _, tool := range caps.Tools() {
		if seen[tool.Name] || !slices.Contains(categories, tool.Category) ||
			caps.MetadataOf(tool.Family).Category != tool.Category {
			t.Errorf("%+v", tool)
		}
		seen[tool.Name] = true
	}
	for _, name := range []string{"net_http", "kb_get", "path_open", "turn_next", "mcp_call", "exec_run"} {
		if !seen[name] {
			t.Errorf("no tool %s", name)
		}
	}
	for spelling, want := range map[string]bool{
		"web:*": true, "nowhere:*": false, "web:kb_get": false, "web__*": true,
		"nowhere": false, "*": false,
	} {
		if scope, known := caps.ToolScope(spelling); known != want {
			t.Errorf("%s is %q, known %v", spelling, scope, known)
		}
	}
	hidden := narrow(t, set(t, "net:x.org"), &caps.Layer{Deny: []caps.Entry{toolEntry("*")}})
	if d := hidden.Check(caps.Request{Family: caps.Tool, Name: "web:net_http"}); d.Allow || d.Code != caps.ToolHidden {
		t.Errorf("without any tool: %+v", d)
	}
}
