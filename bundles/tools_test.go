package bundles

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
)

// one is a document with one tool, whose members end with more.
func one(more string) string {
	return `{"version":1,"tools":[{"id":"look","transport":{"kind":"exec","command":"/usr/bin/grep"},"capabilities":[]` +
		more + `}]}`
}

//rlp:holds C11 C26
func TestParseTools(t *testing.T) {
	const text = `{"version": 1, "tools": [
  {"id": "send_mail", "description": "Sends", "transport": {"kind": "http", "url": "https://API.example.com/send?x=1",
    "headers": {"Authorization": "Bearer {secret:runloop/mail/key}"}, "timeout_ms": 1500},
   "input_schema": {"type": "object", "properties": {"to": {"$ref": "schemas/to.json"}}}, "result_schema": {}, "schema_refs": ["schemas/to.json"],
   "capabilities": ["net:api.example.com", "kb:read:contacts"], "secrets": ["runloop/mail/key"],
   "budget": {"tokens": 1000, "usd": 0.01}, "requires_confirmation": true, "observability": {"tags": ["mail", "v1.2"]}},
  {"id": "grep", "transport": {"kind": "exec", "command": "/usr/bin/grep", "args": ["-c", "x"], "env": {"LANG": "C"}}, "capabilities": []}]}`
	tools, err := ParseTools("tools.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	mail, grep := tools[0], tools[1]
	if h := mail.HTTP; h.Method != "POST" || h.Host != "api.example.com:443" || h.Timeout != 1500*time.Millisecond ||
		fmt.Sprint(h.Headers[0].Secrets) != "[runloop/mail/key]" {
		t.Errorf("%+v", h)
	}
	if mail.Budget != (ToolBudget{1000, 10_000}) || !mail.Confirm || fmt.Sprint(mail.Tags) != "[mail v1.2]" ||
		!strings.Contains(string(mail.Input), `"$ref":"schemas/to.json"`) {
		t.Errorf("%+v", mail)
	}
	if grep.Budget != (ToolBudget{-1, -1}) || grep.Confirm || grep.Pos.Line != 7 ||
		fmt.Sprint(grep.Exec.Args) != "[-c x]" {
		t.Errorf("%+v", grep)
	}
	words := func(list []caps.Entry) string {
		var out []string
		for _, e := range list {
			out = append(out, e.Grant.String())
		}
		return strings.Join(out, " ")
	}
	if got := words(mail.Capabilities); got != "network:https:api.example.com kb:read:contacts" {
		t.Errorf("declared %s", got)
	}
	if got := words(mail.Implied()); got != "secrets:read:runloop/mail/key@api.example.com network:https:post@api.example.com" {
		t.Errorf("implied %s", got)
	}
	if got := words(grep.Implied()); got != "env:read:LANG process:exec:/usr/bin/grep" || len(grep.Capabilities) != 0 {
		t.Errorf("implied %s, declared %v", got, grep.Capabilities)
	}
}

// Whatever is wrong refuses, and says where and what to write.
//
//rlp:holds C11 Y20
func TestToolsAreStrict(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{one(""), ""},
		{`{"tools":[]}`, `the key "version" is missing`},
		{`{"version":2,"tools":[]}`, "1:12: version: there is no version 2 of tools.json (write 1)"},
		{`{"version":"1","tools":[]}`, "version must be an integer, not a string"},
		{`{"version":1,"tools":{}}`, "tools must be an array, not an object"},
		{`{"version":1,"tools":[],"more":1}`, `unknown key "more"`},
		{`{"version":1,"tools":[null]}`, "tools[0]: it must be an object, not null"},
		{one(`,"Capabilities":[]`), `tools[0]: unknown key "Capabilities" (keys are matched to the letter: write "capabilities")`},
		{one(`,"capabilities":["fs:read:/"]`), `given twice, first`},
		{
			strings.Replace(one(""), `,"capabilities":[]`, "", 1),
			`tools[0]: capabilities is missing: a tool that does not say what it needs is not attached (write "capabilities": []`,
		},
		{
			strings.Replace(one(""), `"capabilities":[]`, `"capabilities":null`, 1),
			"tools[0]: capabilities must be an array, not null",
		},
		{
			strings.Replace(one(""), `"capabilities":[]`, `"capabilities":[1]`, 1),
			"tools[0]: capabilities[0] must be a string, not an integer",
		},
		{
			strings.Replace(one(""), `"capabilities":[]`, `"capabilities":["fs:read"]`, 1),
			`tools[0]: capabilities[0]: capability "fs:read": write domain:action:scope`,
		},
		{
			strings.Replace(one(""), `"capabilities":[]`, `"capabilities":["net:x.org","network:https:x.org:443"]`, 1),
			"capabilities[1]: network:https:x.org is there twice",
		},
		{
			strings.Replace(one(""), `"capabilities":[]`, `"capabilities":["fs:read:/a/{b}"]`, 1),
			"capabilities[0]: a param of the manifest stands for a whole path (such as fs:read:{notes})",
		},
		{strings.Replace(one(""), `"capabilities":[]`, `"capabilities":["fs:{b}"]`, 1), "stands for a whole path"},
		{
			strings.Replace(one(""), `"capabilities":[]`, `"capabilities":["fs:eat:{b}"]`, 1),
			`capabilities[0]: capability "fs:eat:/b"`,
		},
		{
			strings.Replace(one(""), `"capabilities":[]`, `"capabilities":["kb:read:{b}"]`, 1),
			`capabilities[0]: capability "kb:read:{b}"`,
		},
		{strings.Replace(one(""), `"look"`, `"a__b"`, 1), `id: "a__b" is not the name of a tool`},
		{strings.Replace(one(""), `"look"`, `"1"`, 1), "is not the name of a tool"},
		{strings.Replace(one(""), `"look"`, `""`, 1), "is not the name of a tool"},
		{strings.Replace(one(""), `"look"`, `"exec_run"`, 1), `id: "exec_run" is the name of a host call`},
		{strings.Replace(one(""), `"look"`, `"mcp_call"`, 1), "is the name of a host call"},
		{strings.Replace(one(""), `"id":"look",`, ``, 1), `the key "id" is missing`},
		{
			strings.Replace(one(""), `]}]}`,
				`]},{"id":"Look","transport":{"kind":"exec","command":"/bin/ls"},"capabilities":[]}]}`, 1),
			`tools[1]: id: there is another tool "Look"`,
		},
		{
			strings.Replace(one(""), `"exec"`, `"ftp"`, 1),
			`tools[0]: transport: kind: there is no transport "ftp" (write "exec" or "http")`,
		},
		{
			strings.Replace(one(""), `/usr/bin/grep`, `grep`, 1),
			`transport: command: "grep" is not the absolute path of a program`,
		},
		{strings.Replace(one(""), `/usr/bin/grep`, `/usr/../bin/grep`, 1), "is not the absolute path of a program"},
		{strings.Replace(one(""), `/usr/bin/grep`, `/usr/bin/grep `, 1), "is not the absolute path of a program"},
		{strings.Replace(one(""), `/usr/bin/grep`, `/usr/bin/gr*p`, 1), "is not the absolute path of a program"},
		{strings.Replace(one(""), `/usr/bin/grep"`, `/usr/bin/grep","shell":true`, 1), `transport: unknown key "shell"`},
		{
			strings.Replace(one(""), `/usr/bin/grep"`, `/usr/bin/grep","args":["{secret:runloop/a/b}"]`, 1),
			"secrets go into env",
		},
		{
			strings.Replace(one(""), `/usr/bin/grep"`, `/usr/bin/grep","env":{"A":"{secret:runloop/a/b}"}`, 1),
			`env.A: "runloop/a/b" is none of the tool's secrets`,
		},
		{
			strings.Replace(one(""), `/usr/bin/grep"`, `/usr/bin/grep","timeout_ms":0`, 1),
			"timeout_ms is not from 1 to 600000",
		},
		{one(`,"budget":{"tokens":-1}`), "budget: tokens is negative"},
		{one(`,"budget":{"tokens":1.5}`), "budget: tokens must be an integer, not a decimal number"},
		{one(`,"budget":{"usd":-0.1}`), "usd is not from 0 to 1e9"},
		{one(`,"secrets":["key"]`), `secrets[0]: the secret id "key" is not of the form`},
		{one(`,"requires_confirmation":"no"`), "requires_confirmation must be a boolean, not a string"},
		{one(`,"input_schema":"object"`), "input_schema must be an object, not a string"},
		{one(`,"schema_refs":["../x.json"]`), "schema_refs[0]"},
		{one(`,"schema_refs":["schemas/x.txt"]`), "schema_refs[0]"},
		{one(`,"observability":{"tags":["a b"]}`), `tags[0]: "a b" is no tag`},
		{one(`,"description":"` + "\u202e" + `x"`), "description contains a character that turns the reading direction"},
		{web(`"url":"ftp://x.org/"`), "url: not an absolute URL of https or http"},
		{web(`"url":"https://u:p@x.org/"`), "has a user, a password or a fragment in it"},
		{web(`"url":"https://x.org/{secret:runloop/a/b}"`), "has the place of a secret in it"},
		{web(`"url":"https://x.org/","method":"get"`), `method: "get" cannot be sent`},
		{web(`"url":"https://x.org/","headers":{"a":"1","A":"2"}`), `headers: "A" is there twice`},
		{web(`"url":"https://x.org/","headers":{"a":["1"]}`), "headers.a must be a string, not an array"},
		{web(`"url":"https://x.org/","command":"/bin/ls"`), `unknown key "command"`},
	} {
		_, err := ParseTools("tools.json", []byte(c.text))
		if c.says == "" {
			if err != nil {
				t.Errorf("control: %s: %v", c.text, err)
			}
			continue
		}
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, ErrInvalid) || e.Line == 0 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s:\n%v, want %q", c.text, err, c.says)
		}
	}
}

func web(members string) string {
	return `{"version":1,"tools":[{"id":"w","transport":{"kind":"http",` + members + `},"capabilities":[]}]}`
}

// What is used is what was hashed: the tools, and each schema they refer to.
func TestToolsOfABundle(t *testing.T) {
	manifest := goodTree()[ManifestName] + "[artifacts.tools]\npath = \"t/tools.json\"\nsha256 = \"%s\"\n"
	make := func(tools string) tree {
		return goodTree().with(ManifestName, fmt.Sprintf(manifest, hexSum(tools))).with("t/tools.json",
			tools).with("schemas/a.json", "{}")
	}
	good := make(one(`,"schema_refs":["schemas/a.json"]`))
	b := mustOpen(t, good.dir(t))
	if len(b.Tools) != 1 || b.Tools[0].ID != "look" || codes(b) != "digest_missing" {
		t.Errorf("%+v %v", b.Tools, b.Findings)
	}
	if other := mustOpen(t, good.with("schemas/a.json", "{} ").dir(t)); other.Digest == b.Digest {
		t.Error("a schema that a tool refers to is no part of the digest")
	}
	if other := mustOpen(t, good.with("schemas/b.json", "{} ").dir(t)); other.Digest != b.Digest {
		t.Error("control: a schema that no tool refers to is part of the digest")
	}
	wantRefused(t, good.with("t/tools.json", one("")).dir(t), "digest_mismatch")
	wantRefused(t, good.without("schemas/a.json").dir(t), "file_missing")
	if e := wantRefused(t, make(`{"version":1}`).dir(t), "tools"); !strings.HasSuffix(e.File, "tools.json") ||
		e.Line != 1 {
		t.Errorf("%v", e)
	}
	placed := make(strings.Replace(one(""), `"capabilities":[]`, `"capabilities":["fs:read:{notes}","fs:write:/srv"]`, 1))
	wantRefused(t, placed.dir(t), "tools")
	withParam := placed.with(ManifestName, placed[ManifestName]+"[params]\nnotes = { kind = \"dir\" }\n")
	if tool := mustOpen(t, withParam.dir(t)).Tools[0]; fmt.Sprint(tool.Params()) != "[notes]" ||
		tool.Placed[0].Domain != "fs:read:" || len(tool.Capabilities) != 1 {
		t.Errorf("%+v", tool)
	}
	listed := mustOpen(t, make(one(`,"secrets":["runloop/a/b"]`)).dir(t))
	if codes(listed) != "tool_secret_unused" {
		t.Errorf("%v", listed.Findings)
	}
	version := strings.Replace(good[ManifestName], "sha256 = \""+hexSum(good["t/tools.json"]), "version = 2\nsha256 = \""+
		hexSum(good["t/tools.json"]), 1)
	wantRefused(t, good.with(ManifestName, version).dir(t), "tools_version")
	if unused := mustOpen(t, goodTree().with("tools.json", "nonsense").dir(t)); len(unused.Tools) != 0 ||
		codes(unused) != "file_unused" {
		t.Errorf("a tools.json that the manifest does not name: %v", unused.Findings)
	}
}

// FuzzParseTools: what is accepted needs something that it says, and says it in
// words that are capabilities.
func FuzzParseTools(f *testing.F) {
	f.Add(one(`,"secrets":["runloop/a/b"],"budget":{"tokens":1}`))
	f.Add(web(`"url":"https://x.org:8443/p?q","headers":{"X":"{secret:runloop/a/b}"}`))
	f.Fuzz(func(t *testing.T, text string) {
		tools, err := ParseTools("t", []byte(text))
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v", err)
			}
			return
		}
		for i := range tools {
			for _, e := range append(tools[i].Implied(), tools[i].Capabilities...) {
				if _, err := caps.ParseGrant(e.Grant.String()); err != nil {
					t.Errorf("%s needs %v: %v", tools[i].ID, e.Grant, err)
				}
			}
			if len(tools[i].Implied()) == 0 {
				t.Errorf("%s needs nothing", tools[i].ID)
			}
		}
	})
}
