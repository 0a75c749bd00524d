package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

const full = `
schema = "0.2"
templates = ["mail-sender"]
[capabilities]
fs       = ["/home/user/work/notes", "~/x"]
fs_ro    = ["/ro"]
fs_rw    = ["/home/user/work/out"]
net      = { hosts = ["API.example.com.", "api.example.com:8443", "*.example.org", "10.1.2.3:8443", "bücher.example"], methods = ["GET"] }
time     = true
kb_read  = ["contacts", "contacts_raw"]
kb_write = true
secrets  = ["runloop/mail/smtp_api_key", { id = "runloop/api/key", hosts = ["api.example.com"] }]
model    = ["openai:*", "local:echo"]
exec     = ["/usr/bin/grep"]
env      = ["PATH", "home"]
mcp      = ["github"]
agents   = ["critic"]
[limits]
cpu_fuel = 5
model_usd = 0.5
`

// Every key of the contract, in one document.
//
//rlp:holds R18 R19 R20 R22 R25 R30 R34
func TestBaseReadsEveryKey(t *testing.T) {
	got := base(t, full).Strings()
	want := []string{
		"fs:read:/home/op/x", "fs:read:/home/user/work/notes", "fs:read:/home/user/work/out", "fs:write:/home/user/work/out",
		"fs:delete:/home/user/work/out", "fs:read:/ro",
		"network:https:get@*.example.org", "network:https:get@10.1.2.3:8443", "network:https:get@api.example.com",
		"network:https:get@api.example.com:8443", "network:https:get@xn--bcher-kva.example", "network:https:mail.example.com",
		"time:read:*", "kb:read:contacts", "kb:read:contacts_raw",
		"kb:write:accounts", "kb:write:artifacts", "kb:write:contacts", "kb:write:drafts", "kb:write:edges",
		"kb:write:events",
		"kb:write:notes", "kb:write:runs",
		"secrets:read:runloop/api/key@api.example.com", "secrets:read:runloop/mail/smtp_api_key",
		"model:use:local:echo", "model:use:openai:*", "process:exec:/usr/bin/grep",
		"env:read:PATH", "env:read:home", "mcp:call:github", "agents:launch:critic",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	limits := base(t, full).Limits().Map()
	if !reflect.DeepEqual(limits, map[string]int64{"cpu_fuel": 5, "model_usd": 500_000, "hostcalls_max": 50}) {
		t.Errorf("limits %v", limits)
	}
}

// In a base what is missing grants nothing, and so do [] and false.
//
//rlp:holds R12 R18 R23 R24 R28 R30 R32 R33 R45
func TestBaseDefaultsGrantNothing(t *testing.T) {
	off := "fs=[]\nfs_ro=[]\nfs_rw=[]\nnet=[]\ntime=false\nkb_read=[]\nkb_write=[]\nsecrets=[]\nmodel=[]\nexec=[]\nenv=[]\nmcp=[]\nagents=[]\n"
	allFalse := "fs=false\nfs_ro=false\nfs_rw=false\nnet=false\ntime=false\nkb_read=false\nkb_write=false\nsecrets=false\nmodel=false\nexec=false\nenv=false\nmcp=false\nagents=false\n"
	for _, text := range []string{
		"", "# x\n", "[capabilities]\n", "schema = \"0.1\"\n", "[capabilities]\n" + off,
		"[capabilities]\n" + allFalse,
	} {
		if set := base(t, text); !set.IsEmpty() {
			t.Errorf("%q grants %s", text, set)
		}
	}
}

// fs reads, fs_rw writes; a grant covers what is below it by component.
//
//rlp:holds R12 R13 R16 R19 R20 R23 R24 R25 R27 R32 R33
func TestBaseMeans(t *testing.T) {
	for _, c := range []struct{ text, yes, no string }{
		{
			`fs = ["/a//b/./c/"]`, "fs:read:/a/b/c/x fs:read:/a/b/c",
			"fs:read:/a/b fs:read:/a/b/cc fs:write:/a/b/c fs:delete:/a/b/c",
		},
		{`fs = ["/a/../b"]`, "fs:read:/b", "fs:read:/a"},
		{`fs_rw = ["/a"]`, "fs:read:/a/x fs:write:/a/x fs:delete:/a/x", "fs:write:/ab"},
		{`fs = ["~/notes", "~"]`, "fs:read:/home/op/notes fs:read:/home/op", "fs:read:/~/notes fs:read:/home"},
		{
			`net = ["example.com"]`, "network:https:example.com",
			"network:https:example.com:8443 network:http:example.com network:https:a.example.com",
		},
		{
			`net = ["example.com:8080"]`, "network:https:example.com:8080",
			"network:https:example.com network:http:example.com:8080",
		},
		{
			`net = { hosts = ["example.com"], allow_http = true }`, "network:http:example.com network:https:example.com",
			"network:http:example.com:443",
		},
		{`net = { hosts = ["example.com"], allow_http = false }`, "network:https:example.com", "network:http:example.com"},
		{
			`net = ["localhost", "127.0.0.1:80"]`, "network:https:localhost network:https:127.0.0.1:80",
			"network:https:127.0.0.1",
		},
		{`time = true`, "time:read:*", ""},
		{`kb_read = true`, "kb:read:contacts kb:read:edges", "kb:read:contacts_raw kb:write:contacts"},
		{`kb_read = ["contacts"]`, "kb:read:contacts", "kb:read:notes kb:read:contacts_raw"},
		{`kb_write = true`, "kb:write:drafts", "kb:read:drafts"},
		{
			`secrets = ["runloop/a/b"]`, "secrets:read:runloop/a/b secrets:use:runloop/a/b@x.example",
			"secrets:read:runloop/a/c",
		},
		{`model = true`, "model:use:openai:gpt-4", ""},
		{`exec = true`, "process:exec:/usr/bin/grep", ""},
	} {
		set := base(t, "[capabilities]\n"+c.text)
		for _, s := range strings.Fields(c.yes) {
			if !allows(t, set, s) {
				t.Errorf("%s denies %s", c.text, s)
			}
		}
		for _, s := range strings.Fields(c.no) {
			if allows(t, set, s) {
				t.Errorf("%s allows %s", c.text, s)
			}
		}
	}
}

// A wildcard is one label of the name, in schema 0.2 alone.
//
//rlp:holds R21 R77
func TestWildcardHosts(t *testing.T) {
	set := base(t, "schema = \"0.2\"\n[capabilities]\nnet = [\"*.example.com\"]")
	for s, want := range map[string]bool{
		"a.example.com": true, "example.com": false, "a.b.example.com": false, "evilexample.com": false,
		"a.example.com:8443": false,
	} {
		if got := allows(t, set, "network:https:"+s); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
}

// true and the list of all domains are one policy, and order and repetition
// mean nothing.
//
//rlp:holds R34 R40 C22
func TestSpellingsAreEqual(t *testing.T) {
	for _, c := range [][2]string{
		{`kb_read = true`, `kb_read = ["runs", "contacts", "artifacts", "events", "drafts", "notes", "accounts", "edges", "runs"]`},
		{`fs = ["/a", "/b"]`, `fs_ro = ["/b/", "//a", "/b"]`},
		{`net = ["a.example", "B.example."]`, `net = { hosts = ["b.example:443", "a.example"] }`},
	} {
		a, b := base(t, "[capabilities]\n"+c[0]), base(t, "[capabilities]\n"+c[1])
		if a.Digest() != b.Digest() || a.String() != b.String() {
			t.Errorf("%s is %s, %s is %s", c[0], a, c[1], b)
		}
	}
}

// The base is the union of policy.caps and [requires], at the stricter limits.
//
//rlp:holds R41
func TestRequiresJoins(t *testing.T) {
	b, _ := policy.ParseBase("policy.caps",
		[]byte("[capabilities]\nfs = [\"/a\"]\n[limits]\nhostcalls_max = 5\nmax_depth = 1"), options)
	root := parse(t, "manifest.toml",
		"[requires]\nfs = [\"/b\"]\nkb_read = [\"notes\"]\n[limits]\nhostcalls_max = 9\nstdout_max_bytes = 0")
	req, findings := policy.ParseRequires(table(root, "requires"), table(root, "limits"), b.Schema, options)
	if req == nil {
		t.Fatal(findings)
	}
	joined := policy.Join(b, req)
	set, err := caps.Base(joined.Entries, joined.Limits)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(set.Strings()); got != "[fs:read:/a fs:read:/b kb:read:notes]" {
		t.Error(got)
	}
	if got := set.Limits().Map(); !reflect.DeepEqual(got, map[string]int64{
		"hostcalls_max": 5, "max_depth": 1,
		"stdout_max_bytes": 0,
	}) {
		t.Error(got)
	}
	// The schema is the policy's: [requires] of an 0.1 bundle has no forms of 0.2.
	root = parse(t, "manifest.toml", "[requires]\nmodel = [\"openai:*\"]")
	if req, f := policy.ParseRequires(table(root, "requires"), nil, "0.1", options); req != nil ||
		!has(f, policy.CodeNeedsSchema02) {
		t.Error(f)
	}
	if req, f := policy.ParseRequires(table(root, "requires"), nil, "0.2", options); req == nil {
		t.Error(f)
	}
	if req, f := policy.ParseRequires(nil, nil, "", options); req == nil || len(req.Entries) != 0 {
		t.Error(f)
	}
}

// What users of the public system have on disk parses, and lint says what it
// would have said to their authors.
//
//rlp:holds R16 R31
func TestPublicPolicies(t *testing.T) {
	dir := "../../testdata/runloop-bundles"
	wantErrors := map[string]string{"mailer": `write "runloop/mail/smtp_key"`}
	wantSet := map[string]string{
		"context_gatherer": "kb:read:artifacts kb:read:contacts kb:read:events model:use:*",
		"contact_resolver": "kb:read:contacts kb:write:contacts",
		"writer":           "fs:read:/home/op/.runloop/artifacts kb:read:artifacts kb:write:artifacts model:use:*",
		"system_helper":    "fs:read:/home/op/.config fs:read:/home/op/.tmux.conf model:use:* process:exec:*",
		"tmux_layout": "fs:read:/home/op/.config/tmux fs:read:/home/op/.runloop/artifacts/tmux_layout " +
			"fs:read:/home/op/.tmux.conf process:exec:*",
	}
	paths, _ := filepath.Glob(dir + "/*/policy.caps")
	if len(paths) != 6 {
		t.Fatalf("%d policies", len(paths))
	}
	for _, path := range paths {
		agent := filepath.Base(filepath.Dir(path))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b, findings := policy.ParseBase(path, data, options)
		if hint, wrong := wantErrors[agent]; wrong {
			errs := errorsOf(findings)
			if b != nil || len(errs) != 1 || errs[0].Code != policy.CodeBadSecretID || errs[0].Hint != hint ||
				errs[0].Line != 8 || errs[0].Column != 12 {
				t.Errorf("%s: %v", agent, findings)
			}
			continue
		}
		if b == nil {
			t.Errorf("%s: %v", agent, findings)
			continue
		}
		set, err := caps.Base(b.Entries, b.Limits)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(set.Strings(), " "); got != wantSet[agent] {
			t.Errorf("%s\n got %s\nwant %s", agent, got, wantSet[agent])
		}
		text := string(data)
		if strings.Contains(text, "exec = true") != has(findings, policy.CodeExecAny) {
			t.Errorf("%s: exec = true deserves a list: %v", agent, findings)
		}
		if strings.Contains(text, `fs = ["`) != has(findings, policy.CodeFSReadOnly) {
			t.Errorf("%s: fs is read-only: %v", agent, findings)
		}
	}
	// The manifest that they have is no trouble either.
	data, err := os.ReadFile(dir + "/writer/manifest.toml")
	if err != nil {
		t.Fatal(err)
	}
	if f := policy.Lint(policy.KindManifest, "manifest.toml", data, options); len(f) != 0 {
		t.Error(f)
	}
}

// Templates widen a base alone, and only ones that are there and right.
//
//rlp:holds R79
func TestTemplates(t *testing.T) {
	set := base(t, "schema = \"0.2\"\ntemplates = [\"mail-sender\"]\n[capabilities]\ntime = true")
	if got := fmt.Sprint(set.Strings()); got != "[kb:write:drafts network:https:mail.example.com time:read:*]" {
		t.Error(got)
	}
	for name, code := range map[string]policy.Code{
		`"absent"`: policy.CodeBadTemplate, `"unreadable"`: policy.CodeBadTemplate, `"../x"`: policy.CodeBadTemplate,
		`""`:       policy.CodeBadTemplate,
		`"broken"`: policy.CodeUnknownKey, `"nested"`: policy.CodeMisplacedKey, `1`: policy.CodeWrongType,
	} {
		b, f := policy.ParseBase("p", []byte("schema = \"0.2\"\ntemplates = ["+name+"]"), options)
		if b != nil || !has(errorsOf(f), code) {
			t.Errorf("%s: %v", name, f)
		}
	}
	if b, f := policy.ParseBase("p", []byte("schema = \"0.2\"\ntemplates = [\"mail-sender\"]"), policy.Options{}); b != nil {
		t.Errorf("without templates: %v", f)
	}
	if o, f := policy.ParseLayer("o", "p", []byte("schema = \"0.2\"\ntemplates = [\"mail-sender\"]"), options); o != nil ||
		!has(f, policy.CodeMisplacedKey) {
		t.Errorf("a layer takes no template: %v", f)
	}
}
