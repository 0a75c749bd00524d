package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/gate"
)

// fakeServer answers every tool with what it was asked, or goes wrong.
type fakeServer struct {
	tools   MCPTools
	opened  int
	calls   []string
	openErr error
	callErr error
	before  func() // the answer is given
}

func (f *fakeServer) Server(name string) MCPServer {
	if name != "github" && name != "web" {
		return nil
	}
	return f
}

func (f *fakeServer) Tools(context.Context) (MCPTools, error) {
	tools := f.tools
	if f.opened++; f.opened > 1 {
		tools.Pinned = ""
	}
	return tools, f.openErr
}

func (f *fakeServer) Call(_ context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	f.calls = append(f.calls, tool+" "+string(arguments))
	if f.before != nil {
		f.before()
	}
	return json.RawMessage(`{"content":[]}`), f.callErr
}

func mcpTools(names ...string) (list []MCPTool) {
	for _, n := range names {
		list = append(list, MCPTool{n, "about " + n, json.RawMessage(`{}`)})
	}
	return list
}

// mcpRig is a rig with a server under a policy and layers as operators write
// them.
func mcpRig(t *testing.T, base string, layers ...string) (*rig, *fakeServer) {
	t.Helper()
	r, f := newRig(t), &fakeServer{tools: MCPTools{List: mcpTools("search", "write"), Pinned: "sha256:00"}}
	b, findings := policy.ParseBase("policy.caps", []byte(base), policy.Options{})
	if err := policy.AsError(findings); err != nil {
		t.Fatal(err)
	}
	set, err := caps.Base(b.Entries, b.Limits)
	for i, text := range layers {
		l, findings := policy.ParseLayer("layer", "layer.toml", []byte(text), policy.Options{})
		if err := policy.AsError(findings); err != nil {
			t.Fatal(i, err)
		}
		if err == nil {
			set, _, err = set.Narrow(l.Layer)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	opt := gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1, Floor: policy.BuiltinFloor(policy.Untrusted)}
	if r.gate, err = gate.New(set, r.log, opt); err != nil {
		t.Fatal(err)
	}
	r.host = New(Config{
		Gate: r.gate, Components: Components{KB: r.kb, Masks: r.masks, MCP: f}, Now: func() int64 { return 42 },
		Sources: trusting(t),
		Warn:    func(m string) { r.lines = append(r.lines, m) },
	})
	funcs, err := r.host.Funcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range funcs {
		r.funcs[fn.Name] = fn
	}
	return r, f
}

// decisions are what was recorded, in short.
func (r *rig) decisions() (list []string) {
	for _, d := range r.log.Decisions {
		list = append(list, strings.TrimSpace(d.Tool+" "+d.Target+" "+d.Reason))
	}
	return list
}

const github = "[capabilities]\nmcp = [\"github\"]\nkb_write = [\"notes\"]\nkb_read = [\"notes\"]\n"

func TestAServerIsAskedAndCalled(t *testing.T) {
	r, f := mcpRig(t, github)
	const call = `{"server":"github","tool":"search","arguments":{"q":"x"}}`
	for range 2 {
		if n, text := r.call("mcp_call", call); n != 14 || text != `{"content":[]}` {
			t.Fatalf("%d %s", n, text)
		}
	}
	if f.opened != 2 || !slices.Equal(f.calls, []string{`search {"q":"x"}`, `search {"q":"x"}`}) {
		t.Errorf("%+v", f)
	}
	want := []string{
		"mcp:github/search github/search granted", "github sha256:00 granted",
		"mcp:github/search github/search granted",
	}
	if got := r.decisions(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if d := r.log.Decisions; d[0].Args == nil || *d[0].Args != *d[2].Args || d[0].Cap != "mcp.call" ||
		d[0].Op != "mcp_call" {
		t.Errorf("%+v", d)
	}
	if len(r.lines) != 1 || !strings.Contains(r.lines[0], "known by its 2 tools from now on: sha256:00") {
		t.Errorf("%q", r.lines)
	}
	ends := 0
	for _, e := range r.log.Events {
		if e.Verb == "mcp_call" && e.Status == "ok" {
			ends++
		}
	}
	if ends != 2 {
		t.Errorf("%d ends of calls in %+v", ends, r.log.Events)
	}
}

// Which servers a run may use, and which of their tools it sees, is what all
// layers leave; what is denied wins, a list that is missing restricts nothing,
// and an empty one leaves nothing. Who may not learns nothing by asking: no
// server is started for it.
//
//rlp:holds Y6 Y8 Y13
func TestWhatLayersLeaveOfServers(t *testing.T) {
	allow, deny := "[capabilities]\nmcp = [\"github\"]\n", "[deny]\ncapabilities = [\"mcp:call:github\"]\n"
	for _, c := range []struct {
		name   string
		layers []string
		sees   string // of the tools
		reason string // of search; "" when it is called
	}{
		{"no layer (control)", nil, "search write", ""},
		{"a layer without mcp", []string{"[capabilities]\nnet = []\n"}, "search write", ""},
		{"allowed", []string{allow}, "search write", ""},
		{"another one allowed", []string{"[capabilities]\nmcp = [\"web\"]\n"}, "-", "cap_missing"},
		{"none allowed", []string{"[capabilities]\nmcp = []\n"}, "-", "cap_missing"},
		{"denied", []string{deny}, "-", "cap_missing"},
		{"allowed and denied", []string{allow + deny}, "-", "cap_missing"},
		{"allowed and denied in two layers", []string{allow, deny}, "-", "cap_missing"},
		{"a tool denied", []string{"[deny]\ntools = [\"mcp__github__search\"]\n"}, "write", "tool_hidden"},
		{"the same by its scope", []string{"[deny]\ntools = [\"mcp:github/search\"]\n"}, "write", "tool_hidden"},
		{"another server's denied", []string{"[deny]\ntools = [\"mcp__web__search\"]\n"}, "search write", ""},
		{"the host call denied", []string{"[deny]\ntools = [\"mcp_call\"]\n"}, "-", "tool_hidden"},
		{"all of the category denied", []string{"[deny]\ntools = [\"mcp:*\"]\n"}, "-", "tool_hidden"},
		{"its category hidden", []string{"[visible]\ncategories = [\"file\"]\n"}, "-", "tool_hidden"},
		{"its category visible", []string{"[visible]\ncategories = [\"mcp\"]\n"}, "search write", ""},
		{"one tool allowed", []string{"[tools]\nallow = [\"mcp__github__search\"]\n"}, "search", ""},
		{"no tool allowed", []string{"[tools]\nallow = []\n"}, "-", "tool_hidden"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, f := mcpRig(t, github, c.layers...)
			n, text := r.call("mcp_call", `{"server":"github","tool":"search"}`)
			denied := r.log.Decisions[len(r.log.Decisions)-1]
			if c.reason == "" != (n >= 0) || c.reason == "" != (len(f.calls) == 1) {
				t.Errorf("%d %s, %v", n, text, f.calls)
			}
			if c.reason != "" && (denied.Reason != c.reason || !strings.Contains(text, c.reason) ||
				denied.Target != "github/search" || f.opened > 0) {
				t.Errorf("%+v, %s, opened %d", denied, text, f.opened)
			}
			n, text = r.call("mcp_call", `{"server":"github"}`)
			var got struct{ Tools []MCPTool }
			if n > 0 {
				if err := json.Unmarshal([]byte(text), &got); err != nil {
					t.Fatal(err)
				}
			}
			sees := "-"
			for i, tool := range got.Tools {
				if sees += " " + tool.Name; i == 0 {
					sees = tool.Name
				}
			}
			if sees != c.sees {
				t.Errorf("sees %q, want %q: %s", sees, c.sees, text)
			}
		})
	}
}

// What a server says marks the run before the guest sees it: an answer, a list,
// an error in the server's words. From then on the floor holds. What the host
// says itself marks nothing.
//
//rlp:holds Y28 Y29
func TestWhatAServerSaysMarksTheRun(t *testing.T) {
	for _, c := range []struct {
		name, req, cause string
		err              error
	}{
		{"an answer", `{"server":"github","tool":"search"}`, "mcp:github/search", nil},
		{"a list", `{"server":"github"}`, "mcp:github", nil},
		{"an error of the server's", `{"server":"github","tool":"search"}`, "mcp:github/search", &MCPError{"do as I say"}},
		{
			"an error of the host's", `{"server":"github","tool":"search"}`, "",
			&Fail{Errno: TimedOut, Hint: "no answer in time"},
		},
		{"a tool that there is not", `{"server":"github","tool":"nothing"}`, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, f := mcpRig(t, github)
			if n, _ := r.call("kb_put", "notes", "a", "before"); n < 0 {
				t.Fatalf("control: %d", n)
			}
			f.callErr = c.err
			f.before = func() {
				if cause, ok := r.gate.Tainted(); ok {
					t.Errorf("marked by %s before anything was said", cause)
				}
			}
			_, said := r.call("mcp_call", c.req)
			cause, tainted := r.gate.Tainted()
			if cause != c.cause || tainted != (c.cause != "") {
				t.Errorf("cause %q, want %q", cause, c.cause)
			}
			n, text := r.call("kb_put", "notes", "a", "after")
			if tainted != (n == -int64(Acces)) || tainted && !strings.Contains(text, "untrusted_context") {
				t.Errorf("writing memory: %d %s", n, text)
			}
			if strings.Contains(said, "do as I say") != errors.As(c.err, new(*MCPError)) {
				t.Errorf("the guest reads %s", said)
			}
		})
	}
}

// A server that says something else of its tools than it was pinned with is not
// used, for any of them.
func TestAChangedServerIsRefused(t *testing.T) {
	r, f := mcpRig(t, github)
	f.openErr = ErrServerChanged
	for i, req := range []string{
		`{"server":"github","tool":"search"}`, `{"server":"github"}`,
		`{"server":"github","tool":"new"}`,
	} {
		n, a := r.denial("mcp_call", req)
		if n != -int64(Acces) || a.Reason != "server_changed" || !strings.Contains(a.Hint, "rlp mcp accept github") {
			t.Errorf("%s: %d %+v", req, n, a)
		}
		if d := r.log.Decisions; len(d) != 2*i+2 || d[2*i+1].Reason != "server_changed" || !d[2*i+1].Deny {
			t.Errorf("%s: %q", req, r.decisions())
		}
	}
	if len(f.calls) > 0 {
		t.Errorf("called: %v", f.calls)
	}
	if _, tainted := r.gate.Tainted(); tainted {
		t.Error("nothing was said to the guest")
	}
}

func TestWhatNoServerIsAskedFor(t *testing.T) {
	r, f := mcpRig(t, "[capabilities]\nmcp = [\"github\", \"gone\"]\n")
	for req, want := range map[string]answerJSON{
		`{"server":"gone","tool":"x"}`:         {Error: "notsup", Reason: "unavailable", Hint: "[mcp.servers.gone]"},
		`{"server":"gone"}`:                    {Error: "notsup", Reason: "unavailable", Hint: "[mcp.servers.gone]"},
		`{"server":"github","tool":"nothing"}`: {Error: "acces", Reason: "tool_hidden", Hint: "no such tool"},
		`{"server":"other","tool":"x"}`: {
			Error: "acces", Reason: "server_not_permitted",
			Hint: "policy.caps does not ask for it",
		},
		`{}`:                               {Error: "inval", Reason: "invalid_request", Hint: "server: no name"},
		`{"server":"a b"}`:                 {Error: "inval", Reason: "invalid_request", Hint: "not the name of one"},
		`{"server":7}`:                     {Error: "inval", Reason: "invalid_request", Hint: "server:"},
		`[]`:                               {Error: "inval", Reason: "invalid_request", Hint: "an object"},
		`{"server":"github","tool":"a b"}`: {Error: "inval", Reason: "invalid_request", Hint: "no name of a tool"},
		`{"server":"github","tool":"x","arguments":[]}`: {
			Error: "inval", Reason: "invalid_request",
			Hint: "arguments: an object",
		},
		`{"server":"github","tool":"x","env":{"A":"B"}}`: {
			Error: "inval", Reason: "invalid_request",
			Hint: "env: no key",
		},
		`{"server":"github","tool":"x","command":["/bin/sh"]}`: {
			Error: "inval", Reason: "invalid_request",
			Hint: "command: no key",
		},
		`{"server":"github","tool":"x","url":"http://a.example/"}`: {
			Error: "inval", Reason: "invalid_request",
			Hint: "url: no key",
		},
	} {
		if _, a := r.denial("mcp_call", req); a.Error != want.Error || a.Reason != want.Reason || !strings.Contains(a.Hint,
			want.Hint) {
			t.Errorf("%s: %+v, want %+v", req, a, want)
		}
	}
	if len(f.calls) > 0 {
		t.Errorf("called: %v", f.calls)
	}
}

// A use of a lease is a call, whether or not the server has to be started for it.
func TestALeaseOfAServerCountsCalls(t *testing.T) {
	r, f := mcpRig(t, github, "schema = \"0.2\"\n[leases]\n\"mcp:call:github\" = { max_uses = 2 }\n")
	for i, want := range []string{"", "", "lease_expired"} {
		n, text := r.call("mcp_call", `{"server":"github","tool":"search"}`)
		if (n >= 0) != (want == "") || !strings.Contains(text, want) || len(f.calls) != min(i+1, 2) {
			t.Errorf("%d: %d %s, %v", i, n, text, f.calls)
		}
	}
}
