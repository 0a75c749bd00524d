package policy_test

import (
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

// Without the call by which tools are called there is none of them, whoever
// brought it; without a server's tools the bundle's own stay.
//
//rlp:holds Y20
func TestWithoutTheCallThereAreNoTools(t *testing.T) {
	for denied, want := range map[string]map[string]bool{ // as a tool, and as a capability
		"mcp_call":      {"mcp:mcp_call": false, "tools:send_mail": false, "web:net_http": true},
		"mcp__mcp_call": {"mcp:mcp_call": false, "tools:send_mail": false},
		"mcp:*":         {"mcp:mcp_call": false, "mcp:github/search": false, "tools:send_mail": true},
		"send_mail":     {"mcp:mcp_call": true, "tools:send_mail": false, "tools:other": true},

		// as a tool of the server by whose name it is called
		"mcp:tools/send_mail":   {"tools:send_mail": false, "tools:other": true, "mcp:github/send_mail": true},
		"mcp__tools__send_mail": {"tools:send_mail": false, "tools:other": true, "mcp:github/send_mail": true},
		"tools__send_mail":      {"tools:send_mail": false, "tools:other": true},
	} {
		scope, _ := caps.ToolScope(denied)
		for _, line := range []string{"tools = [\"" + denied + "\"]", "capabilities = [\"tool:call:" + scope + "\"]"} {
			o, findings := policy.ParseLayer("override:x.toml", "x.toml", []byte("[deny]\n"+line+"\n"), policy.Options{})
			if o == nil {
				t.Fatalf("%s: %v", line, findings)
			}
			base, err := caps.Base(nil, caps.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			set, _, err := base.Narrow(o.Layer)
			if err != nil {
				t.Fatal(err)
			}
			for scope, left := range want {
				if got := set.Check(caps.Request{Family: caps.Tool, Name: scope}).Allow; got != left {
					t.Errorf("%s, %s: %v", line, scope, got)
				}
			}
		}
	}
}

// The server by whose name the bundle's tools are called is all of them.
func TestTheServerOfAttachedToolsIsAllOfThem(t *testing.T) {
	for denied, want := range map[string]map[string]bool{
		"mcp:call:tools":            {"tools:send_mail": false, "mcp:github/search": true, "mcp:mcp_call": true},
		"mcp:*:tools":               {"tools:send_mail": false, "mcp:github/search": true},
		"mcp:call:github":           {"tools:send_mail": true},
		"tool:call:mcp:tools/other": {"tools:send_mail": true, "tools:other": false},
	} {
		list, err := caps.ParseDeny(denied)
		if err != nil {
			t.Fatal(err)
		}
		l := &caps.Layer{Name: "x"}
		for _, g := range list {
			l.Deny = append(l.Deny, caps.Entry{Grant: g})
		}
		base, err := caps.Base(nil, caps.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		set, _ := narrow(t, base, l)
		for scope, left := range want {
			if got := set.Check(caps.Request{Family: caps.Tool, Name: scope}).Allow; got != left {
				t.Errorf("%s, %s: %v", denied, scope, got)
			}
		}
	}
}

// A tool that there is not is said to match nothing, with the name that it has
// here where another system's is known.
func TestAToolThatThereIsNotMatchesNothing(t *testing.T) {
	for name, hint := range map[string]string{
		"hooks_add": `"turn_next"`, "exec__sandboxed_exec": `"exec_run"`, "sandboxed_exec": `"exec_run"`,
		"memory_operation__remember_shared": `"kb_put"`,
		"multi_agent__delegate":             `"agent_launch"`, "session_spawn": `"agent_launch"`,
		"file__delete": `"path_unlink_file"`, "delete_file": `"path_unlink_file"`,
		"memory_operation__forget": `"kb_delete"`, "exec_runn": "exec_run", "exec:exec_runn": "", "mcp:server_install": "",
	} {
		_, findings := policy.ParseLayer("o", "o.toml", []byte("[deny]\ntools = [\n  \""+name+"\",\n]\n"), policy.Options{})
		if len(findings) != 1 || findings[0].Code != policy.CodeUnknownTool || findings[0].Line != 3 ||
			findings[0].Column != 3 ||
			!strings.Contains(findings[0].Message, "it matches nothing") || !strings.Contains(findings[0].Hint, hint) {
			t.Errorf("%s: %v", name, findings)
		}
	}
	if _, findings := policy.ParseProfile("_untrusted", "_untrusted.toml", []byte(policy.FloorText("_untrusted")),
		policy.Options{}); len(findings) > 0 {
		t.Errorf("a copy of a built-in floor: %v", findings)
	}
}
