package caps

import (
	"slices"
	"strings"
	"testing"
)

// Hosts that some resolvers take for addresses, and what is nearly a port or an
// address, are no names of hosts.
func TestHostsThatAreNearlyOnes(t *testing.T) {
	for s, want := range map[string]bool{
		"a:443": true, "a.1b:1": true, "a.0y:1": true, "[::]:1": true, "1.2.3.4:65535": true,
		"443": false, "65535": false, "a:18446744073709551617": false, "a:00001": false, "[:1": false, "]:1": false,
		"[]]:1":                        false,
		"18446744073709551617.2.3.4:1": false, "1.2a3.4:1": false, "1.2.3.4x.5:1": false, "1.2.3.4.:1": false,
		"a.0x:1": false, "a.0x1y:1": false,
	} {
		if got := IsHostPort(s); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
	for s, want := range map[string]bool{
		"0.0.0.0": true, "255.255.255.255": true, "10.20.30.40": true,
		"": false, "1": false, "1.2.3": false, "1.2.3.": false, ".1.2.3": false, "1..2.3": false, "1.2.3.4.5": false,
		"1.2.3.4.": false, "1.2.3.4x": false, "1a2a3a4": false, "1.2.3a4": false,
		"256.1.1.1": false, "1.1.1.256": false, "01.1.1.1": false, "1.1.1.00": false, "1000.1.1.1": false,
		"4294967297.1.1.1": false, "18446744073709551617.1.1.1": false,
	} {
		if got := isIPv4(s); got != want {
			t.Errorf("%q as an IPv4 address: %v", s, got)
		}
	}
	// A name that becomes one which is none itself would be two hosts.
	for _, s := range []string{"a\u2135", "1\u2137:80"} {
		if host, _, err := ParseHost(s); err == nil {
			t.Errorf("%q is %q", s, host)
		}
	}
	for s, want := range map[string]string{
		"127.1": "in disguise", "0x7f000001": "in disguise", "a..b": "no host name",
		"-a": "no host name", ".": "no host name",
	} {
		if _, _, err := ParseHost(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// A path is asked for as it stands: what it begins with counts, and its length.
func TestPathsOfRequests(t *testing.T) {
	long := "/a/" + strings.Repeat("b", MaxPath-3)
	s, err := Base([]Entry{{Grant: Grant{FS, 1 << Read, "/a"}}}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Code{
		"/a": Granted, "/a/b": Granted, long: Granted, "/a/...": Granted, "/a/..b": Granted,
		"xa": InvalidRequest, "xa/b": InvalidRequest, "\x00a": InvalidRequest, long + "b": InvalidRequest,
		"/a/..": InvalidRequest, "/a/.": InvalidRequest, "/a/": InvalidRequest, "*": InvalidRequest,
		"/a\x00": InvalidRequest, "/b": PathNotPermitted, "/": PathNotPermitted,
	} {
		if d := s.Check(Request{Family: FS, Name: path}); d.Code != want || d.Allow != (want == Granted) {
			t.Errorf("%.20q (%d bytes): %v", path, len(path), d.Code)
		}
	}
}

// What stands for one grant stands for no other, and a deny for all that it can be
// called.
func TestWhatACapabilityStandsFor(t *testing.T) {
	words := func(list []Grant) string {
		var out []string
		for _, g := range list {
			out = append(out, g.String())
		}
		return strings.Join(out, " ")
	}
	for s, want := range map[string]string{
		"tool:call:mcp:mcp_call":    "tool:call:mcp:mcp_call tool:call:tools:*",
		"tool:call:web:net_http":    "tool:call:web:net_http",
		"tool:call:mcp:tools/opt":   "tool:call:tools:opt",
		"mcp:call:tools":            "tool:call:tools:* mcp:call:tools",
		"mcp:call:other":            "mcp:call:other",
		"kb:read:tools":             "kb:read:tools",
		"env:read:tools":            "env:read:tools",
		"model:use:mcp:tools/x":     "model:use:mcp:tools/x",
		"agents:launch:tools":       "agents:launch:tools",
		"net:x.org":                 "network:https:x.org network:tcp:x.org:443 network:http:x.org network:tcp:x.org:80",
		"net:x.org:8443":            "network:https:x.org:8443 network:http:x.org:8443 network:tcp:x.org:8443",
		"net:*:x.org":               "network:https:x.org network:tcp:x.org:443 network:http:x.org network:tcp:x.org:80",
		"network:*:get@x.org":       "network:https:get@x.org network:http:get@x.org",
		"network:read:https://x/":   "network:https:get,head@x",
		"network:read:x":            "network:https:get,head@x network:tcp:x:443 network:http:get,head@x network:tcp:x:80",
		"network:tcp:x:5432":        "network:tcp:x:5432",
		"network:tcp:*.x.org:5432":  "network:tcp:*.x.org:5432",
		"network:tcp:*":             "network:tcp:*",
		"network:tcp:x":             "",
		"secrets:*:runloop/a/b@x":   "secrets:read:runloop/a/b@x",
		"secrets:use:runloop/a/b":   "secrets:use:runloop/a/b",
		"secrets:get:runloop/a/b@*": "",
	} {
		list, err := ParseDeny(s)
		if (err == nil) != (want != "") || words(list) != want {
			t.Errorf("deny %s: %q, %v; want %q", s, words(list), err, want)
		}
	}
	for s, want := range map[string]string{
		"tool:call:mcp:mcp_call": "tool:call:mcp:mcp_call", "mcp:call:tools": "mcp:call:tools",
		"net:x.org": "network:https:x.org", "model:use:mcp:tools/x": "model:use:mcp:tools/x",
		"network:read:https://x/a/b": "network:https:get,head@x",
		"network:write:http://x":     "network:http:post,put,patch,delete,options,other@x",
	} {
		list, err := ParseRequest(s)
		var grants []Grant
		for _, r := range list {
			if n := len(grants); n > 0 && grants[n-1].Scope == r.Name && grants[n-1].Family == r.Family {
				grants[n-1].Modes |= 1 << r.Mode
				continue
			}
			grants = append(grants, Grant{r.Family, 1 << r.Mode, r.Name})
		}
		if err != nil || words(grants) != want {
			t.Errorf("request %s: %q, %v", s, words(grants), err)
		}
	}
	for s, want := range map[string]string{
		"net": "write domain:action:scope", "fs:read": "write domain:action:scope", "net:": "the host is empty",
		"net:a b":       "write only host",
		"network:ftp:x": "network has no action \"ftp\": write https, http, tcp, read or write", "network:tcp:x.org": "has no port",
		"network:read:ftp://*":  "neither https nor http",
		"network:https:get:x@h": "\"get:x\" is no method", "network:https:get:x": "write get@x", "network:https:get:80": "",
		"network:https:get,zap@x": "\"zap\" is no method",
		"nope:read:x":             "write one of fs, network, time, kb, secrets, model, process, env, mcp, agents, tool",
		"fs:call:/a":              "write delete, read or write", "kb:call:notes": "write read or write",
		"time:call:*":              "write read",
		"secrets:read:runloop/a@x": "runloop/<scope>/<name>", "kb:read:*_raw": "no scope", "tool:call:web": "no scope",
		"network:https:x/": "write only host", "network:read:https://x/a": "leave out the path",
	} {
		g, err := ParseGrant(s)
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) || g != (Grant{}) {
			t.Errorf("grant %s: %v, %v; want %q", s, g, err, want)
		}
	}
	for _, s := range []string{"net:a b", "network:*:zap@x", "fs:*:a", "net", "*:*:?"} {
		if list, err := ParseDeny(s); err == nil || list != nil {
			t.Errorf("deny %s: %v", s, words(list))
		}
	}
	if _, err := ParseDeny("network:*:zap@x"); err == nil || !strings.Contains(err.Error(), "\"zap\" is no method") {
		t.Errorf("a method that is none: %v", err)
	}
	if list, err := ParseRequest("fs:read:/a\x01b"); err == nil {
		t.Errorf("control characters: %v", list)
	}
}

// Methods are words of HTTP: letters, digits, "-" and "_", told apart by case.
func TestMethodsOfOtherKinds(t *testing.T) {
	other, _ := NetMode("https", "OTHER")
	for _, method := range []string{"M-SEARCH", "A_B", "V2", "Get", "OTHERS", strings.Repeat("A", 32)} {
		if m, ok := NetMode("https", method); !ok || m != other {
			t.Errorf("%s is mode %d, %v", method, m, ok)
		}
	}
	for _, method := range []string{"", "A.B", "A B", "GET\r\n", strings.Repeat("A", 33)} {
		if m, ok := NetMode("https", method); ok {
			t.Errorf("%q is mode %d", method, m)
		}
	}
	for scope, want := range map[string]string{
		"get:443": "network:https:get:443", "*": "network:https:*",
		"x.org:443": "network:https:x.org", "x.org:80": "network:https:x.org:80",
	} {
		if got := (Grant{Net, HTTPS, scope}).String(); got != want {
			t.Errorf("%s: %s", scope, got)
		}
	}
	if got := (Grant{Net, 1, "*"}).String(); got != "network:https:get" {
		t.Errorf("one method everywhere: %s", got)
	}
	if got := (Grant{Net, 3, "*"}).String(); got != "network:https:get,head@*" {
		t.Errorf("two methods everywhere: %s", got)
	}
}

// Places, grants and effects are said with what is missing left out.
func TestWordsOfPlacesGrantsAndEffects(t *testing.T) {
	for p, want := range map[Pos]string{
		{}: "", {File: "f"}: "f", {Line: 3}: "3", {Line: 3, Column: 1}: "3:1", {File: "f", Line: 3}: "f:3",
		{File: "f", Line: 3, Column: 9}: "f:3:9", {File: "f", Column: 9}: "f",
	} {
		if got := p.String(); got != want {
			t.Errorf("%+v is %q", p, got)
		}
	}
	for g, want := range map[Grant]string{
		{Family: numUniverses, Modes: 1, Scope: "*"}: "", {Env, 1, "A@b:443"}: "env:read:A@b:443",
		{Secrets, 3, "runloop/a/b@x:443"}: "secrets:read:runloop/a/b@x",
		{Secrets, 3, "runloop/a/b"}:       "secrets:read:runloop/a/b", {FS, 7, "/"}: "fs:read:* fs:write:* fs:delete:*",
	} {
		if got := g.String(); got != want {
			t.Errorf("%+v is %q, want %q", g, got, want)
		}
	}
	for e, want := range map[EffectSet]string{
		0: "", NoEffect: "pure", IORead | IOWrite: "io-read io-write",
		Control | Meta: "control meta", allEffects - 1: "pure io-read io-write control meta",
	} {
		if got := strings.Join(e.Words(), " "); got != want {
			t.Errorf("%d: %q", e, got)
		}
	}
	_, known, _ := AuditWord("nothing")
	if !slices.IsSorted(known) || len(slices.Compact(slices.Clone(known))) != len(known) ||
		!slices.Contains(known, "fs.write") {
		t.Errorf("words for records %q", known)
	}
	for spelling, want := range map[string]string{
		"web__a__b": "web:a__b", "tools__a__b": "tools:a__b", "mcp__a__b": "mcp:a/b", "mcp__a__b__c": "mcp:a/b__c",
		"mcp:tools/opt": "tools:opt", "web:a/b": "web:a/b", "mcp:a": "mcp:a",
	} {
		scope, known := ToolScope(spelling)
		if open := strings.HasPrefix(want, "tools:") || strings.HasPrefix(want, "mcp:a/"); scope != want || known != open {
			t.Errorf("%s is %q, %v", spelling, scope, known)
		}
	}
}

// Sources are of one mode, and only a domain's name says raw.
func TestSourcesAreReadAsWritten(t *testing.T) {
	for _, s := range []string{"fs:/a_raw", "exec:/bin/x_raw", "exec:*", "kb:notes", "kb:*", "fs:/", "input"} {
		source, err := ParseSource(s)
		if err != nil || source.String() != s || s != SourceInput && source.Grant.Modes != 1 {
			t.Errorf("%s is %s, %+v, %v", s, source, source.Grant, err)
		}
	}
	for _, s := range []string{"kb:notes_raw", "fs:*", "fs:a", "net:x", "", "inputs", "exec:x"} {
		if source, err := ParseSource(s); err == nil || source != (Source{}) {
			t.Errorf("%q is %v", s, source)
		}
	}
}

// A universe is full at its last scope and node, and scopes count once.
func TestUniverseAtItsBounds(t *testing.T) {
	st := newState()
	st.named = MaxScopes
	if st.full() {
		t.Error("as many scopes as there may be are too many")
	}
	if st.named++; !st.full() {
		t.Error("one scope more is not too many")
	}
	st = newState()
	others := -len(st.trees[FS].nodes)
	for _, tree := range st.trees {
		others += len(tree.nodes)
	}
	st.trees[FS].nodes = make([]node, maxNodes-others)
	if st.full() {
		t.Error("as many nodes as there may be are too many")
	}
	st.trees[FS].nodes = append(st.trees[FS].nodes, node{})
	if !st.full() {
		t.Error("one node more is not too many")
	}
	twice := []Entry{{Grant: Grant{FS, 1, "/a/b"}}, {Grant: Grant{FS, 2, "/a/b"}}, {Grant: Grant{FS, 1, "/a"}}}
	st = newState()
	if err := st.fill(twice); err != nil || st.named != 2 {
		t.Errorf("%d scopes, %v", st.named, err)
	}
}
