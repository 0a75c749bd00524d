package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/ident"
	"runloop.dev/rlp/secrets"
)

// plainJSON takes every object, and every result as JSON or as a text.
func plainJSON(text []byte) ([]byte, error) {
	if json.Valid(text) {
		return text, nil
	}
	return json.Marshal(string(text))
}

func grepTool() Tool {
	return Tool{
		ID: "count", Description: "Counts", Program: &ToolProgram{Command: "/usr/bin/grep", Args: []string{"-c", "x"}},
		Needs: []caps.Request{{Family: caps.FS, Mode: caps.Read, Name: "/data"}, {Family: caps.KBRead, Name: "notes"}},
		Input: plainJSON, Result: plainJSON, Tokens: -1, MicroUSD: -1,
	}
}

var grepGrants = []string{"fs:read:/data", "kb:read:notes", "process:exec:/usr/bin/grep"}

// toolRig is a rig whose bundle attaches tool.
func toolRig(t testing.TB, tool Tool, grants ...string) (*rig, *fakeExec) {
	t.Helper()
	r, f := execRig(t, grants...)
	r.host.cfg.Tools = []Tool{tool}
	f.answers = Ended{Stdout: []byte("3\n")}
	return r, f
}

func (r *rig) use(tool, arguments string) (int64, string) {
	r.t.Helper()
	return r.call("mcp_call", fmt.Sprintf(`{"server":"tools","tool":%q,"arguments":%s}`, tool, arguments))
}

type toolDenial struct{ Error, Capability, Reason, Hint, Tool string }

func (r *rig) useDenied(tool, arguments string) (int64, toolDenial) {
	r.t.Helper()
	n, text := r.use(tool, arguments)
	var d toolDenial
	if err := json.Unmarshal([]byte(text), &d); err != nil || n >= 0 {
		r.t.Fatalf("%d %q: %v", n, text, err)
	}
	return n, d
}

// A program gets the arguments on stdin, its fixed arguments and nothing else of
// the guest's; everything that the tool needs is in the records, by its name.
//
//rlp:holds C10 C14 C20
func TestAttachedProgram(t *testing.T) {
	r, f := toolRig(t, grepTool(), grepGrants...)
	n, out := r.use("count", `{"a": 1}`)
	if n < 0 || out != "3\n" && out != `3` {
		t.Fatalf("%d %q", n, out)
	}
	if c := f.ran[0]; c.File != "/usr/bin/grep" || fmt.Sprint(c.Argv) != "[/usr/bin/grep -c x]" ||
		string(c.Stdin) != `{"a": 1}` || len(c.Env) != 0 {
		t.Errorf("ran %+v", c)
	}
	var seen []string
	for _, d := range r.log.Decisions {
		seen = append(seen, d.Tool+" "+d.Op+" "+d.Cap+" "+d.Target+" "+d.Reason)
	}
	want := "count mcp_call fs.read /data granted, count mcp_call kb.read notes granted, count mcp_call exec.spawn " +
		"/usr/bin/grep granted"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("recorded %s", got)
	}
	if e := r.log.Events[0]; e.Verb != "mcp_call" || e.Status != "ok" || e.ResultHash == "" {
		t.Errorf("%+v", e)
	}
	f.answers = Ended{Stdout: []byte("two\nlines")}
	if _, out := r.use("count", `{}`); out != `"two\nlines"` {
		t.Errorf("a text: %q", out)
	}
}

// The first thing that is missing ends the call, whichever it is: the program is
// not started, and the denial names the capability and the tool.
//
//rlp:holds C10 C12 C25
func TestAttachedToolNeedsEverything(t *testing.T) {
	for missing, reason := range map[int]string{0: "cap_missing", 1: "cap_missing", 2: "cap_missing"} {
		var grants []string
		for i, g := range grepGrants {
			if i != missing {
				grants = append(grants, g)
			}
		}
		r, f := toolRig(t, grepTool(), grants...)
		n, d := r.useDenied("count", `{}`)
		if n != -2 || d.Error != "acces" || d.Reason != reason || d.Capability != grepGrants[missing] || d.Tool != "count" {
			t.Errorf("without %s: %d %+v", grepGrants[missing], n, d)
		}
		if len(f.ran) != 0 {
			t.Errorf("without %s it ran", grepGrants[missing])
		}
		last := r.log.Decisions[len(r.log.Decisions)-1]
		asked, err := caps.ParseRequest(grepGrants[missing])
		if err != nil {
			t.Fatal(err)
		}
		// the seed's {capability, tool_name, reason}, with a reason that has a code
		if cap := caps.AuditName(asked[0].Family, asked[0].Mode); last.Cap != cap || last.Reason != reason {
			t.Errorf("without %s: recorded %s, %s", grepGrants[missing], last.Cap, last.Reason)
		}
		if !last.Deny || last.Tool != "count" || len(r.log.Decisions) != missing+1 {
			t.Errorf("recorded %+v", r.log.Decisions)
		}
	}
	r, f := toolRig(t, grepTool(), grepGrants...)
	if n, _ := r.use("count", `{}`); n < 0 || len(f.ran) != 1 {
		t.Error("control: not run with everything")
	}
	// what it would only be asked for later is asked for before anything, arguments included
	for _, later := range []caps.Request{{Family: caps.Env, Name: "LANG"}, {
		Family: caps.Secrets, Mode: caps.Use,
		Name: mailKey,
	}} {
		tool := grepTool()
		tool.Later = []caps.Request{later}
		tool.Input = func([]byte) ([]byte, error) { return nil, errors.New("never right") }
		r, f := toolRig(t, tool, grepGrants...)
		if n, d := r.useDenied("count", `{}`); n != -2 || d.Reason != "cap_missing" || d.Tool != "count" || len(f.ran) != 0 {
			t.Errorf("without %s: %d %+v, ran %d", later, n, d, len(f.ran))
		}
	}
	// A hole in what it needs is not everything, and what is taken during the run is gone.
	hole := &caps.Layer{
		Name: "override:x",
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: "/data/private"}}},
	}
	if err := r.gate.Hold(hole); err != nil {
		t.Fatal(err)
	}
	if _, d := r.useDenied("count", `{}`); d.Reason != "path_not_permitted" || !strings.Contains(d.Hint, "override:x") ||
		len(f.ran) != 1 {
		t.Errorf("with a hole: %+v", d)
	}
}

// Every spelling of a tool's name hides it: in the list, and when it is called.
//
//rlp:holds Y13 Y20
func TestHiddenTool(t *testing.T) {
	for _, spelling := range []string{"count", "tools__count", "tools:count", "tools:*"} {
		r, f := toolRig(t, grepTool(), grepGrants...)
		list := func() string {
			_, out := r.call("mcp_call", `{"server":"tools"}`)
			return out
		}
		if !strings.Contains(list(), `"name":"count","description":"Counts"`) {
			t.Fatalf("control: %s", list())
		}
		scope, _ := caps.ToolScope(spelling)
		if err := r.gate.Hold(&caps.Layer{
			Name: "profile:p",
			Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: scope}}},
		}); err != nil {
			t.Fatal(err)
		}
		if list() != `{"tools":[]}` {
			t.Errorf("%s: %s", spelling, list())
		}
		if n, d := r.useDenied("count", `{}`); n != -2 || d.Reason != "tool_hidden" || len(f.ran) != 0 {
			t.Errorf("%s: %d %+v", spelling, n, d)
		}
	}
}

// What is no request for a tool is refused before anything is asked for.
func TestAttachedToolRefusals(t *testing.T) {
	tool := grepTool()
	tool.Input = func(text []byte) ([]byte, error) {
		if !strings.Contains(string(text), `"to"`) {
			return nil, errors.New("to: is missing")
		}
		return text, nil
	}
	r, f := toolRig(t, tool, grepGrants...)
	for _, c := range []struct {
		tool, arguments string
		errno           int64
		says            string
	}{
		{"count", `{}`, -28, "arguments: to: is missing"},
		{"other", `{"to":1}`, -44, "no such tool"},
		{"Count", `{"to":1}`, -44, "no such tool"},
	} {
		if n, d := r.useDenied(c.tool, c.arguments); n != c.errno || !strings.Contains(d.Hint, c.says) {
			t.Errorf("%+v: %d %+v", c, n, d)
		}
		if d := r.log.Decisions[len(r.log.Decisions)-1]; !d.Deny || d.Reason != "invalid_request" {
			t.Errorf("%+v: recorded %+v", c, d)
		}
	}
	if len(f.ran) != 0 {
		t.Error("it ran")
	}
	if n, _ := r.use("count", `{"to":1}`); n < 0 {
		t.Error("control")
	}
	// who may not call it learns nothing of what it takes
	r, _ = toolRig(t, tool, grepGrants[1:]...)
	if _, d := r.useDenied("count", `{}`); d.Reason != "cap_missing" {
		t.Errorf("%+v", d)
	}
}

func TestAttachedProgramFails(t *testing.T) {
	r, f := toolRig(t, grepTool(), grepGrants...)
	for _, c := range []struct {
		ended Ended
		errno int64
		says  string
	}{
		{Ended{ExitCode: 2, Stderr: []byte("grep: no\n")}, -29, "the tool ended with exit code 2: grep: no"},
		{Ended{TimedOut: true, ExitCode: 137}, -73, "did not end in time"},
		{Ended{StdoutCut: true, Stdout: []byte(strings.Repeat("x", 100))}, -1, "more than a guest is given"},
	} {
		f.answers = c.ended
		if n, d := r.useDenied("count", `{}`); n != c.errno || d.Hint != c.says && !strings.Contains(d.Hint, c.says) {
			t.Errorf("%+v: %d %+v", c.ended, n, d)
		}
		if e := r.log.Events[len(r.log.Events)-1]; e.Status != "error" || strings.Contains(e.ErrorSummary, "grep: no") {
			t.Errorf("recorded %+v", e)
		}
	}
}

// A program of a tool gets the files that the tool asks for, and no others of
// the run's.
func TestToolGetsItsOwnFiles(t *testing.T) {
	tool := grepTool()
	tool.Files = &caps.Layer{
		Name: "tool:count", Bounds: []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}},
		Allow: []caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: 1, Scope: "/data"}}},
	}
	r, f := toolRig(t, tool, append(grepGrants, "fs:read:/home/me", "fs:write:/data")...)
	read := func(name string, m caps.Mode) bool {
		return f.ran[len(f.ran)-1].Holds.Check(caps.Request{Family: caps.FS, Mode: m, Name: name}).Allow
	}
	if n, _ := r.use("count", `{}`); n < 0 || !read("/data/a", caps.Read) || read("/home/me/a", caps.Read) ||
		read("/data/a", caps.Write) {
		t.Errorf("the program holds %v", f.ran[0].Holds)
	}
	if r.call(execRunName, `{"argv":["/bin/grep"]}`, ""); !read("/home/me/a", caps.Read) {
		t.Error("control: exec_run holds less")
	}
}

// A tool's budget is what it says it took, and never less tokens than its words.
//
//rlp:holds A59
func TestToolBudget(t *testing.T) {
	for name, c := range map[string]struct {
		tokens, usd int64
		out         string
		calls       int
	}{
		"none at all": {0, -1, "{}", 0},
		// 1 + 5 each; the second call passes 10 after it began
		"by its words":      {10, -1, `"` + strings.Repeat("x", 18) + `"`, 2},
		"by its own count":  {100, -1, `{"usage":{"tokens_in":30,"tokens_out":30}}`, 2},
		"by its own cost":   {-1, 1000, `{"usage":{"usd":0.0006}}`, 2},
		"nothing negative":  {80, 1000, `{"usage":{"usd":-5,"tokens":-1000}}`, 8},
		"no bound":          {-1, -1, `{"usage":{"usd":1000000,"tokens":1000000000}}`, 9},
		"no usd of nothing": {-1, 0, "{}", 0},
	} {
		tool := grepTool()
		tool.Tokens, tool.MicroUSD = c.tokens, c.usd
		r, f := toolRig(t, tool, grepGrants...)
		f.answers = Ended{Stdout: []byte(c.out)}
		for range 9 {
			n, text := r.use("count", `{}`)
			if n >= 0 {
				continue
			}
			if d := r.log.Decisions[len(r.log.Decisions)-1]; n != -19 || d.Reason != "budget_exhausted" || d.Tool != "count" ||
				!strings.Contains(text, "the tool's own budget") {
				t.Errorf("%s: %d %s, recorded %+v", name, n, text, d)
			}
		}
		if len(f.ran) != c.calls {
			t.Errorf("%s: %d calls, want %d", name, len(f.ran), c.calls)
		}
	}
	r, f := toolRig(t, grepTool(), grepGrants...) // the run's own limits hold as for exec_run
	r.host.budget.Bound(caps.Limits{}.With(caps.ExecSpawns, 1))
	r.use("count", `{}`)
	if n, d := r.useDenied("count", `{}`); n != -19 || !strings.Contains(d.Hint, "limits.exec_spawns") || len(f.ran) != 1 {
		t.Errorf("%d %+v", n, d)
	}
}

// webTool is a tool that posts with a secret in a header.
func webTool() Tool {
	return Tool{
		ID: "send", Request: &ToolRequest{
			Method: "POST", URL: "https://api.example.com/send?v=1",
			Headers: []ToolField{{"authorization", []ToolPart{{Text: "Bearer "}, {Secret: mailKey}}}},
		},
		Needs: []caps.Request{{Family: caps.Secrets, Mode: caps.Get, Name: mailKey}},
		Input: plainJSON, Result: plainJSON, Tokens: -1, MicroUSD: -1,
	}
}

const webPolicy = "schema = \"0.2\"\n[capabilities]\nnet = [\"api.example.com\", \"other.example\"]\nsecrets = [{ id " +
	"= \"" + mailKey + "\", hosts = [\"api.example.com\"] }]\n"

func webRig(t testing.TB, policyText string, tool Tool) (*rig, *world) {
	t.Helper()
	w := apiWorld(t)
	r := netRig(t, w, policyText)
	tenant, err := ident.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	r.host.cfg.Secrets = secrets.NewRun(func() (secrets.Provider, error) {
		return secrets.Open(secrets.Config{Provider: "env", Tenant: tenant, Env: []string{"RLP_SECRET_default_0mail_0key=" +
			mailText}})
	})
	r.host.cfg.Tools = []Tool{tool}
	return r, w
}

// A request goes to its one place with the secret where the tool puts it; the
// guest sees neither the secret nor its handle, even when the server echoes it.
func TestAttachedRequest(t *testing.T) {
	r, w := webRig(t, webPolicy, webTool())
	sent := ""
	w.handler = func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		sent = req.Header.Get("Authorization")
		_ = json.NewEncoder(rw).Encode(map[string]string{
			"auth": req.Header.Get("Authorization"), "body": string(body), "uri": req.Method + " " + req.RequestURI,
			"type": req.Header.Get("Content-Type"),
		})
	}
	n, out := r.use("send", `{"to":"x"}`)
	if n < 0 || strings.Contains(out, mailText) || strings.Contains(out, "rlsec_") ||
		!strings.Contains(out, `"auth":"Bearer `) {
		t.Fatalf("%d %s", n, out)
	}
	for _, want := range []string{`"body":"{\"to\":\"x\"}"`, `"uri":"POST /send?v=1"`, `"type":"application/json"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s has no %s", out, want)
		}
	}
	if sent != "Bearer "+mailText {
		t.Errorf("sent %q", sent)
	}
	for _, d := range r.log.Decisions {
		if d.Tool != "send" || d.Deny {
			t.Errorf("recorded %+v", d)
		}
	}
	get := webTool()
	get.Request.Method = "GET"
	r.host.tools, r.host.cfg.Tools = nil, []Tool{get}
	if n, out := r.use("send", `{"q":"a b","n":[1,2]}`); n < 0 ||
		!strings.Contains(out, `"uri":"GET /send?v=1\u0026n=1\u0026n=2\u0026q=a+b"`) {
		t.Errorf("%d %s", n, out)
	}
	if n, d := r.useDenied("send", `{"q":{"a":1}}`); n != -28 || !strings.Contains(d.Hint, "arguments.q") {
		t.Errorf("%d %+v", n, d)
	}
}

// A tool goes to its own host, whatever the run holds beside it and wherever it
// is sent on; without its secret or its method it goes nowhere.
func TestAttachedRequestIsHeld(t *testing.T) {
	r, w := webRig(t, webPolicy, webTool())
	w.handler = func(rw http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/send" {
			http.Redirect(rw, req, map[string]string{"1": "https://other.example/x", "2": "/here"}[req.URL.Query().Get("v")],
				http.StatusFound)
		}
	}
	if n, d := r.useDenied("send", `{}`); n != -2 || d.Reason != "host_not_permitted" ||
		d.Capability != "network:https:get@other.example" || d.Tool != "send" || len(w.requests()) != 1 {
		t.Errorf("redirected to another host: %d %+v, %v", n, d, w.requests())
	}
	if n, _ := r.get("https://other.example/x"); n < 0 {
		t.Error("control: the agent itself may go there")
	}
	home := webTool()
	home.Request.URL = "https://api.example.com/send?v=2"
	r.host.tools, r.host.cfg.Tools = nil, []Tool{home}
	if n, out := r.use("send", `{}`); n < 0 {
		t.Errorf("control: redirected within the host: %d %s", n, out)
	}
	for name, text := range map[string]string{
		"no secret": "[capabilities]\nnet = [\"api.example.com\"]\n",
		"no method": strings.Replace(webPolicy, `net = ["api.example.com", "other.example"]`,
			`net = { hosts = ["api.example.com"], methods = ["GET"] }`, 1),
		"no host": strings.Replace(webPolicy, `"api.example.com", `, "", 1),
	} {
		r, w := webRig(t, text, webTool())
		if n, d := r.useDenied("send", `{}`); n != -2 || d.Tool != "send" || len(w.requests()) != 0 {
			t.Errorf("%s: %d %+v, %v", name, n, d, w.requests())
		}
		if _, out := r.call("mcp_call", `{"server":"tools"}`); out != `{"tools":[]}` {
			t.Errorf("%s: listed %s", name, out)
		}
	}
	r, w = webRig(t, webPolicy, webTool())
	w.handler = func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, strings.Repeat(" ", MaxToolResult+1))
	}
	if n, d := r.useDenied("send", `{}`); n != -1 || !strings.Contains(d.Hint, "at most 4 MiB") {
		t.Errorf("%d %+v", n, d)
	}
	w.handler = func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "out of paper", http.StatusTeapot) }
	if n, d := r.useDenied("send", `{}`); n != -29 || !strings.Contains(d.Hint, "status 418: out of paper") {
		t.Errorf("%d %+v", n, d)
	}
}

// What a tool's server says marks the run as any answer does; what its program
// prints does not. From then on the floor holds for tools too.
//
//rlp:holds Y28 Y29
func TestToolsMarkTheRun(t *testing.T) {
	r, w := webRig(t, webPolicy, webTool())
	r.host.cfg.Sources = Sources{}
	w.handler = func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, `"do as I say"`) }
	if n, _ := r.use("send", `{}`); n < 0 || r.host.taintedBy() != "http:https://api.example.com/send" {
		t.Errorf("%d, marked by %q", n, r.host.taintedBy())
	}
	local, f := toolRig(t, grepTool(), grepGrants...)
	local.host.cfg.Sources = Sources{}
	if n, _ := local.use("count", `{}`); n < 0 || local.host.taintedBy() != "" {
		t.Errorf("a program: %d, marked by %q", n, local.host.taintedBy())
	}
	floor := &caps.Layer{
		Name: "_untrusted", Because: caps.UntrustedContext,
		Deny: []caps.Entry{{Grant: caps.Grant{Family: caps.Exec, Modes: 1, Scope: "*"}}},
	}
	if err := local.gate.Hold(floor); err != nil {
		t.Fatal(err)
	}
	if n, d := local.useDenied("count", `{}`); n != -2 || d.Reason != "untrusted_context" || d.Tool != "count" ||
		len(f.ran) != 1 {
		t.Errorf("under the floor: %d %+v", n, d)
	}
}

// asker answers for a person, and remembers what it was asked.
type asker struct {
	yes   bool
	asked []Question
}

func (a *asker) confirm(_ context.Context, q Question) (bool, string) {
	a.asked = append(a.asked, q)
	return a.yes, "by the test"
}

// A tool that a person has to say yes to runs after a yes and not otherwise, and
// either way there is a record of the decision.
//
//rlp:holds C15
func TestConfirmation(t *testing.T) {
	tool := grepTool()
	tool.Confirm = true
	for name, c := range map[string]struct {
		ask *asker
		ran int
	}{"nobody": {nil, 0}, "no": {&asker{}, 0}, "yes": {&asker{yes: true}, 1}} {
		r, f := toolRig(t, tool, grepGrants...)
		if c.ask != nil {
			r.host.cfg.Confirm = c.ask.confirm
		}
		n, text := r.use("count", `{"a":1}`)
		last := r.log.Decisions[len(r.log.Decisions)-1]
		if len(f.ran) != c.ran || last.Cap != "exec.spawn" || last.Deny != (c.ran == 0) ||
			last.Reason != map[int]string{0: "not_confirmed", 1: "granted"}[c.ran] {
			t.Errorf("%s: ran %d, %d %s, recorded %+v", name, len(f.ran), n, text, last)
		}
		if c.ran == 0 && (n != -2 || !strings.Contains(text, `"reason":"not_confirmed"`)) {
			t.Errorf("%s: %d %s", name, n, text)
		}
		if c.ran == 1 && r.log.Events[0].ErrorSummary != "confirmed by the test" {
			t.Errorf("%s: %+v", name, r.log.Events[0])
		}
		if c.ask != nil && (len(c.ask.asked) != 1 || c.ask.asked[0] != Question{
			"count", "Counts", "/usr/bin/grep -c x",
			`{"a":1}`,
		}) {
			t.Errorf("%s: asked %+v", name, c.ask.asked)
		}
	}
	// nobody is asked about what is refused anyway
	ask := &asker{yes: true}
	r, _ := toolRig(t, tool, grepGrants[:2]...)
	r.host.cfg.Confirm = ask.confirm
	if _, d := r.useDenied("count", `{}`); d.Reason != "cap_missing" || len(ask.asked) != 0 {
		t.Errorf("%+v, asked %v", d, ask.asked)
	}
}

// A guest does not get its way by asking often.
func TestAPersonIsNotWornDown(t *testing.T) {
	tool := grepTool()
	tool.Confirm = true
	ask := &asker{}
	r, f := toolRig(t, tool, grepGrants...)
	r.host.cfg.Confirm = ask.confirm
	for i := range 20 {
		r.use("count", fmt.Sprintf(`{"a":%d}`, i/2))
	}
	if len(ask.asked) != maxNoes || len(f.ran) != 0 {
		t.Errorf("asked %d times", len(ask.asked))
	}
	many, all := &asker{}, []Tool(nil)
	for i := range 30 {
		tool.ID = fmt.Sprintf("t%d", i)
		all = append(all, tool)
	}
	r, _ = toolRig(t, tool, grepGrants...)
	r.host.cfg.Confirm, r.host.cfg.Tools = many.confirm, all
	for i := range all {
		r.use(all[i].ID, `{}`)
	}
	if len(many.asked) != maxAllNoes {
		t.Errorf("many tools asked %d times", len(many.asked))
	}
}

// With confirm_external_actions, whatever changes something outside is asked
// for, by whichever call, and reading is not.
func TestConfirmExternal(t *testing.T) {
	ask := &asker{yes: true}
	r, f := toolRig(t, grepTool(), grepGrants...)
	r.host.cfg.Confirm, r.host.cfg.ConfirmExternal = ask.confirm, true
	r.use("count", `{}`)
	r.call(execRunName, `{"argv":["/bin/grep","y"]}`, "in")
	if len(ask.asked) != 2 || ask.asked[1].Tool != "exec_run" || ask.asked[1].Target != "/bin/grep y" ||
		ask.asked[1].Arguments != "in" || len(f.ran) != 2 {
		t.Errorf("asked %+v", ask.asked)
	}
	w := apiWorld(t)
	n := netRig(t, w, apiPolicy)
	no := &asker{}
	n.host.cfg.Confirm, n.host.cfg.ConfirmExternal = no.confirm, true
	if code, _ := n.get("https://api.example.com/"); code < 0 || len(no.asked) != 0 {
		t.Errorf("reading: %d, asked %v", code, no.asked)
	}
	if code, d := n.denial("net_http", `{"method":"POST","url":"https://api.example.com/x?q=1"}`, "body"); code != -2 ||
		d.Reason != "not_confirmed" || len(w.requests()) != 1 {
		t.Errorf("writing: %d %+v", code, d)
	}
	if q := no.asked[0]; q.Target != "POST https://api.example.com/x?q=1" || q.Arguments != "body" {
		t.Errorf("asked %+v", q)
	}
	// a redirect that still writes is asked for as well
	w.handler = func(rw http.ResponseWriter, req *http.Request) {
		if req.Host == "api.example.com" {
			http.Redirect(rw, req, "https://other.example/y", http.StatusTemporaryRedirect)
		}
	}
	yes := &asker{yes: true}
	n.host.cfg.Confirm = yes.confirm
	if code, _ := n.http(map[string]any{"method": "POST", "url": "https://api.example.com/x"}, "b"); code < 0 ||
		len(yes.asked) != 2 || !strings.Contains(yes.asked[1].Target, "other.example") {
		t.Errorf("%d, asked %+v", code, yes.asked)
	}
}

// Whatever is granted, taken and hidden: a tool runs when all that it needs is
// held and no call else, it is listed exactly then, and the first that is missing
// is the one denial.
//
//rlp:holds C10 C16
func TestToolRunsWithEverythingOrNotAtAll(t *testing.T) {
	ask := func(text string) caps.Request {
		list, err := caps.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		return list[0]
	}
	words := []string{
		"fs:read:/data", "fs:write:/data/out", "fs:read:/", "kb:read:notes", "kb:write:drafts",
		"time:read:*", "env:read:LANG", "model:use:local:echo", "process:exec:/usr/bin/grep",
	}
	type fatal interface {
		Fatal(args ...any)
		Fatalf(format string, args ...any)
	}
	grantOf := func(t fatal, word string) caps.Entry {
		g, err := caps.ParseGrant(word)
		if err != nil {
			t.Fatal(err)
		}
		return caps.Entry{Grant: g}
	}
	compare := func(rt fatal, grants, needs, denied []string, hidden bool) (want bool) {
		grants = append(slices.Clone(grants), "process:exec:/usr/bin/dash")
		tool := grepTool()
		tool.Needs, tool.Later = nil, nil
		for _, w := range needs {
			tool.Needs = append(tool.Needs, ask(w))
		}
		r, f := toolRig(t, tool, grants...)
		layer := &caps.Layer{Name: "layer"}
		for _, w := range denied {
			layer.Deny = append(layer.Deny, grantOf(rt, w))
		}
		if hidden {
			layer.Deny = append(layer.Deny, caps.Entry{Grant: caps.Grant{Family: caps.Tool, Modes: 1, Scope: "tools:count"}})
		}
		if err := r.gate.Hold(layer); err != nil {
			rt.Fatal(err)
		}
		set, missing := r.gate.Set(), ""
		for _, need := range append(slices.Clone(tool.Needs), tool.Own()) {
			if !set.Covers(caps.Grant{Family: need.Family, Modes: caps.Modes(need.Mode), Scope: need.Name}) && missing == "" {
				missing = need.String()
			}
		}
		visible := set.Check(caps.Request{Family: caps.Tool, Name: "tools:count"}).Allow
		want = missing == "" && visible
		_, list := r.call("mcp_call", `{"server":"tools"}`)
		n, text := r.use("count", `{}`)
		if (n >= 0) != want || len(f.ran) != map[bool]int{true: 1}[want] || strings.Contains(list, `"count"`) != want {
			rt.Fatalf("needs %v of %v without %v: %d %s, listed %s", tool.Needs, grants, layer.Deny, n, text, list)
		}
		if want {
			return true
		}
		denials := 0
		for _, d := range r.log.Decisions {
			if d.Deny {
				denials++
			}
		}
		if denials != 1 || missing != "" && visible && !strings.Contains(text, fmt.Sprintf(`"capability":%q`, missing)) {
			rt.Fatalf("%d denials, %s; missing %s", denials, text, missing)
		}
		return false
	}
	if !compare(t, words, words, nil, false) { // the first of the controls: both ends are compared, whatever is drawn
		t.Error("it does not run with everything")
	}
	for i, w := range words {
		if compare(t, words, words, []string{w}, false) || compare(t, slices.Delete(slices.Clone(words), i, i+1), []string{w},
			nil, false) != (w == "fs:read:/data") {
			t.Errorf("it runs without %s", w)
		}
	}
	if compare(t, words, words, nil, true) {
		t.Error("it runs where it is hidden")
	}
	rapid.Check(t, func(rt *rapid.T) {
		some := rapid.SliceOfDistinct(rapid.SampledFrom(words), rapid.ID[string])
		compare(rt, some.Draw(rt, "grants"), some.Draw(rt, "needs"), rapid.SliceOfN(rapid.SampledFrom(words), 0, 1).Draw(rt,
			"denied"), rapid.IntRange(0, 7).Draw(rt, "hidden") == 0)
	})
}

// BenchmarkAttachedTool is what a call of a tool costs beside the program: three
// needs, each admitted and recorded, in memory.
func BenchmarkAttachedTool(b *testing.B) {
	r, f := toolRig(b, grepTool(), grepGrants...)
	for b.Loop() {
		if n, text := r.use("count", `{"word":"x"}`); n < 0 {
			b.Fatal(text)
		}
		f.ran, r.log.Decisions, r.log.Events = f.ran[:0], r.log.Decisions[:0], r.log.Events[:0]
	}
}
