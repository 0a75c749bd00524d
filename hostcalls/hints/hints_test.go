package hints

import (
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// A refusal says what a policy would have to say over http too.
func TestMethodLines(t *testing.T) {
	for _, c := range []struct{ scheme, method, host, want string }{
		{"https", "POST", "a.example:443", `net = { hosts = ["a.example"], methods = ["POST"] }`},
		{"http", "PUT", "a.example:80", `net = { hosts = ["a.example"], allow_http = true, methods = ["PUT"] }`},
		{"http", "GET", "a.example:8080", `net = { hosts = ["a.example:8080"], allow_http = true, methods = ["GET"] }`},
		{"https", "PURGE", "a.example:443", `net = ["a.example"]`},
	} {
		mode, ok := caps.NetMode(c.scheme, c.method)
		if got := methodLine(caps.Request{Family: caps.Net, Mode: mode, Name: c.host}); !ok || got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// What a policy would have to say, in the key and the form of each family.
func TestPolicyLines(t *testing.T) {
	for _, c := range []struct {
		r    caps.Request
		want string
	}{
		{caps.Request{Family: caps.Time, Name: "*"}, `time = true`},
		{caps.Request{Family: caps.FS, Mode: caps.Read, Name: "/data"}, `fs = ["/data"]`},
		{caps.Request{Family: caps.FS, Mode: caps.Write, Name: "/data"}, `fs_rw = ["/data"]`},
		{caps.Request{Family: caps.FS, Mode: caps.Delete, Name: "/data"}, `fs_rw = ["/data"]`},
		{caps.Request{Family: caps.Secrets, Mode: caps.Get, Name: "runloop/t/x"}, `secrets = ["runloop/t/x"]`},
		{
			caps.Request{Family: caps.Secrets, Mode: caps.Use, Name: "runloop/t/x@a.example"},
			`secrets = [{ id = "runloop/t/x", hosts = ["a.example"] }]`,
		},
		{caps.Request{Family: caps.Net, Mode: caps.Bytes, Name: "db.example:5432"}, `net = { tcp = ["db.example:5432"] }`},
		{caps.Request{Family: caps.Env, Mode: caps.Use, Name: "LANG"}, `env = ["LANG"]`},
		{caps.Request{Family: caps.KBWrite, Name: "drafts"}, `kb_write = ["drafts"]`},
	} {
		if got := policyLine(c.r); got != c.want {
			t.Errorf("%v: %s, want %s", c.r, got, c.want)
		}
	}
	for code, want := range map[caps.Code]string{
		caps.CapMissing: "layer takes it away; it would have to leave env", caps.ToolHidden: "layer hides the tool",
	} {
		if got := Of(caps.Request{Family: caps.Env, Name: "A"}, code, "layer"); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s", code, got)
		}
	}
	for name, want := range map[string]string{
		"drafts": `it would need kb_write = ["drafts"]`,
		"todo":   `it would need kb_write = ["todo"]; "todo" is no built-in domain, so that [kb] domains of config.toml would`,
	} {
		got := Of(caps.Request{Family: caps.KBWrite, Name: name}, caps.CapMissing, "")
		if !strings.Contains(got, want) || strings.Contains(got, "built-in") != (name == "todo") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := Of(caps.Request{Family: caps.Tool}, caps.ToolHidden, ""); got != "there is no such tool for this run" {
		t.Error(got)
	}
	for f, want := range map[caps.Family]string{
		caps.Exec: "exec_spawns", caps.KBWrite: "kb_write_bytes",
		caps.Agents: "max_depth", caps.Time: "a limit of",
	} {
		if got := limitHint(f, caps.BudgetExhausted); !strings.Contains(got, want) {
			t.Errorf("%v: %s", f, got)
		}
	}
}

// A refused secret says what a policy would have to say, with the host or without.
func TestSecretLines(t *testing.T) {
	for name, want := range map[string]string{
		"runloop/t/x@api.example.com": `secrets = [{ id = "runloop/t/x", hosts = ["api.example.com"] }]`,
		"runloop/t/x":                 `secrets = ["runloop/t/x"], without hosts, since a program is none`,
	} {
		if got := secretLine(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
