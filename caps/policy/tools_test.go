package policy_test

import (
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
