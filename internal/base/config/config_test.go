package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/tomlfile"
)

const full = `
[security]
path_profile = "strict"
confirm = "refuse"
allow_unsigned = true
confirm_external_actions = false
profile = ""
run_grant = ""
[security.caps]
audit_on_deny = false
audit_on_allow = false
fail_on_empty = true
untrusted = []
trusted_hosts = []
[security.secrets]
provider = "env"
command = ["/usr/bin/pass", "show", "{id}"]
env = ["HOME"]
[delegation]
capability_default = "deny"
[delegation.bindings]
critic = "reader"
[kb]
domains = ["recipes"]
durability = "record"
on_damage = "refuse"
encryption = false
[audit]
checkpoint_every = 500
publish = ["file:/mnt/worm/checkpoints"]
[limits]
wall_time_ms = 1000
max_steps = 2
model_usd = 0.5
[model]
default = "openai:gpt"
cache = true
[[model.providers]]
id = "openai"
kind = "openai"
base_url = "https://api.openai.com/v1"
secret_id = "runloop/openai/key"
models = ["gpt", "o3-*"]
[[model.providers]]
id = "here"
kind = "local"
[model.prices."openai:gpt"]
in = 1
out = 2.5
[model.prices."openai:*"]
in = 2
out = 3
[exec]
lane = "bwrap"
[serve]
listen = "127.0.0.1:9000"
token_secret = "runloop/serve/token"
[log]
days = 7
bytes = 67108864
[daemon]
start = "auto"
idle = "90s"
[mcp.servers.github]
command = ["/usr/bin/gh-mcp", "stdio"]
env = ["PATH"]
secrets = ["runloop/github/token"]
[mcp.servers.web]
url = "https://mcp.example.com/x"
`

func load(t *testing.T, text string, env ...string) (config.Config, error) {
	t.Helper()
	return config.Parse("config.toml", []byte(text), env)
}

func TestDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "[security]\n[kb]\n"} {
		c, err := load(t, text)
		if err != nil || !reflect.DeepEqual(c, config.Default()) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	d := config.Default()
	if !d.Security.Caps.AuditOnDeny || !d.Security.Caps.AuditOnAllow || d.Security.Caps.FailOnEmpty ||
		!d.Security.AllowUnsigned ||
		d.Security.SecretsProvider != "age" || d.Delegation.CapabilityDefault != "inherit" ||
		d.Model.Default != "local:echo" ||
		d.Exec.Lane != "auto" || d.Serve.Listen != "127.0.0.1:8770" || d.Security.PathProfile != "strict" ||
		d.Security.Confirm != "ask" {
		t.Errorf("%+v", d)
	}
}

func TestEverySetting(t *testing.T) {
	c, err := load(t, full)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Config{
		Security: config.Security{
			AllowUnsigned: true, PathProfile: "strict", Confirm: "refuse",
			Caps: config.SecurityCaps{FailOnEmpty: true}, SecretsProvider: "env",
			SecretsCommand: []string{"/usr/bin/pass", "show", "{id}"}, SecretsEnv: []string{"HOME"},
		},
		Delegation: config.Delegation{CapabilityDefault: "deny", Bindings: map[string]string{"critic": "reader"}},
		KB:         config.KB{Domains: []string{"recipes"}, Durability: "record", OnDamage: "refuse"},
		Audit:      config.Audit{CheckpointEvery: 500, Publish: []string{"file:/mnt/worm/checkpoints"}},
		Limits:     caps.Limits{}.With(caps.WallTimeMS, 1000).With(caps.CPUFuel, 2*1_000_000/64).With(caps.ModelUSD, 500_000),
		Model: config.Model{
			Default: "openai:gpt", Cache: true,
			Providers: []config.Provider{
				{
					ID: "openai", Kind: "openai", BaseURL: "https://api.openai.com/v1", SecretID: "runloop/openai/key",
					Models: []string{"gpt", "o3-*"},
				},
				{ID: "here", Kind: "local"},
			},
			Prices: map[string]config.Price{"openai:gpt": {In: 1, Out: 2.5}, "openai:*": {In: 2, Out: 3}},
		},
		Exec:   laneOnly("bwrap"),
		Serve:  served(config.Serve{Listen: "127.0.0.1:9000", TokenSecret: "runloop/serve/token"}),
		Daemon: config.Daemon{Start: "auto", Idle: "90s"}, Log: config.Log{Days: 7, Bytes: 64 << 20},
		MCP: map[string]config.MCPServer{
			"github": {
				Command: []string{"/usr/bin/gh-mcp", "stdio"}, Env: []string{"PATH"},
				Secrets: []config.MCPSecret{{"GITHUB_TOKEN", "runloop/github/token"}},
			},
			"web": {URL: "https://mcp.example.com/x"},
		},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func laneOnly(name string) config.Exec {
	x := config.Default().Exec
	x.Lane = name
	return x
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"[securty]\n", `config.toml:1:2: unknown key "securty" (did you mean "security"?)`},
		{"[Security]\n", `config.toml:1:2: unknown key "Security" (keys are matched to the letter: write "security")`},
		{
			"[security.caps]\naudit_on_denied = false\n",
			`2:1: unknown key "security.caps.audit_on_denied" (did you mean "audit_on_deny"?)`,
		},
		{"audit_on_deny = false\n", `1:1: unknown key`},
		{"[security.caps]\nAudit_on_deny = false\n", `write "audit_on_deny"`},
		{"[security.caps]\naudit_on_deny = \"no\"\n", `2:17: security.caps.audit_on_deny must be a boolean, not a string`},
		{"[security.caps]\naudit_on_deny = 0\n", "must be a boolean"},
		{"security = true\n", "[security] must be a table"},
		{"[security]\nconfirm = \"never\"\n", `2:11: security.confirm is one of ask, refuse, allow, not "never"`},
		{"[security.secrets]\nprovider = \"stub\"\n", `not "stub"`},
		{"[security.secrets]\nprovider = \"AGE\"\n", `not "AGE"`},
		{
			"[security.secrets]\nprovider = \"exec\"\n",
			`2:12: security.secrets.provider = "exec" needs security.secrets.command`,
		},
		{"[security.secrets]\ncommand = [\"pass\"]\n", "absolute path of a program"},
		{"[security.secrets]\ncommand = \"/usr/bin/pass\"\n", "must be an array"},
		{"[security.secrets]\nenv = [\"A=B\"]\n", "name of a variable"},
		{"[delegation]\ncapability_default = \"allow\"\n", "inherit, deny"},
		{"[delegation.bindings]\nCritic = \"x\"\n", "name of an agent"},
		{"[delegation.bindings]\ncritic = \"../x\"\n", "name a profile"},
		{"[kb]\ndomains = [\"contacts_raw\"]\n", "_raw"},
		{"[kb]\ndomains = [\"A\"]\n", "name of a domain"},
		{"[kb]\ndomains = \"a\"\n", "must be an array"},
		{"[limits]\ncpu = 1\n", `unknown key "cpu"`},
		{"[limits]\ncpu_fuel = -1\n", "2:12"},
		{"[limits]\ncpu_fuel = 1.5\n", "integer"},
		{"[model]\ndefault = \"\"\n", "name of a model"},
		{"[[model.providers]]\nkind = \"local\"\n", `"id" is missing`},
		{
			"[[model.providers]]\nid = \"a\"\nkind = \"local\"\n[[model.providers]]\nid = \"a\"\nkind = \"local\"\n",
			"there already",
		},
		{"[[model.providers]]\nid = \"a\"\nkind = \"x\"\n", "openai, anthropic, local"},
		{"[[model.providers]]\nid = \"a\"\nkind = \"openai\"\nbase_url = \"file:///etc\"\n", "http or https"},
		{"[[model.providers]]\nid = \"a\"\nkind = \"openai\"\nbase_url = \"https://u:p@x.example\"\n", "without user"},
		{"[[model.providers]]\nid = \"a\"\nkind = \"openai\"\nsecret_id = \"key\"\n", "runloop/<scope>/<name>"},
		{"[[model.providers]]\nid = \"a\"\nkind = \"openai\"\napi_key = \"sk\"\n", `unknown key "api_key"`},
		{"[model.prices.x]\nin = -1\nout = 0\n", "0 or more"},
		{"[model.prices.x]\nin = nan\nout = 0\n", "0 or more"},
		{"[model.prices.x]\nin = 1\n", `"out" is missing`},
		{"[[model.providers]]\nid = \"a\"\nkind = \"openai\"\nmodels = [\"a b\"]\n", "name of a model"},
		{"[[model.providers]]\nid = \"a\"\nkind = \"openai\"\nmodels = [\"a*b\"]\n", "name of a model"},
		{"[[model.providers]]\nid = \"local\"\nkind = \"openai\"\n", "is this process"},
		{
			"[[model.providers]]\nid = \"a\"\nkind = \"local\"\nbase_url = \"http://127.0.0.1:1\"\n",
			"4:1: a provider of kind \"local\" is this process and has no base_url",
		},
		{"[[model.providers]]\nid = \"a\"\nkind = \"local\"\nsecret_id = \"runloop/a/b\"\n", "has no secret_id"},
		{"[model.prices.\"a b\"]\nin = 1\nout = 0\n", "name of a model"},
		{"[model]\ncache = 1\n", "must be a boolean"},
		{"[mcp.servers.a]\ncommand = [\"/x\"]\nenv = [\"A=B\"]\n", "name of a variable"},
		{"[exec]\nlane = \"wasm\"\n", "auto, native"},
		{"[serve]\nlisten = \"8770\"\n", "address:port"},
		{"[serve]\nmemory = 1000\n", "2:10: serve.memory must be 0 or from 8388608"},
		{"[serve]\nmemory = 8388607\n", "4 MiB"},
		{"[serve]\nmemory = -1\n", "must be 0 or from 8388608"},
		{"[serve]\nlisten = \":8770\"\n", "address:port"},
		{"[daemon]\nidle = \"0s\"\n", "from \"1s\""},
		{"[daemon]\nidle = \"long\"\n", "such as \"10m\""},
		{"[daemon]\nstart = \"always\"\n", "never, auto"},
		{"[log]\ndays = 0\n", "log.days must be from 1 to 3650"},
		{"[log]\nbytes = 1000\n", "log.bytes must be from 16777216"},
		{"[log]\nkeep = 1\n", "log.keep"},
		{"[mcp.servers.a]\n", "either a command or a url"},
		{"[mcp.servers.a]\ncommand = [\"/x\"]\nurl = \"https://x.example\"\n", "either a command or a url"},
		{"[mcp.servers.a]\ncommand = [\"x\"]\n", "absolute path"},
		{"[mcp.servers.a]\ncommand = []\n", "absolute path"},
		{"[mcp.servers.a]\ncommand = [\"/x\"]\nsecrets = [\"x\"]\n", "runloop/<scope>/<name>"},
		{"[mcp.servers.tools]\ncommand = [\"/x\"]\n", "1:14: \"tools\" in [mcp.servers] is what a bundle's own tools"},
		{"[mcp.servers.\"..\"]\ncommand = [\"/x\"]\n", "begin with a dot"},
		{"[mcp.servers.a]\nurl = \"https://x.example\"\nenv = [\"A\"]\n", "3:1: a server at a url has no env"},
		{"[mcp.servers.a]\nurl = \"https://x.example\"\nsecrets = [\"runloop/a/b\", \"runloop/a/c\"]\n", "one secret"},
		{"[mcp.servers.a]\nurl = \"https://x.example\"\nsecrets = { A = \"runloop/a/b\" }\n", "must be an array"},
		{"[mcp.servers.a]\nurl = \"https://X.example\"\n", "lower-case"},
		{"[mcp.servers.a]\ncommand = [\"/x\"]\nsecrets = { \"A=\" = \"runloop/a/b\" }\n", "name of a variable"},
		{"[mcp.servers.a]\ncommand = [\"/x\"]\nsecrets = { A = \"sk-live-key\" }\n", "3:17: secrets.A must be a secret id"},
		{
			"[mcp.servers.a]\ncommand = [\"/x\"]\nsecrets = [\"runloop/a/b-c\", \"runloop/a/b.c\"]\n",
			"two values for the variable A_B_C",
		},
		{
			"[mcp.servers.a]\ncommand = [\"/x\"]\nenv = [\"A_B\"]\nsecrets = [\"runloop/a/b\"]\n",
			"two values for the variable A_B",
		},
		{"[mcp.servers.\"a/b\"]\nurl = \"https://x.example\"\n", "name of a server"},

		// What asks for a control that is not there refuses.
		{"[security]\nprofile = \"Reader\"\n", "2:11: security.profile must be the name of a profile"},
		{"[security]\nrun_grant = \"a/b\"\n", "name of a profile"},
		{"[security]\nallow_unsigned = false\n", "signatures"},
		{"[security]\nconfirm_external_actions = \"yes\"\n", "must be a boolean"},
		{"[kb]\nencryption = true\n", "2:14: kb.encryption: this version"},
		{"[kb]\non_damage = \"ignore\"\n", `2:13: kb.on_damage is one of warn, refuse, not "ignore"`},
		{"[kb]\ndurability = \"disk\"\n", `2:14: kb.durability is one of run, effect, record, not "disk"`},

		{"fs = []\nfs = []\n", "there already"},
		{"\xef\xbb\xbf", "byte order mark"},
	} {
		_, err := load(t, c.text)
		var at *tomlfile.Error
		if err == nil || !strings.Contains(err.Error(), c.says) || !errors.As(err, &at) {
			t.Errorf("%q: %v does not say %q", c.text, err, c.says)
		}
	}
	_, err := load(t, "a = 1\n[kb]\nb = 2\nencryption = 1\n")
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("everything is reported: %v", err)
	}
}

// The environment overrides the file, by the file's own rules.
func TestEnvironment(t *testing.T) {
	c, err := load(
		t, "[security.caps]\naudit_on_allow = true\n[limits]\ncpu_fuel = 5\nmax_depth = 1\n[delegation.bindings]\na = \"x\"\n",
		"PATH=/bin", "RUNLOOP_HOME=/x", "RUNLOOP__SECURITY__CAPS__AUDIT_ON_ALLOW=false", "RUNLOOP__MODEL__DEFAULT=true",
		"RUNLOOP__KB__DOMAINS=[\"recipes\"]",
		"RUNLOOP__LIMITS__CPU_FUEL=3", "RUNLOOP__DELEGATION__BINDINGS__B=y", "RUNLOOP__SERVE__LISTEN=[::1]:1",
	)
	if err != nil {
		t.Fatal(err)
	}
	if c.Security.Caps.AuditOnAllow || !c.Security.Caps.AuditOnDeny || c.Model.Default != "true" ||
		!reflect.DeepEqual(c.KB.Domains, []string{"recipes"}) ||
		!reflect.DeepEqual(c.Limits.Map(), map[string]int64{"cpu_fuel": 3, "max_depth": 1}) || c.Serve.Listen != "[::1]:1" ||
		!reflect.DeepEqual(c.Delegation.Bindings, map[string]string{"a": "x", "b": "y"}) {
		t.Errorf("%+v", c)
	}
	for _, bad := range []struct{ env, says string }{
		{
			"RUNLOOP__SECURITY__CAPS__AUDIT_ON_DENIED=false",
			`there is no setting security.caps.audit_on_denied (did you mean "RUNLOOP__SECURITY__CAPS__AUDIT_ON_DENY"?)`,
		},
		{
			"RUNLOOP__SECURTY__PATH_PROFILE=x",
			`RUNLOOP__SECURTY__PATH_PROFILE: there is no setting securty.path_profile (did you mean "RUNLOOP__SECURITY__PATH_PROFILE"?)`,
		},
		{"RUNLOOP__LIMITS__MEMORY_MB=3", "the limits are wall_time_ms, cpu_fuel, memory_bytes"},
		{"RUNLOOP__SECURITY__CAPS__AUDIT_ON_DENY=no", "not a TOML value"},
		{"RUNLOOP__SECURITY__CAPS__AUDIT_ON_DENY=0", "must be a boolean"},
		{"RUNLOOP__SECURITY__CAPS__AUDIT_ON_DENY=", "not a TOML value"},
		{"RUNLOOP__SECURITY__CAPS__AUDIT_ON_DENY=true\nx = 1", "not a TOML value"},
		{"RUNLOOP__SECURITY=true", "must be a table"},
		{"RUNLOOP__SECURITY__CONFIRM=\"ask\"", "is one of"},
		{"RUNLOOP__=1", "empty"},
		{"RUNLOOP__KB____DOMAINS=[]", "empty"},
		{"RUNLOOP__KB__ENCRYPTION=true", "encrypt"},
		{"RUNLOOP__LIMITS__CPU_FUEL=-1", "cpu_fuel"},
		{"RUNLOOP__EXEC__LANE__X=1", ""},
	} {
		if _, err := load(t, "", bad.env); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%q: %v", bad.env, err)
		}
	}
	if _, err := load(t, "", "RUNLOOP__EXEC__LANE=ns", "RUNLOOP__exec__lane=bwrap"); err == nil ||
		!strings.Contains(err.Error(), "so does") {
		t.Errorf("one setting by two variables: %v", err)
	}
}

//rlp:holds R7
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.toml")
	if c, err := config.Load(path, nil); err != nil || !reflect.DeepEqual(c, config.Default()) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("[exec]\nlane = \"ns\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := config.Load(path, []string{"RUNLOOP__KB__DOMAINS=[\"x\"]"}); err != nil || c.Exec.Lane != "ns" ||
		len(c.KB.Domains) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path, nil); err == nil {
		t.Error("settings that anyone may write are taken")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "gone"), path); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path, nil); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link that leads nowhere is taken for no settings: %v", err)
	}
}

// served is s with the defaults of what it does not say.
func served(s config.Serve) config.Serve {
	d := config.Default().Serve
	s.Workers, s.Queue, s.Grace, s.TurnIdle = d.Workers, d.Queue, d.Grace, d.TurnIdle
	return s
}

// An address that is refused may hold a password or a key: errors quote its scheme,
// host and path alone, and nothing where these cannot be told.
func TestErrorsQuoteNoPasswordOfAnAddress(t *testing.T) {
	for _, c := range []struct{ address, quoted string }{
		{"https://u:pw123@h/v1?key=K123#f", `, not "https://h/v1"`},
		{"ftp://h/v1?key=K123", `, not "ftp://h/v1"`},
		{"ftp://h/v1", `, not "ftp://h/v1"`},
		{"here", `, not "here"`},
		{"https://u:pw123@h:x/", ""},
		{"https://u:pw123@h/%zz", ""},
		{"ftp://u:12/pw123@h/", ""},
		{"https:u:pw123@h", ""},
		{"u:pw123@h/v1?key=K123", ""},
	} {
		for _, form := range []string{
			"[[model.providers]]\nid = \"a\"\nkind = \"openai\"\nbase_url = %q\n", "[serve]\notlp = %q\n",
			"[audit]\npublish = [%q]\n", "[mcp.servers.a]\nurl = %q\n",
		} {
			text := fmt.Sprintf(form, c.address)
			_, err := load(t, text)
			switch {
			case err == nil:
				t.Errorf("%s is taken", text)
			case strings.Contains(err.Error(), "pw123") || strings.Contains(err.Error(), "K123"):
				t.Errorf("%s: %v", text, err)
			case !strings.Contains(err.Error(), c.quoted) || c.quoted == "" && strings.Contains(err.Error(), ", not "):
				t.Errorf("%s: %v does not say %q", text, err, c.quoted)
			}
		}
	}
}
