package run

import (
	"slices"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
)

func toolSet(t *testing.T, grants ...string) caps.Set {
	t.Helper()
	var entries []caps.Entry
	for _, text := range grants {
		g, err := caps.ParseGrant(text)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, caps.Entry{Grant: g})
	}
	s, err := caps.Base(entries, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A tool is attached when everything that it needs is held, and otherwise says
// what is missing and which layer took it. It is of the highest tier of anything
// that it needs, and one that needs what nothing is known of is of the highest.
//
//rlp:holds A43 A44 C10
func TestAttachments(t *testing.T) {
	post, _ := caps.NetMode("https", "POST")
	send := hostcalls.Tool{
		ID: "send", Request: &hostcalls.ToolRequest{Method: "POST", URL: "https://api.example.com/x"},
		Needs: []caps.Request{{Family: caps.KBRead, Name: "notes"}},
	}
	run := hostcalls.Tool{
		ID: "run", Confirm: true, Program: &hostcalls.ToolProgram{Command: "/usr/bin/tool"},
		Later: []caps.Request{{Family: caps.Env, Name: "LANG"}},
	}
	odd := hostcalls.Tool{ID: "odd", Request: send.Request, Needs: []caps.Request{{
		Family: caps.NumFamilies + 1,
		Name:   "x",
	}}}
	set := toolSet(t, "net:api.example.com", "kb:read:notes", "process:exec:/usr/bin/tool", "env:read:LANG")
	list := Attachments(set, []hostcalls.Tool{send, run, odd})
	if a := list[0]; !a.Attached || a.Tier != "network" || !slices.Equal(a.Effects, []string{"io-read", "io-write"}) ||
		!a.NetworkFacing || a.SandboxSafe || a.RequiresConfirmation ||
		!slices.Equal(a.Needs, []string{"kb:read:notes", "network:https:post@api.example.com"}) {
		t.Errorf("%+v", a)
	}
	if a := list[1]; !a.Attached || a.Tier != "operator_sensitive" || !a.Destructive || a.NetworkFacing ||
		!a.RequiresConfirmation {
		t.Errorf("%+v", a)
	}
	if a := list[2]; a.Attached || a.Tier != "operator_sensitive" || a.SandboxSafe || !slices.Contains(a.Effects,
		"control") {
		t.Errorf("what nothing is known of: %+v", a)
	}
	// The same need twice is one, and what a tool needs last lowers nothing.
	program, host := caps.Request{Family: caps.Exec, Name: "/usr/bin/tool"}, caps.Request{
		Family: caps.Net, Mode: post,
		Name: "api.example.com:443",
	}
	both := hostcalls.Tool{ID: "both", Program: run.Program, Needs: []caps.Request{
		program, host, program, send.Needs[0],
		send.Needs[0],
	}, Later: run.Later}
	web := hostcalls.Tool{ID: "web", Request: send.Request, Needs: []caps.Request{program, send.Needs[0]}}
	if a := Attachments(set, []hostcalls.Tool{web})[0]; !a.Destructive || !a.NetworkFacing ||
		a.Tier != "operator_sensitive" {
		t.Errorf("%+v", a)
	}
	nothing := Attachments(toolSet(t, "env:read:LANG"), []hostcalls.Tool{both})[0]
	if a := Attachments(set, []hostcalls.Tool{both})[0]; !a.Destructive || !a.NetworkFacing || a.SandboxSafe ||
		a.Tier != "operator_sensitive" || len(a.Needs) != len(slices.Compact(slices.Sorted(slices.Values(a.Needs)))) {
		t.Errorf("%+v", a)
	}
	if nothing.Attached || nothing.Reason != "cap_missing" || nothing.Layer != "" {
		t.Errorf("what the bundle does not ask for: %+v", nothing)
	}
	for name, c := range map[string]struct {
		deny                      caps.Grant
		tool                      int
		reason, capability, layer string
	}{
		"a need": {
			caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "notes"},
			0, "cap_missing", "kb:read:notes",
			"override:x",
		},
		"its own method": {
			caps.Grant{Family: caps.Net, Modes: caps.Modes(post), Scope: "*"},
			0, "method_not_permitted",
			"network:https:post@api.example.com", "override:x",
		},
		"a variable": {
			caps.Grant{Family: caps.Env, Modes: 1, Scope: "LANG"},
			1, "cap_missing", "env:read:LANG",
			"override:x",
		},
		"its name": {
			caps.Grant{Family: caps.Tool, Modes: 1, Scope: "tools:run"},
			1, "tool_hidden",
			"tool:call:tools:run", "override:x",
		},
		"all of its family": {
			caps.TierGrants(caps.OperatorSensitive)[1], 1, "cap_missing", "process:exec:/usr/bin/tool",
			"override:x",
		},
	} {
		left, _, err := set.Narrow(&caps.Layer{Name: "override:x", Deny: []caps.Entry{{Grant: c.deny}}})
		if err != nil {
			t.Fatal(err)
		}
		a := Attachments(left, []hostcalls.Tool{send, run})[c.tool]
		if a.Attached || a.Reason != c.reason || a.Capability != c.capability || a.Layer != c.layer {
			t.Errorf("without %s (%s): %+v", name, c.deny, a)
		}
		if other := Attachments(left, []hostcalls.Tool{send, run})[1-c.tool]; !other.Attached {
			t.Errorf("without %s: the other tool is gone as well: %+v", name, other)
		}
	}
}
