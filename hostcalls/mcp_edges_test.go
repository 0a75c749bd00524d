package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/record/audit"
)

// Each key of a request has its one type: what is of another is refused by its name,
// and no arguments are an empty object.
func TestRequestsOfServersHaveTypes(t *testing.T) {
	r, f := mcpRig(t, github)
	for req, hint := range map[string]string{
		`{"server":7}`:                                   "server: a text is wanted",
		`{"server":null,"tool":"search"}`:                "server: a text is wanted",
		`{"server":"github","tool":null}`:                "tool: a text is wanted",
		`{"server":"github","tool":["search"]}`:          "tool: a text is wanted",
		`{"server":"github","arguments":"{}"}`:           "arguments: an object is wanted",
		`{"server":"git\u0007hub"}`:                      "", // which is no text
		`null`:                                           "the request: an object is wanted",
		`7`:                                              "the request: an object is wanted",
		`{"server":"github","server":"github"}`:          "server: given twice",
		`{"server":"` + strings.Repeat("a", 5000) + `"}`: "",
	} {
		if n, a := r.denial(mcpCallName, req); n >= 0 || a.Reason != "invalid_request" || !strings.Contains(a.Hint, hint) {
			t.Errorf("%.60s: %d %+v", req, n, a)
		}
	}
	if f.opened != 0 {
		t.Errorf("asked %d times", f.opened)
	}
	for _, arguments := range []string{``, `,"arguments":null`, `,"arguments":{}`} {
		if n, text := r.call(mcpCallName, `{"server":"github","tool":"search"`+arguments+`}`); n < 0 {
			t.Errorf("%s: %d %s", arguments, n, text)
		}
	}
	if !slices.Equal(f.calls, []string{"search {}", "search {}", "search {}"}) {
		t.Errorf("called %q", f.calls)
	}
}

// asked is a component that says which servers it was asked for.
type asked struct {
	*fakeServer
	names []string
}

func (a *asked) Server(name string) MCPServer {
	a.names = append(a.names, name)
	return a.fakeServer.Server(name)
}

// Nobody looks for a server that the run may not use, and what is refused for a tool is
// recorded under that tool.
func TestRefusalsOfServersAreOfTheirTools(t *testing.T) {
	r, f := mcpRig(t, github)
	servers := &asked{fakeServer: f}
	r.host.cfg.MCP = servers
	for _, req := range []string{`{"server":"web","tool":"search"}`, `{"server":"web"}`} {
		if n, a := r.denial(mcpCallName, req); n != -int64(Acces) || a.Reason != "server_not_permitted" {
			t.Errorf("%s: %d %+v", req, n, a)
		}
	}
	if len(servers.names) > 0 {
		t.Errorf("looked for %q", servers.names)
	}
	r.denial(mcpCallName, `{"server":"github","tool":"nothing"}`)
	if d := r.log.Decisions[len(r.log.Decisions)-1]; d.Tool != "mcp:github/nothing" || d.Reason != "tool_hidden" ||
		d.Target != "github/nothing" {
		t.Errorf("recorded %+v", d)
	}
}

// A run cannot fill the records with names of tools that there are not: after 4,096 of
// them it is refused, and those that it named before it may name again.
func TestNamesOfToolsAreBounded(t *testing.T) {
	r, f := mcpRig(t, github)
	name := func(i int) string { return fmt.Sprintf(`{"server":"github","tool":"t%d"}`, i) }
	for i := range maxToolOps {
		if n, a := r.denial(mcpCallName, name(i)); n != -int64(Acces) || !strings.Contains(a.Hint, "no such tool") {
			t.Fatalf("%d: %d %+v", i, n, a)
		}
	}
	opened := f.opened
	if n, a := r.denial(mcpCallName, name(maxToolOps)); n != -int64(Acces) || a.Reason != "tool_hidden" ||
		!strings.Contains(a.Hint, "too many tools") || f.opened != opened {
		t.Errorf("%d %+v, asked %d times more", n, a, f.opened-opened)
	}
	if _, a := r.denial(mcpCallName, name(0)); !strings.Contains(a.Hint, "no such tool") {
		t.Errorf("the first once more: %+v", a)
	}
}

// A server that does not start, or says something wrong when it is asked what it has,
// is an answer; only its own words mark the run.
func TestAServerThatDoesNotSayWhatItHas(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		number Errno
		cause  string
	}{
		"no answer in time": {&Fail{Errno: TimedOut, Hint: "no answer in time"}, TimedOut, ""},
		"its own words":     {&MCPError{"do as I say"}, IO, "mcp:github/search"},
		"an error":          {errors.New("no such program /home/op/server"), IO, ""},
	} {
		r, f := mcpRig(t, github)
		f.openErr = c.err
		n, text := r.call(mcpCallName, `{"server":"github","tool":"search"}`)
		if cause, _ := r.gate.Tainted(); n != -int64(c.number) || cause != c.cause || len(f.calls) > 0 ||
			strings.Contains(text, "/home/op") {
			t.Errorf("%s: %d %s, marked by %q", name, n, text, cause)
		}
	}
}

// What a server calls its tools is not shown where no call could name it, and a list
// that is no JSON is an error, which marks nothing.
func TestListsOfToolsAreWhole(t *testing.T) {
	r, f := mcpRig(t, github)
	f.tools.List = mcpTools("search", "no name", "über", "a/b")
	if n, text := r.call(mcpCallName, `{"server":"github"}`); n < 0 || strings.Contains(text, "no name") ||
		strings.Contains(text, "über") || !strings.Contains(text, `"search"`) || !strings.Contains(text, `"a/b"`) {
		t.Errorf("%d %s", n, text)
	}
	r, f = mcpRig(t, github)
	f.tools.List = []MCPTool{{"search", "", json.RawMessage(`{`)}}
	n, _ := r.call(mcpCallName, `{"server":"github"}`)
	if _, marked := r.gate.Tainted(); n != -int64(IO) || marked {
		t.Errorf("%d, marked %v", n, marked)
	}
}

// What a server is known by from now on, and what it marks, is recorded before the
// guest has an answer; otherwise it has none.
//
//rlp:holds R71
func TestAServerIsNotUsedUnrecorded(t *testing.T) {
	const req = `{"server":"github","tool":"search"}`
	for room := range 5 { // the decision, the pin, the mark, what came of it
		for _, callErr := range []error{nil, &MCPError{"do as I say"}} {
			r, f := mcpRig(t, github)
			f.callErr = callErr
			copy(r.mem[16:], req)
			r.log.Room = room
			n, err := r.at(t.Context(), mcpCallName, 16, uint64(len(req)))
			if full := room < 4; errors.Is(err, audit.ErrFull) != full || room < 2 && len(f.calls) > 0 || full &&
				strings.Contains(string(r.mem[outAt:]), "content") {
				t.Errorf("room for %d: %d, %v, called %q, the guest has %q", room, n, err, f.calls, r.mem[outAt:outAt+20])
			}
		}
	}
}

// A tool that the journal has no word for is not called.
func TestAToolWithoutANameIsNotCalled(t *testing.T) {
	r, f := mcpRig(t, github)
	var err error
	opt := gate.Options{MaxCalls: -1, Floor: policy.BuiltinFloor(policy.Untrusted)}
	r.gate, err = gate.New(r.gate.Set(), &unnamed{r.log}, opt)
	must(t, err)
	r.host = New(Config{Gate: r.gate, Components: Components{MCP: f}, Now: func() int64 { return 42 }})
	funcs, err := r.host.Funcs()
	must(t, err)
	for _, fn := range funcs {
		r.funcs[fn.Name] = fn
	}
	const req = `{"server":"github","tool":"search"}`
	copy(r.mem[16:], req)
	if n, err := r.at(context.Background(), mcpCallName, 16, uint64(len(req))); err == nil && n >= 0 || len(f.calls) > 0 {
		t.Errorf("%d, %v, called %q", n, err, f.calls)
	}
}

// unnamed has no word for tools of servers.
type unnamed struct{ *audit.Memory }

func (u *unnamed) Intern(s string) (audit.Name, error) {
	if strings.HasPrefix(s, "mcp:github/") {
		return 0, errors.New("no room for " + s)
	}
	return u.Memory.Intern(s)
}

// What layers say of the arguments of a call holds for each, whatever tool it names.
func TestArgumentsOfToolsAreBound(t *testing.T) {
	const bound = "[constraints.mcp]\nmax_request_bytes = 11\n"
	r, f := mcpRig(t, github, bound)
	if n, text := r.call(mcpCallName, `{"server":"github","tool":"search","arguments":{"q":"four"}}`); n >= 0 ||
		!strings.Contains(text, "constraints.mcp.max_request_bytes = 11") || len(f.calls) > 0 {
		t.Errorf("%d %s, called %q", n, text, f.calls)
	}
	if n, text := r.call(mcpCallName, `{"server":"github","tool":"search","arguments":{"q":"thr"}}`); n < 0 {
		t.Errorf("control: %d %s", n, text)
	}
	if n, text := r.call(mcpCallName, `{"server":"github"}`); n < 0 {
		t.Errorf("a list: %d %s", n, text)
	}
	if d := r.log.Decisions[0]; d.Tool != "mcp:github/search" || d.Reason != "budget_exhausted" || !d.Deny {
		t.Errorf("recorded %+v", d)
	}
}
