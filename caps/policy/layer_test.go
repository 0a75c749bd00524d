package policy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
)

const broad = `
schema = "0.2"
[capabilities]
fs_rw    = ["/data"]
fs       = ["/ro"]
net      = { hosts = ["a.example", "b.example:8443"], allow_http = true }
time     = true
kb_read  = ["contacts", "contacts_raw", "notes"]
kb_write = ["contacts", "artifacts"]
secrets  = ["runloop/a/b", "runloop/a/c"]
model    = ["openai:*", "local:echo"]
exec     = ["/bin/a", "/bin/b"]
env      = ["A", "B"]
mcp      = ["x", "y"]
agents   = ["c", "d"]
`

// universe is every capability that the layer tests ask for.
const universe = "fs:read:/data/x fs:write:/data/x fs:delete:/data/x fs:read:/data/sub/x fs:write:/data/sub/x " +
	"fs:delete:/data/sub/x fs:read:/ro/x fs:read:/etc " +
	"network:https:a.example network:http:a.example network:https:b.example:8443 network:http:b.example:8443 " +
	"network:https:get@a.example " +
	"network:http:get@a.example network:https:post@a.example network:https:c.example time:read:* " +
	"kb:read:contacts kb:read:contacts_raw kb:read:notes kb:read:drafts kb:write:contacts kb:write:artifacts " +
	"kb:write:drafts " +
	"secrets:read:runloop/a/b secrets:read:runloop/a/c secrets:use:runloop/a/b@a.example:443 " +
	"secrets:use:runloop/a/b@b.example:443 " +
	"model:use:openai:gpt model:use:local:echo process:exec:/bin/a process:exec:/bin/b env:read:A env:read:B mcp:call:x " +
	"mcp:call:y " +
	"agents:launch:c agents:launch:d"

// taken is what of the universe a layer takes from the broad base.
func taken(t *testing.T, text string) string {
	t.Helper()
	b := base(t, broad)
	set, _ := narrow(t, b, layer(t, text))
	var out []string
	for _, s := range strings.Fields(universe) {
		before, after := allows(t, b, s), allows(t, set, s)
		if after && !before {
			t.Errorf("%q widens: %s", text, s)
		}
		if before && !after {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

const (
	netAll = "network:https:a.example network:http:a.example network:https:b.example:8443 network:http:b.example:8443 " +
		"network:https:get@a.example network:http:get@a.example network:https:post@a.example"
	readAll   = "fs:read:/data/x fs:read:/data/sub/x fs:read:/ro/x"
	changeAll = "fs:write:/data/x fs:delete:/data/x fs:write:/data/sub/x fs:delete:/data/sub/x"
	fsAll     = "fs:read:/data/x fs:write:/data/x fs:delete:/data/x fs:read:/data/sub/x fs:write:/data/sub/x " +
		"fs:delete:/data/sub/x fs:read:/ro/x"
	secAll = "secrets:read:runloop/a/b secrets:read:runloop/a/c secrets:use:runloop/a/b@a.example:443 " +
		"secrets:use:runloop/a/b@b.example:443"
)

// What every form of every key takes away, and nothing else.
//
//rlp:holds R6 R42 R43 R44 R45 R46 R49 R50 R51 R52
func TestLayersNarrow(t *testing.T) {
	c := capabilities
	v2 := func(s string) string { return "schema = \"0.2\"\n" + c(s) }
	for _, r := range []struct{ text, takes string }{
		{"", ""},
		{"# nothing\n", ""},
		{"[capabilities]\n", ""},
		{"[deny]\n[limits]\n", ""},

		// fs alone bounds every mode; with fs_rw, reading; fs_rw alone, changing.
		{c(`fs = []`), fsAll},
		{c(`fs = false`), fsAll},
		{c(`fs_ro = []`), fsAll},
		{c(`fs = ["/data/sub"]`), "fs:read:/data/x fs:write:/data/x fs:delete:/data/x fs:read:/ro/x"},
		{c(`fs = ["/data"]`), "fs:read:/ro/x"},
		{c(`fs_ro = ["/data"]`), "fs:read:/ro/x"},
		{c("fs = [\"/ro\"]\nfs_ro = [\"/data\"]"), ""},
		{c(`fs = ["/"]`), ""},
		{c(`fs = ["/dat"]`), fsAll},
		{c("fs = [\"/data\"]\nfs_rw = []"), changeAll + " fs:read:/ro/x"},
		{c("fs = [\"/ro\"]\nfs_rw = [\"/data/sub\"]"), "fs:read:/data/x fs:write:/data/x fs:delete:/data/x"},
		{c("fs = []\nfs_rw = [\"/data\"]"), "fs:read:/ro/x"},
		{c("fs = []\nfs_rw = []"), fsAll},
		{c(`fs_rw = []`), changeAll},
		{c(`fs_rw = false`), changeAll},
		{c(`fs_rw = ["/data/sub"]`), "fs:write:/data/x fs:delete:/data/x"},

		// net narrows hosts over both schemes.
		{c(`net = []`), netAll},
		{c(`net = false`), netAll},
		{c(`net = ["a.example"]`), "network:https:b.example:8443 network:http:b.example:8443"},
		{c(`net = { hosts = ["a.example"] }`), "network:https:b.example:8443 network:http:b.example:8443"},
		{c(`net = { hosts = [] }`), netAll},
		{c(`net = {}`), ""},
		{c(`net = { allow_http = true }`), ""},
		{c(`net = { allow_http = false }`), "network:http:a.example network:http:b.example:8443 network:http:get@a.example"},
		{c(`net = { hosts = ["b.example:8443"], allow_http = false }`), "network:https:a.example network:http:a.example " +
			"network:http:b.example:8443 network:https:get@a.example network:http:get@a.example network:https:post@a.example"},
		{
			v2(`net = { methods = ["GET"] }`),
			"network:https:a.example network:http:a.example network:https:b.example:8443 network:http:b.example:8443 " +
				"network:https:post@a.example",
		},
		{v2(`net = { methods = [] }`), netAll},
		{
			v2(`net = { hosts = ["a.example"], methods = ["GET"], allow_http = false }`),
			"network:https:a.example network:http:a.example " +
				"network:https:b.example:8443 network:http:b.example:8443 network:http:get@a.example network:https:post@a.example",
		},
		{v2(`net = ["*.example"]`), "network:https:b.example:8443 network:http:b.example:8443"},

		{c(`time = true`), ""},
		{c(`time = false`), "time:read:*"},
		{c(`kb_read = true`), "kb:read:contacts_raw"},
		{c(`kb_read = false`), "kb:read:contacts kb:read:contacts_raw kb:read:notes"},
		{c(`kb_read = ["contacts"]`), "kb:read:contacts_raw kb:read:notes"},
		{c(`kb_read = ["contacts", "contacts_raw"]`), "kb:read:notes"},
		{c(`kb_write = ["drafts"]`), "kb:write:contacts kb:write:artifacts"},
		{c(`kb_write = true`), ""},
		{c(`secrets = []`), secAll},
		{c(`secrets = false`), secAll},
		{c(`secrets = ["runloop/a/b"]`), "secrets:read:runloop/a/c"},
		{
			v2(`secrets = [{ id = "runloop/a/b", hosts = ["a.example"] }]`),
			"secrets:read:runloop/a/c secrets:use:runloop/a/b@b.example:443",
		},
		{c(`model = true`), ""},
		{c(`model = false`), "model:use:openai:gpt model:use:local:echo"},
		{c(`model = []`), "model:use:openai:gpt model:use:local:echo"},
		{v2(`model = ["local:echo"]`), "model:use:openai:gpt"},
		{c(`exec = true`), ""},
		{c(`exec = false`), "process:exec:/bin/a process:exec:/bin/b"},
		{v2(`exec = ["/bin/b"]`), "process:exec:/bin/a"},
		{c(`env = ["B"]`), "env:read:A"},
		{c(`env = false`), "env:read:A env:read:B"},
		{c(`mcp = ["x"]`), "mcp:call:y"},
		{c(`agents = []`), "agents:launch:c agents:launch:d"},

		{
			"[deny]\ncapabilities = [\"exec:*:*\", \"kb:write:*\"]\n",
			"kb:write:contacts kb:write:artifacts process:exec:/bin/a process:exec:/bin/b",
		},
		{"[deny]\ncapabilities = [\"fs:read:/data/sub\"]\n", "fs:read:/data/sub/x"},
		{
			"[deny]\ncapabilities = [\"net:b.example:8443\", \"kb:read:contacts_raw\"]\n",
			"network:https:b.example:8443 network:http:b.example:8443 kb:read:contacts_raw",
		},
		{"[deny]\ncapabilities = []\n", ""},
	} {
		if got := taken(t, r.text); !sameWords(got, r.takes) {
			t.Errorf("%q\n takes %s\n want  %s", r.text, got, r.takes)
		}
	}
}

func sameWords(a, b string) bool {
	count := map[string]int{}
	for _, w := range strings.Fields(a) {
		count[w]++
	}
	for _, w := range strings.Fields(b) {
		count[w]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// What a layer names beyond the base is warned about, once each, and nothing
// else is: not what a shorthand stands for, not one scheme of a host.
//
//rlp:holds R48 R49 R27
func TestExtras(t *testing.T) {
	for _, r := range []struct {
		text string
		want []string
	}{
		{capabilities(`kb_write = ["drafts"]`), []string{"caps_extra 2:13"}},
		{capabilities(`fs = ["/data/sub", "/etc", "/var"]`), []string{"caps_extra 2:20", "caps_extra 2:28"}},
		{capabilities(`net = ["a.example", "c.example"]`), []string{"caps_extra 2:21"}},
		{capabilities(`net = ["b.example:8443"]`), nil},
		{capabilities(`kb_read = true`), []string{"raw_revoked 2:11"}},
		{capabilities(`kb_write = true`), nil},
		{capabilities("time = true\nmodel = true\nexec = true"), nil},
		{capabilities("fs = [\"/ro\"]\nfs_rw = [\"/data\"]"), nil},
		{capabilities(`fs_rw = ["/ro"]`), []string{"caps_extra 2:10"}},
		{capabilities(`agents = ["e"]`), []string{"caps_extra 2:11"}},
		{capabilities(`fs = ["/"]`), nil},
		{capabilities(`fs = []`), nil},
	} {
		set := base(t, broad)
		_, changes := narrow(t, set, layer(t, r.text))
		var got []string
		for _, f := range policy.Extras(changes) {
			got = append(got, fmt.Sprintf("%s %d:%d", f.Code, f.Line, f.Column))
			if f.Severity != policy.SeverityWarning || f.Path != "writer.toml" {
				t.Errorf("%v", f)
			}
		}
		if !reflect.DeepEqual(got, r.want) {
			t.Errorf("%q: got %v, want %v", r.text, got, r.want)
		}
	}
}

// What a layer asks for by true, and the base has nothing of, is an extra like
// others: told once, by its key, and of no effect.
//
//rlp:holds R48
func TestTrueOfWhatTheBaseLacks(t *testing.T) {
	for key, grant := range map[string]string{
		"time": "time:read:*", "model": "model:use:*", "exec": "process:exec:*", "kb_read": "kb:read:*",
		"kb_write": "kb:write:*",
	} {
		set := base(t, capabilities(`fs = ["/data"]`))
		after, changes := narrow(t, set, layer(t, capabilities(key+" = true")))
		if len(changes) != 1 || changes[0].Kind != caps.Ignored || changes[0].Grant.String() != grant ||
			changes[0].Source.Line != 2 {
			t.Errorf("%s: %+v", key, changes)
		}
		found := policy.Extras(changes)
		if len(found) != 1 || found[0].Line != 2 || !strings.HasPrefix(found[0].Message, key+": "+grant+
			" is not in the base") {
			t.Errorf("%s: %v", key, found)
		}
		if after.Digest() != set.Digest() {
			t.Errorf("%s = true changes what is held: %s", key, after)
		}
		if _, changes := narrow(t, set, layer(t, capabilities(key+" = false"))); len(changes) != 0 {
			t.Errorf("%s = false asks for nothing: %+v", key, changes)
		}
	}
}

// The layer that revoked is named with its line.
//
//rlp:holds R42
func TestSourceOfRevocation(t *testing.T) {
	set, _ := narrow(t, base(t, broad),
		layer(t, "[capabilities]\nkb_write = []\n\nfs_rw = []\n[deny]\ncapabilities = [\n  \"kb:read:notes\",\n]\n"))
	for req, want := range map[string]string{
		"kb:write:contacts": "writer.toml:2:12", "fs:write:/data/x": "writer.toml:4:9", "kb:read:notes": "writer.toml:7:3",
	} {
		list, err := caps.ParseRequest(req)
		if err != nil {
			t.Fatal(err)
		}
		e := set.Explain(list[0])
		last := e.Votes[len(e.Votes)-1]
		if e.Allow || last.Allow || last.Layer != "override:writer.toml" || last.Pos.String() != want {
			t.Errorf("%s: %+v", req, e)
		}
	}
}

// However broad a grant is, the home and the kernel's folders stay out of it.
func TestProtected(t *testing.T) {
	open := base(t, "[capabilities]\nfs_rw = [\"/\"]")
	for _, c := range []struct{ tenant, yes, no string }{
		{
			"default", "/home/op/.runloop/artifacts/x /home/op/x /process /devel",
			"/home/op/.runloop /home/op/.runloop/caps/overrides/a.toml /home/op/.runloop/artifactsx /proc/1/mem /sys " +
				"/dev/null /home/op/.runloop/tenants/t/artifacts /real/home/kb",
		},
		{
			"t", "/home/op/.runloop/tenants/t/artifacts/x /real/home/tenants/t/artifacts/x",
			"/home/op/.runloop/artifacts/x /home/op/.runloop/tenants/t/kb /home/op/.runloop/tenants/u/artifacts",
		},
	} {
		set, _ := narrow(t, open, policy.Protected("/home/op/.runloop", c.tenant, "/real/home"))
		for _, mode := range []string{"read", "write", "delete"} {
			for _, p := range strings.Fields(c.yes) {
				if !allows(t, set, "fs:"+mode+":"+p) {
					t.Errorf("%s: %s %s is denied", c.tenant, mode, p)
				}
			}
			for _, p := range strings.Fields(c.no) {
				if allows(t, set, "fs:"+mode+":"+p) {
					t.Errorf("%s: %s %s is allowed", c.tenant, mode, p)
				}
				if !allows(t, open, "fs:"+mode+":"+p) {
					t.Errorf("control: %s is denied without the layer", p)
				}
			}
		}
	}
}

// Limits: the least of what is set, aliases are one key with their own name,
// and 0 is none at all.
//
//rlp:holds A7 A8
func TestLimits(t *testing.T) {
	set := base(t, "[limits]\nwall_time_ms = 100\nmax_steps = 10\nmodel_usd = 1.25\nmodel_tokens_per_minute = "+
		"60\nnet_bytes = 0\n")
	l := layer(t, "[limits]\nmax_time_ms = 200\ncpu_fuel = 100\nmodel_usd = 2\nmodel_tokens_per_minute = "+
		"30\nmax_adapter_calls = 0\n")
	got, _ := narrow(t, set, l)
	want := map[string]int64{
		"wall_time_ms": 100, "cpu_fuel": 100, "model_usd": 1_250_000, "model_tokens_per_minute": 30, "net_bytes": 0,
		"hostcalls_max": 0,
	}
	if !reflect.DeepEqual(got.Limits().Map(), want) {
		t.Errorf("got %v", got.Limits().Map())
	}
	if b := base(t, "[limits]\nmax_steps = 10\n"); b.Limits().Map()["cpu_fuel"] != 10*1_000_000/64 {
		t.Errorf("a step is a million instructions: %v", b.Limits().Map())
	}
}

// Another system's bounds on what a module has not are refused by name, with the
// limits that bound the same here, in each form of a document.
//
//rlp:holds A58
func TestForeignLimits(t *testing.T) {
	for key, ours := range map[string]string{
		"max_frame_bytes": "memory_bytes", "max_loop_iters": "cpu_fuel",
		"max_stepz": "max_steps",
	} {
		_, inOverride := policy.ParseLayer("l", "l.toml", []byte("[limits]\n"+key+" = 1\n"), policy.Options{})
		_, inGrant := policy.ParseGrant("g", "g.json", []byte(`{"limits":{"`+key+`":1}}`), policy.Options{})
		for _, findings := range [][]policy.Finding{inOverride, inGrant} {
			if len(findings) != 1 || findings[0].Code != policy.CodeUnknownKey || findings[0].Severity != policy.SeverityError ||
				!strings.Contains(findings[0].Hint, ours) {
				t.Errorf("%s: %+v", key, findings)
			}
		}
		if _, findings := policy.ParseBase("policy.caps", []byte("[capabilities]\ntime = true\n[limits]\n"+key+" = 1\n"),
			policy.Options{}); len(findings) != 1 || !strings.Contains(findings[0].Hint, ours) {
			t.Errorf("%s in a bundle: %+v", key, findings)
		}
	}
}
