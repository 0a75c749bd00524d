package caps

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func times(s string, n int) string { return strings.Repeat(s, n) }

// What is a name, at each bound of its length and its letters.
func TestNamesAtTheirBounds(t *testing.T) {
	for name, x := range map[string]struct {
		is  func(string) bool
		yes []string
		no  []string
	}{
		"domain": {isDomain, []string{"a", "z", "a0_-", "a9", times("a", 64)}, []string{
			"", "0a", "_a", "-a", "A", "aB",
			"a.b", "a/", times("a", 65),
		}},
		"environment": {
			isEnvName,
			[]string{"A", "!", "~", times("x", 255), "a-b.c"},
			[]string{"", " ", "A B", "A=B", "A*", "A\x7f", "A\x1f", "é", times("x", 256)},
		},
		"plain name": {isPlainName, []string{"a", "A9", "_", "-", ".", "a-b_c.d", times("a", 64)}, []string{
			"", "a b", "a/b",
			"a:b", "a@b", times("a", 65),
		}},
		"secret": {
			isSecretID,
			[]string{"runloop/a/b", "runloop/A.b/c-d"},
			[]string{
				"", "runloop", "runloop/a", "runloop/a/", "runloop//b", "runloop/./b", "runloop/../b", "runloop/a/.",
				"runloop/a/..", "other/a/b", "a/b", "runloop/a b/c", "runloop/a/b/c", "runloop/a/b c",
			},
		},
		"clean path": {
			isCleanPath,
			[]string{"/", "/a", "/a/b", "/...", "/.a", "/..a", "/a b ", "/\x01", "/" + times("a", MaxPath-1)},
			[]string{
				"", "a", "a/b", "//", "/a/", "/a//b", "/.", "/..", "/a/.", "/a/../b", "/a\x00", "/\x00",
				"/" + times("a", MaxPath),
			},
		},
		"program": {isProgram, []string{"/a"}, []string{"/", "", "a"}},
		"model": {isModel, []string{"a", "a:b", "a/b@c+d-e._", times("m", 255)}, []string{
			"", ":a", "a:", "a b",
			times("m", 256),
		}},
		"text": {isText, []string{"", "a", "é", "\u00a0", "~"}, []string{"\x00", "\x1f", "\x7f", "\u0080", "\u009f", "\xff"}},
		"host and port": {
			isHostPort,
			[]string{
				"a:1", "a:65535", "a.b-c.d:443", "1.2.3.4:80", "255.255.255.255:1", "0.0.0.0:1", "[::1]:443",
				"[2001:db8::1]:1", times("a", 63) + ":1", "a1:1", "1a.b1c:1", "9.a:1", times("a.", 126) + "a:1",
			},
			[]string{
				"", ":1", "a", "a:", "a:0", "a:01", "a:65536", "a:99999", "a:100000", "a:1x", "a:+1", "a:-1", "-a:1", "a-:1",
				"a.-b:1", "a-.b:1", "a..b:1", ".a:1", "a.:1", "A:1", "a_b:1",
				"1.2.3:80", "1.2.3.4.5:80", "256.1.1.1:1", "1.2.3.256:1", "01.2.3.4:1", "1.2.3.04:1", "0x7f:1", "a.0x1:1", "a.1:1",
				"127.1:1", "2130706433:1", "1..2.3:1", "1.2.3.:1", "12345.2.3.4:1", "1.2.3.0000:1",
				"[]:1", "[:]:1", "[::1:1", "[::1]", "[::0001]:1", "[::1%lo]:1", "[::ffff:1.2.3.4]:1", "[1.2.3.4]:1", "[x]:1",
				"[0:0:0:0:0:0:0:1]:1",
				times("a", 64) + ":1", times("a.", 126) + "aa:1", times("a.", 127) + "a:1", "é:1",
			},
		},
		"wildcard": {
			isWildcard,
			[]string{"*.a:1", "*.a.b:443"},
			[]string{"", "*", "*.", "a:1", "*a:1", "*.*.a:1", "*.1.2.3.4:1", "*.[::1]:1", "*.a", "*.a:0"},
		},
		"tool": {isTool, []string{"web:net_http", "mcp:a/b"}, []string{"", "web", ":a", "web:", "Web:a", "0:a"}},
	} {
		for _, s := range x.yes {
			if !x.is(s) {
				t.Errorf("%s: %.80q (%d bytes) is refused", name, s, len(s))
			}
		}
		for _, s := range x.no {
			if x.is(s) {
				t.Errorf("%s: %.80q (%d bytes) is taken", name, s, len(s))
			}
		}
	}
}

// A scope of a family is its widest, a pattern of its own kind, or a name.
func TestScopesOfEachShape(t *testing.T) {
	for f, x := range map[Family]struct{ yes, no []string }{
		Net:   {[]string{"*", "a:1", "*.a:1"}, []string{"", "a", "*.1.2.3.4:1", "a:*"}},
		Model: {[]string{"*", "local:echo", "openai:*"}, []string{"", ":*", "a b:*", "a/b:*"}},
		Secrets: {[]string{"*", "runloop/a/b", "runloop/a/b@h:1", "runloop/a/b@*.h:1"}, []string{
			"", "runloop/a@h:1",
			"runloop/a@*.h:1", "runloop/a/b@", "runloop/a/b@h", "runloop/a/b@*.1.2.3.4:1", "runloop/a/b*.h:1",
		}},
		FS:   {[]string{"/", "/a"}, []string{"", "*", "a"}},
		Tool: {[]string{"*", "web:*", "web:net_http", "mcp:a/b"}, []string{"", "web", "web:", ":*", "*:*", "a b:*"}},
	} {
		for _, s := range x.yes {
			if !isScope(f, s) {
				t.Errorf("%s: %q is refused", f, s)
			}
		}
		for _, s := range x.no {
			if isScope(f, s) {
				t.Errorf("%s: %q is taken", f, s)
			}
		}
	}
	if IsName(numUniverses, "x") || IsName(Net, "*") || !IsName(Net, "a:1") {
		t.Error("what is a name of no family, or a pattern")
	}
}

// Hosts and ports as policies write them, at their bounds.
func TestParseHostAtItsBounds(t *testing.T) {
	for in, want := range map[string]string{
		"a:1": "a 1", "a:65535": "a 65535", "a.": "a 0", "[::1]": "::1 0", "[::1]:8": "::1 8", "1.2.3.4": "1.2.3.4 0",
		"EXAMPLE.com": "example.com 0",
		"a:0":         "", "a:00": "", "a:01": "", "a:+1": "", "a:65536": "", "a:": "", "a:1:2": "", "": "", "127.1": "",
		"0x7f.1": "", "a..": "", "[::1]x": "", "[::1]:": "", "[::1]:0": "",
		"[1.2.3.4]": "", "[::1%a]": "", "[::ffff:1.2.3.4]": "", "[::1": "", "[zz]": "", "a\x7f": "", "a b": "", "\xff": "",
		"a/b": "",
	} {
		host, port, err := ParseHost(in)
		if got := fmt.Sprint(host, " ", port); err == nil && got != want || err != nil && want != "" {
			t.Errorf("%q: %s, %v; want %q", in, got, err, want)
		}
	}
	if _, err := WildcardPort("https", "*.[::1]"); err == nil {
		t.Error("a wildcard below an address")
	}
	if s, err := WildcardPort("https", "*.example.org"); err != nil || s != "*.example.org:443" {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := HostPort("ftp", "a"); err == nil {
		t.Error("a scheme without a port")
	}
}

// Paths as policies write them.
func TestCleanPathAtItsBounds(t *testing.T) {
	if p, dotdot, err := CleanPath("/a/../../b//./c/"); p != "/b/c" || !dotdot || err != nil {
		t.Errorf("%q %v %v", p, dotdot, err)
	}
	if _, _, err := CleanPath("/" + times("a", MaxPath-1)); err != nil {
		t.Error(err)
	}
	if _, _, err := CleanPath("/" + times("a", MaxPath)); err == nil {
		t.Error("a path that is too long is taken")
	}
}

// A constraint's value is of its kind, and none that is not there is set.
func TestConstraintsAtTheirBounds(t *testing.T) {
	for _, x := range []struct {
		c        Constraint
		in, want int64
	}{
		{NetAllowRedirects, 7, 1},
		{NetAllowRedirects, -7, 1},
		{NetAllowRedirects, 0, 0},
		{NetMinTLS, -1, math.MaxInt64},
		{NetMinTLS, 0, 0},
		{NetMinTLS, 13, 13},
		{NetTimeoutMS, -1, 0},
		{NetTimeoutMS, 5, 5},
	} {
		if got, ok := (Constraints{}).With(x.c, x.in).Get(x.c); !ok || got != x.want {
			t.Errorf("%v of %d is %d, %v; want %d", x.c, x.in, got, ok, x.want)
		}
	}
	for _, c := range []Constraint{NumConstraints, NumConstraints + 1} {
		if x := (Constraints{}).With(c, 1); x != (Constraints{}) {
			t.Errorf("%d is set", c)
		}
		if _, ok := (Constraints{set: math.MaxUint32}).Get(c); ok {
			t.Errorf("%d is there", c)
		}
		if table, key := c.Key(); table+key != "" || c.Polarity() != AtMost {
			t.Errorf("%d has a key or a polarity", c)
		}
	}
	if !Require.IsSwitch() || !Allow.IsSwitch() || AtMost.IsSwitch() || AtLeast.IsSwitch() {
		t.Error("what is a switch")
	}
}

// What is no member of a list has the words of none.
func TestWhatIsBehindTheLastOfAList(t *testing.T) {
	if NumLimits.String() == (NumLimits-1).String() || Tier(numTiers).String() == Tier(numTiers-1).String() {
		t.Error("the word behind the last is the last's")
	}
	if _, ok := (Limits{}).Get(NumLimits); ok {
		t.Error("a limit that is none is set")
	}
	if AllModes(numUniverses) != 0 || Acts(numUniverses, 0) != true {
		t.Errorf("a family that is none: %v, %v", AllModes(numUniverses), Acts(numUniverses, 0))
	}
	for f, want := range map[Family]string{Net: "http", FS: "fs", Env: Env.String(), NumFamilies: NumFamilies.String()} {
		if got := SourceWord(f); got != want {
			t.Errorf("%d is %q", f, got)
		}
	}
	var s Set
	if s.ScopeID(numUniverses, "x") >= 0 || s.ScopeID(Net, "no port") >= 0 {
		t.Error("a scope that is none has an id")
	}
}

// Each thing that a set says of what is allowed is in its digest.
func TestEachTermIsInTheDigest(t *testing.T) {
	entry := func(s string) Entry {
		g, err := ParseGrant(s)
		if err != nil {
			t.Fatal(err)
		}
		return Entry{Grant: g}
	}
	base := []Entry{entry("fs:read:/a"), entry("kb:read:notes"), entry("network:https:x.example")}
	tool := func(scope string) []Entry { return []Entry{{Grant: Grant{Family: Tool, Modes: 1, Scope: scope}}} }
	lease := func(g string, expires, uses int64) *Layer {
		return &Layer{Leases: []Lease{{Entry: entry(g), Expires: expires, MaxUses: uses}}}
	}
	limited := func(l Limit, v int64) *Layer { return &Layer{Limits: Limits{}.With(l, v)} }
	seen := map[[32]byte]string{}
	for name, layers := range map[string][]*Layer{
		"nothing":            nil,
		"a path":             {{Deny: []Entry{entry("fs:read:/a/b")}}},
		"a longer path":      {{Deny: []Entry{entry("fs:read:/a/bc")}}},
		"another path":       {{Deny: []Entry{entry("fs:read:/a/c")}}},
		"two paths":          {{Deny: []Entry{entry("fs:read:/a/b"), entry("fs:read:/a/c")}}},
		"a tool":             {{Deny: tool("web:net_http")}},
		"another tool":       {{Deny: tool("memory:kb_get")}},
		"all tools":          {{Deny: tool("*")}},
		"tools left":         {{Bounds: []Bound{{Family: Tool, Modes: 1}}, Allow: tool("web:net_http")}},
		"other tools left":   {{Bounds: []Bound{{Family: Tool, Modes: 1}}, Allow: tool("memory:kb_get")}},
		"fuel":               {limited(CPUFuel, 5)},
		"more fuel":          {limited(CPUFuel, 6)},
		"time":               {limited(WallTimeMS, 5)},
		"no fuel":            {limited(CPUFuel, 0)},
		"a constraint":       {{Constraints: Constraints{}.With(NetMinTLS, 13)}},
		"its other value":    {{Constraints: Constraints{}.With(NetMinTLS, 12)}},
		"another constraint": {{Constraints: Constraints{}.With(NetTimeoutMS, 13)}},
		"no redirects":       {{Constraints: Constraints{}.With(NetAllowRedirects, 0)}},
		"a lease":            {lease("fs:read:/a", 5, 6)},
		"its later end":      {lease("fs:read:/a", 6, 6)},
		"its more uses":      {lease("fs:read:/a", 5, 7)},
		"its other scope":    {lease("kb:read:notes", 5, 6)},
	} {
		s, err := Base(base, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			if s, _, err = s.Narrow(l); err != nil {
				t.Fatal(err)
			}
		}
		if other, ok := seen[s.Digest()]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[s.Digest()] = name
	}
}

// A lease is the word of the first layer that says what holds of it.
func TestALeaseIsTheWordOfItsLayer(t *testing.T) {
	entry := func(s string) Entry {
		g, err := ParseGrant(s)
		if err != nil {
			t.Fatal(err)
		}
		return Entry{Grant: g}
	}
	a, b := entry("fs:read:/a"), entry("kb:read:notes")
	for name, x := range map[string]struct {
		layers []*Layer
		want   map[string]int16 // by scope
	}{
		"the first": {
			[]*Layer{{Leases: []Lease{{a, 5, 5}}}, {Leases: []Lease{{a, 9, 9}}}},
			map[string]int16{"/a": 1},
		},
		"the second": {
			[]*Layer{{Leases: []Lease{{a, 9, 9}}}, {Leases: []Lease{{a, 5, 5}}}},
			map[string]int16{"/a": 2},
		},
		"the first with its end": {
			[]*Layer{{Leases: []Lease{{a, 5, 9}}}, {Leases: []Lease{{a, 9, 7}}}},
			map[string]int16{"/a": 1},
		},
		"the first with its uses": {
			[]*Layer{{Leases: []Lease{{a, 9, 7}}}, {Leases: []Lease{{a, 5, 9}}}},
			map[string]int16{"/a": 1},
		},
		"the second with its uses": {[]*Layer{
			{Leases: []Lease{{b, 1, 1}}},
			{Leases: []Lease{{a, 9, 7}}},
			{Leases: []Lease{{a, 10, 7}}},
		}, map[string]int16{"/a": 2, "notes": 1}},
		"another scope": {[]*Layer{{Leases: []Lease{{b, 5, 5}}}, {Leases: []Lease{{a, 5, 5}}}}, map[string]int16{
			"/a":    2,
			"notes": 1,
		}},
	} {
		s, err := Base([]Entry{a, b}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range x.layers {
			if s, _, err = s.Narrow(l); err != nil {
				t.Fatal(err)
			}
		}
		held := s.HeldLeases()
		if len(held) != len(x.want) {
			t.Errorf("%s: %d leases", name, len(held))
		}
		for _, h := range held {
			if h.Layer != x.want[h.Grant.Scope] {
				t.Errorf("%s: %s is the word of layer %d", name, h.Grant.Scope, h.Layer)
			}
		}
	}
}

// Ids that are none answer as none.
func TestIdsThatAreNone(t *testing.T) {
	g, err := ParseGrant("fs:read:/a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Base([]Entry{{Grant: g}}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	last := int32(s.NumScopes(FS) - 1)
	if s.Scope(FS, last) != "/a" || s.Scope(FS, 0) == "" || s.BaseModes(FS, last) == 0 || s.Parent(FS, last) != 0 {
		t.Errorf("control: %q, %q, %v, %d", s.Scope(FS, last), s.Scope(FS, 0), s.BaseModes(FS, last), s.Parent(FS, last))
	}
	for _, id := range []int32{-1, last + 1, last + 2} {
		if s.Scope(FS, id) != "" || s.Parent(FS, id) != -1 || s.BaseModes(FS, id) != 0 || s.Holds(id, FS, Read) {
			t.Errorf("%d: %q, %d, %v, %v", id, s.Scope(FS, id), s.Parent(FS, id), s.BaseModes(FS, id), s.Holds(id, FS, Read))
		}
	}
	if !s.Holds(last, FS, Read) || s.Holds(last, FS, 31) || s.Holds(last, FS, families[FS].modes) {
		t.Error("a mode that is none is held")
	}
	if s.LayerName(0) != "base" || s.LayerName(-1)+s.LayerName(1) != "" {
		t.Errorf("%q, %q, %q", s.LayerName(-1), s.LayerName(0), s.LayerName(1))
	}
	if (Set{}).String() != "∅" || s.String() != "{fs:read:/a}" {
		t.Errorf("%s, %s", Set{}, s)
	}
	hole, _, err := s.Narrow(&Layer{Deny: []Entry{
		{Grant: Grant{FS, 1 << Read, "/a/b"}},
		{Grant: Grant{FS, 1 << Read, "/a/a"}},
	}})
	if err != nil || hole.String() != "{fs:read:/a except fs:read:/a/a fs:read:/a/b}" {
		t.Errorf("%s, %v", hole, err)
	}
	if left, hidden := s.Tools(); left != nil || hidden != nil {
		t.Error("tools are spoken of by none")
	}
}
