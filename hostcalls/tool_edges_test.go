package hostcalls

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/web"
)

// A tool that no policy can grant is refused, with what is wrong with it; of one
// that can, it is known what it asks for.
func TestToolsThatCanNeverBeCalled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *ToolRequest)
		says   string // "": it can be called
		own    string
	}{
		"as it is":   {func(*ToolRequest) {}, "", "api.example.com:443"},
		"its URL":    {func(r *ToolRequest) { r.URL = "ftp://a.example/" }, "url: ", ""},
		"its method": {func(r *ToolRequest) { r.Method = "G ET" }, `method: "G ET" cannot be sent`, ""},
		"a header":   {func(r *ToolRequest) { r.Headers = []ToolField{{Name: "host"}} }, "headers.host: ", ""},
		"a header's end": {
			func(r *ToolRequest) { r.Headers = []ToolField{{"X-A", []ToolPart{{Text: "b\r\nc"}}}} },
			"headers.X-A: ", "",
		},
	} {
		tool := webTool()
		own := *tool.Request
		tool.Request = &own
		c.change(&own)
		if err := tool.Check(); (err == nil) != (c.says == "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if got := tool.Own(); got.Family != caps.Net || got.Name != c.own {
			t.Errorf("%s: asks for %+v", name, got)
		}
	}
	tool := grepTool()
	tool.Program.Env = []ToolField{{Name: "LANG"}}
	if err := tool.Check(); err != nil {
		t.Errorf("a variable that steers nothing: %v", err)
	}
	web := Tool{Request: &ToolRequest{Method: "GET", URL: "https://a.example/", Timeout: time.Second}}
	if r, err := web.request("a=b"); err != nil || r.URL.String() != "https://a.example/?a=b" || r.timeout != time.Second {
		t.Errorf("%+v, %v", r, err)
	}
	web.Request.URL, web.Request.Timeout = "https://a.example/?x=y", 0
	if r, err := web.request("a=b"); err != nil || r.URL.String() != "https://a.example/?x=y&a=b" ||
		r.timeout != defaultTimeout {
		t.Errorf("%+v, %v", r, err)
	}
}

// Each refusal is one record, in which a secret that is not granted has no name;
// what is asked for later is recorded as the tool's as well.
func TestRecordsOfRefusedTools(t *testing.T) {
	secret := caps.Request{Family: caps.Secrets, Mode: caps.Get, Name: mailKey}
	lang := caps.Request{Family: caps.Env, Name: "LANG"}
	for name, c := range map[string]struct {
		needs, later []caps.Request
		grants       []string
		target       string
	}{
		"a need": {
			[]caps.Request{{Family: caps.FS, Mode: caps.Read, Name: "/data"}},
			nil,
			[]string{"process:exec:/usr/bin/grep"},
			"/data",
		},
		"a secret": {[]caps.Request{secret}, nil, []string{"process:exec:/usr/bin/grep"}, hiddenSecret},
		"a secret that is there": {
			[]caps.Request{secret, {Family: caps.KBRead, Name: "notes"}},
			nil,
			[]string{"process:exec:/usr/bin/grep", "secrets:read:" + mailKey},
			"notes",
		},
		"a variable, later":       {nil, []caps.Request{lang}, []string{"process:exec:/usr/bin/grep"}, "LANG"},
		"a secret, later":         {nil, []caps.Request{secret}, []string{"process:exec:/usr/bin/grep"}, hiddenSecret},
		"the program, later held": {nil, []caps.Request{lang}, []string{"env:read:LANG"}, "/usr/bin/grep"},
	} {
		tool := grepTool()
		tool.Needs, tool.Later = c.needs, c.later
		r, f := toolRig(t, tool, c.grants...)
		n, d := r.useDenied("count", `{}`)
		last := r.log.Decisions[len(r.log.Decisions)-1]
		if n != -2 || d.Tool != "count" || !last.Deny || last.Target != c.target || last.Tool != "count" || len(f.ran) != 0 {
			t.Errorf("%s: %d %+v, recorded %+v", name, n, d, last)
		}
		if slices.Contains(c.grants, "secrets:read:"+mailKey) && r.log.Decisions[0].Target != mailKey {
			t.Errorf("%s: recorded %+v", name, r.log.Decisions[0])
		}
	}
	tool := grepTool()
	own := *tool.Program
	tool.Program, own.Env, own.Timeout = &own, []ToolField{{Name: "LANG", Parts: []ToolPart{{Text: "C"}}}}, 7*time.Second
	tool.Later = []caps.Request{lang}
	r, f := toolRig(t, tool, append(grepGrants, "env:read:LANG")...)
	if n, list := r.call("mcp_call", `{"server":"tools"}`); n < 0 || !strings.Contains(list, "count") {
		t.Errorf("listed %s", list)
	}
	n, out := r.use("count", `{}`)
	last := r.log.Decisions[len(r.log.Decisions)-1]
	if n < 0 || len(f.ran) != 1 || f.ran[0].Timeout != 7*time.Second || last.Target != "LANG" || last.Tool != "count" {
		t.Errorf("%d %s, ran %+v, recorded %+v", n, out, f.ran, last)
	}
	before := len(r.log.Decisions)
	if n, d := r.useDenied("other", `{}`); n != -44 || len(r.log.Decisions) != before+1 {
		t.Errorf("%d %+v, recorded %+v", n, d, r.log.Decisions[before:])
	}
	if n, d := r.denial("mcp_call", `{"server":"tools","tool":"a b"}`); n != -28 || !strings.Contains(d.Hint,
		"no name of a tool") {
		t.Errorf("%d %+v", n, d)
	}
	// wrong arguments of what may not be started start nothing
	tool.Input = func([]byte) ([]byte, error) { return nil, errors.New("never right") }
	r, f = toolRig(t, tool, append(grepGrants[:2:2], "env:read:LANG")...)
	if n, d := r.useDenied("count", `{}`); n != -2 || d.Reason == "invalid_request" || len(f.ran) != 0 {
		t.Errorf("%d %+v, ran %v", n, d, f.ran)
	}
	// a run without calls has no list of tools either
	r, _ = toolRig(t, grepTool(), grepGrants...)
	r.gate.Bound(0)
	if n, d := r.denial("mcp_call", `{"server":"tools"}`); n != -19 || !strings.Contains(d.Hint, "hostcalls_max") {
		t.Errorf("%d %+v", n, d)
	}
}

// A tool whose secret is not there, or cannot be read, is not called, whether it
// is a program or a request.
func TestToolsWithoutTheirSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		vault  Secrets
		reason string
		warned int
	}{
		"no vault":       {nil, "unavailable", 0},
		"no such secret": {oneSecret{"rlsec_abc", "x", "runloop/other/key"}, "secret_unknown", 0},
		"no way to it":   {brokenVault{oneSecret{"rlsec_abc", "hunter2", mailKey}}, "unavailable", 1},
		"control: a key": {oneSecret{"rlsec_abc", "hunter2", mailKey}, "", 0},
	} {
		var warned []string
		web, w := webRig(t, webPolicy, webTool())
		tool := grepTool()
		own := *tool.Program
		tool.Program, own.Env, tool.Needs = &own, []ToolField{{Name: "TOKEN", Parts: []ToolPart{{Secret: mailKey}}}}, nil
		program, f := toolRig(t, tool, "process:exec:/usr/bin/grep", "env:read:TOKEN", "secrets:read:"+mailKey)
		for _, r := range []*rig{web, program} {
			warned = nil
			r.host.cfg.Secrets, r.host.cfg.Warn = c.vault, func(m string) { warned = append(warned, m) }
			id := map[bool]string{true: "send", false: "count"}[r == web]
			n, out := r.use(id, `{}`)
			if (n >= 0) != (c.reason == "") || !strings.Contains(out, c.reason) || len(warned) != c.warned {
				t.Errorf("%s: %s: %d %s, warned of %q", name, id, n, out, warned)
			}
		}
		if ran := len(f.ran) + len(w.requests()); (ran == 2) != (c.reason == "") || ran == 1 {
			t.Errorf("%s: %d were called", name, ran)
		}
	}
}

// A request of a tool says what its body is, or says nothing where there is none;
// arguments that are no query are refused before anything is sent.
func TestToolRequestsAreWhole(t *testing.T) {
	var got http.Header
	var uri, body string
	handler := func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, uri, body = r.Header.Clone(), r.RequestURI, string(b)
		_, _ = io.WriteString(rw, "{}")
	}
	typed := ToolField{"content-type", []ToolPart{{Text: "text/x-own"}}}
	for name, c := range map[string]struct {
		method          string
		headers         []ToolField
		args            string
		uri, body, kind string
		refused         string
	}{
		"a body":             {"POST", nil, `{"a":1}`, "/send?v=1", `{"a":1}`, "application/json", ""},
		"a body of its type": {"POST", []ToolField{typed}, `{"a":1}`, "/send?v=1", `{"a":1}`, "text/x-own", ""},
		"a query":            {"GET", nil, `{"a":[1,"b c"],"d":true}`, "/send?v=1&a=1&a=b+c&d=true", "", "", ""},
		"a head":             {"HEAD", nil, `{"a":"b"}`, "/send?v=1&a=b", "", "", ""},
		"no query":           {"GET", nil, `{"a":{"b":1}}`, "", "", "", "arguments.a: goes into a query"},
		"a query in a query": {"GET", nil, `{"a":[[1]]}`, "", "", "", "arguments.a[0]: goes into a query"},
		"a long query": {
			"GET", nil, `{"a":"` + strings.Repeat("x", web.MaxURL) + `"}`, "", "", "",
			"at most 8192 bytes",
		},
	} {
		tool := webTool()
		own := *tool.Request
		tool.Request, own.Method, own.Headers, tool.Needs = &own, c.method, c.headers, nil
		r, w := webRig(t, webPolicy, tool)
		w.handler, got = handler, nil
		n, out := r.use("send", c.args)
		if c.refused != "" {
			if last := r.log.Decisions[len(r.log.Decisions)-1]; n != -28 || !strings.Contains(out, c.refused) ||
				len(w.requests()) != 0 || len(r.log.Decisions) != 1 || last.Reason != "invalid_request" || last.Tool != "send" {
				t.Errorf("%s: %d %s, recorded %+v", name, n, out, r.log.Decisions)
			}
			continue
		}
		if n < 0 && c.method != "HEAD" || uri != c.uri || body != c.body || got.Get("Content-Type") != c.kind {
			t.Errorf("%s: %d %s, sent %s %q %v", name, n, out, uri, body, got)
		}
	}
	if _, err := queryOf([]byte(`[]`)); err == nil || err.Error() != "arguments: an object is wanted (line 1, column 1)" {
		t.Errorf("a list: %v", err)
	}
}

// What a tool's server says counts for its budget, also when it says no or nothing
// at all, and is at most so long; only success is a result.
func TestWhatAToolsServerSays(t *testing.T) {
	long := `"` + strings.Repeat("x", MaxToolResult-2) + `"`
	for name, c := range map[string]struct {
		status int
		body   string
		says   string // "": a result
	}{
		"success":          {200, `{"usage":{"tokens":50}}`, ""},
		"strange success":  {299, `{"usage":{"tokens":50}}`, ""},
		"a redirect":       {300, `{"usage":{"tokens":50}}`, "status 300: {"},
		"a no":             {500, `{"usage":{"tokens":50}}`, "status 500: {"},
		"before":           {199, `{"usage":{"tokens":50}}`, "status 199: {"},
		"a no and no more": {500, strings.Repeat(" ", 400), `status 500"`},
		"as long as may":   {200, long, ""},
		"longer":           {200, long + " ", "at most 4 MiB"},
	} {
		tool := webTool()
		tool.Tokens = 40
		r, _ := webRig(t, webPolicy, tool)
		r.mem = make([]byte, 8<<20)
		r.host.cfg.HTTP = &answering{status: c.status, length: -1, body: strings.NewReader(c.body)}
		n, out := r.use("send", `{}`)
		if (n >= 0) != (c.says == "") || !strings.Contains(out, c.says) {
			t.Errorf("%s: %d %.200s", name, n, out)
		}
		if n, d := r.useDenied("send", `{}`); n != -19 || !strings.Contains(d.Hint, "the tool's own budget") {
			t.Errorf("%s, again: %d %+v", name, n, d)
		}
	}
	tool := webTool()
	tool.Tokens = 10
	r, w := webRig(t, webPolicy, tool)
	w.handler = func(rw http.ResponseWriter, _ *http.Request) {
		if c, _, err := rw.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
	}
	args := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 20))
	for i, want := range []int64{-29, -19} { // it may have arrived
		if n, out := r.use("send", args); n != want {
			t.Errorf("%d: %d %s", i, n, out)
		}
	}
}
