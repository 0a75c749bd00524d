package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/tomlfile"
)

func parse(t testing.TB, file, text string) *tomlfile.Table {
	t.Helper()
	root, err := tomlfile.Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func table(root *tomlfile.Table, key string) *tomlfile.Table {
	if e, ok := root.Get(key); ok {
		return e.Value.Table
	}
	return nil
}

// A refusal is a document, the readings that refuse it ("b", "l" or both), the
// code and where.
type refusal struct {
	name, text, readings string
	code                 policy.Code
	at                   string
	hint                 string
}

func capabilities(line string) string { return "[capabilities]\n" + line + "\n" }

// route is a policy with a route that lacks what line says.
func route(line string) string {
	return "schema = \"0.2\"\n[[inject]]\nmethods = [\"GET\"]\npath = \"/\"\nheader = \"X-Key\"\n" + line +
		"\nsecret = \"runloop/a/key\"\n"
}

func refusals() []refusal {
	c := capabilities
	return []refusal{
		{"unknown key", c(`kbread = false`), "bl", policy.CodeUnknownKey, "2:1", `"kb_read"`},
		{"a route in 0.1", "[[inject]]\nhost = \"a.example\"\n", "b", policy.CodeNeedsSchema02, "1:3", "0.2"},
		{"a route in a layer", "schema = \"0.2\"\n[[inject]]\nhost = \"a.example\"\n", "l", policy.CodeMisplacedKey, "2:3", "net"},
		{"half a route", "schema = \"0.2\"\n[[inject]]\nhost = \"a.example\"\n", "b", policy.CodeMissing, "2:3", "secret"},
		{"a route to a port", route(`host = "a.example:443"`), "b", policy.CodeBadHost, "6:8", ""},
		{"a route to one label", route(`host = "localhost"`), "b", policy.CodeBadHost, "6:8", ""},
		{"other case", c(`FS = ["/a"]`), "bl", policy.CodeUnknownKey, "2:1", `write "fs"`},
		{"other case beside", c("fs = []\nFS = [\"/a\"]"), "bl", policy.CodeUnknownKey, "3:1", `write "fs"`},
		{"unknown table", "[capability]\nfs = []\n", "bl", policy.CodeUnknownKey, "1:2", `"capabilities"`},
		{"table in other case", "[Capabilities]\n", "bl", policy.CodeUnknownKey, "1:2", `"capabilities"`},
		{"no header", "net = []\n", "bl", policy.CodeMisplacedKey, "1:1", "[capabilities]"},
		{"limit without header", "cpu_fuel = 1\n", "bl", policy.CodeMisplacedKey, "1:1", "[limits]"},
		{"limit among capabilities", c("cpu_fuel = 1"), "bl", policy.CodeMisplacedKey, "2:1", "[limits]"},
		{"key twice", c("fs = []\nfs = [\"/a\"]"), "bl", policy.CodeSyntax, "3:1", ""},
		{"byte order mark", "\xef\xbb\xbf[capabilities]\n", "bl", policy.CodeSyntax, "1:1", "BOM"},
		{"dotted unknown", "capabilities.kbread = false\n", "bl", policy.CodeUnknownKey, "1:14", ""},
		{"capabilities no table", "capabilities = []\n", "bl", policy.CodeWrongType, "1:16", ""},
		{"capabilities twice over", "[[capabilities]]\nfs = []\n", "bl", policy.CodeWrongType, "1:3", ""},

		{"fs a string", c(`fs = "x"`), "bl", policy.CodeWrongType, "2:6", ""},
		{"fs true", c(`fs = true`), "bl", policy.CodeWrongType, "2:6", "false"},
		{"net true", c(`net = true`), "bl", policy.CodeWrongType, "2:7", ""},
		{"secrets true", c(`secrets = true`), "bl", policy.CodeWrongType, "2:11", ""},
		{"env true", c(`env = true`), "bl", policy.CodeWrongType, "2:7", ""},
		{"time a string", c(`time = "yes"`), "bl", policy.CodeWrongType, "2:8", ""},
		{"time a number", c(`time = 1`), "bl", policy.CodeWrongType, "2:8", ""},
		{"time a list", c(`time = []`), "bl", policy.CodeWrongType, "2:8", ""},
		{"kb_read a string", c(`kb_read = "contacts"`), "bl", policy.CodeWrongType, "2:11", ""},
		{"kb_read a table", c(`kb_read = { contacts = true }`), "bl", policy.CodeWrongType, "2:11", ""},
		{"secrets a string", c(`secrets = "x"`), "bl", policy.CodeWrongType, "2:11", ""},
		{"secrets an integer within", c(`secrets = [1]`), "bl", policy.CodeWrongType, "2:12", ""},
		{"fs a number within", c(`fs = ["/a", 1]`), "bl", policy.CodeWrongType, "2:13", ""},
		{"exec a number", c(`exec = 0`), "bl", policy.CodeWrongType, "2:8", ""},
		{"model a string", c(`model = "openai"`), "bl", policy.CodeWrongType, "2:9", ""},
		{"limits a list", "limits = []\n", "bl", policy.CodeWrongType, "1:10", ""},

		{"relative path", c(`fs = ["/ok", "notes"]`), "bl", policy.CodeBadPath, "2:14", ""},
		{"empty path", c(`fs = [""]`), "bl", policy.CodeBadPath, "2:7", ""},
		{"glob *", c(`fs = ["/a/*"]`), "bl", policy.CodeBadPath, "2:7", ""},
		{"glob ?", c(`fs_rw = ["/a/b?"]`), "bl", policy.CodeBadPath, "2:10", ""},
		{"glob [", c(`fs_ro = ["/a/[b]"]`), "bl", policy.CodeBadPath, "2:10", ""},
		{"another's home", c(`fs = ["~root/x"]`), "bl", policy.CodeBadPath, "2:7", ""},
		{"NUL in a path", c(`fs = ["/a\u0000/b"]`), "bl", policy.CodeSyntax, "2:7", ""},
		{"line end in a path", c(`fs = ["/a\nb"]`), "bl", policy.CodeBadPath, "2:7", ""},

		{"page, not host", c(`net = ["https://a.example/x"]`), "bl", policy.CodeBadHost, "2:8", "write a.example"},
		{"every host", c(`net = ["*"]`), "bl", policy.CodeBadHost, "2:8", ""},
		{"wildcard in 0.1", c(`net = ["*.example.com"]`), "bl", policy.CodeNeedsSchema02, "2:8", `schema = "0.2"`},
		{"wildcard inside", "schema = \"0.2\"\n" + c(`net = ["a.*.example.com"]`), "bl", policy.CodeBadHost, "3:8", ""},
		{"port 0", c(`net = ["a.example:0"]`), "bl", policy.CodeBadHost, "2:8", ""},
		{"port with a zero", c(`net = ["a.example:0443"]`), "bl", policy.CodeBadHost, "2:8", ""},
		{"port too high", c(`net = ["a.example:99999"]`), "bl", policy.CodeBadHost, "2:8", ""},
		{"user in a host", c(`net = ["u@a.example"]`), "bl", policy.CodeBadHost, "2:8", ""},
		{"number in disguise", c(`net = ["0x7f.1"]`), "bl", policy.CodeBadHost, "2:8", ""},
		{"unknown key of net", c(`net = { host = ["a.example"] }`), "bl", policy.CodeUnknownKey, "2:9", `"hosts"`},
		{
			"allow_http a string", c(`net = { hosts = ["a.example"], allow_http = "no" }`), "bl", policy.CodeWrongType, "2:45",
			"",
		},
		{"hosts a string", c(`net = { hosts = "a.example" }`), "bl", policy.CodeWrongType, "2:17", ""},
		{
			"methods in 0.1", c(`net = { hosts = ["a.example"], methods = ["GET"] }`), "bl", policy.CodeNeedsSchema02, "2:42",
			"",
		},
		{
			"method in lower case", "schema = \"0.2\"\n" + c(`net = { hosts = ["a.example"], methods = ["get"] }`), "bl",
			policy.CodeBadMethod, "3:43", "GET",
		},
		{
			"method that shares its mode", "schema = \"0.2\"\n" + c(`net = { hosts = ["a.example"], methods = ["TRACE"] }`),
			"bl", policy.CodeBadMethod, "3:43", "",
		},

		{"unknown domain", c(`kb_write = ["custom"]`), "bl", policy.CodeBadDomain, "2:13", "contacts"},
		{"misspelt domain", c(`kb_read = ["contcts"]`), "bl", policy.CodeBadDomain, "2:12", `"contacts"`},
		{"unknown raw", c(`kb_read = ["custom_raw"]`), "bl", policy.CodeBadDomain, "2:12", ""},
		{"writing raw", c(`kb_write = ["contacts_raw"]`), "bl", policy.CodeBadDomain, "2:13", "contacts"},
		{"secret id", c(`secrets = ["mail.smtp.key"]`), "bl", policy.CodeBadSecretID, "2:12", `"runloop/mail/smtp_key"`},
		{"secret id of two parts", c(`secrets = ["runloop/x"]`), "bl", policy.CodeBadSecretID, "2:12", `"runloop/default/x"`},
		{
			"secret with hosts in 0.1", c(`secrets = [{ id = "runloop/a/b", hosts = [] }]`), "bl", policy.CodeNeedsSchema02,
			"2:12", "",
		},
		{
			"secret without hosts", "schema = \"0.2\"\n" + c(`secrets = [{ id = "runloop/a/b" }]`), "bl", policy.CodeMissing,
			"3:12", "",
		},
		{"models in 0.1", c(`model = ["openai:*"]`), "bl", policy.CodeNeedsSchema02, "2:9", ""},
		{"programs in 0.1", c(`exec = ["/usr/bin/grep"]`), "bl", policy.CodeNeedsSchema02, "2:8", ""},
		{"program by name", "schema = \"0.2\"\n" + c(`exec = ["grep"]`), "bl", policy.CodeBadProgram, "3:9", ""},
		{"model with a blank", "schema = \"0.2\"\n" + c(`model = ["open ai"]`), "bl", policy.CodeBadName, "3:10", ""},
		{"variable with =", c(`env = ["A=B"]`), "bl", policy.CodeBadName, "2:8", ""},
		{"every variable", c(`env = ["*"]`), "bl", policy.CodeBadName, "2:8", ""},
		{"agent in capitals", c(`agents = ["Critic"]`), "bl", policy.CodeBadName, "2:11", ""},
		{"server with a slash", c(`mcp = ["a/b"]`), "bl", policy.CodeBadName, "2:8", ""},

		{"schema unknown", "schema = \"0.3\"\n", "bl", policy.CodeBadSchema, "1:10", `"0.2"`},
		{"schema a number", "schema = 0.2\n", "bl", policy.CodeWrongType, "1:10", ""},
		{"templates in 0.1", "templates = [\"mail-sender\"]\n", "b", policy.CodeNeedsSchema02, "1:13", ""},
		{"placeholder in 0.1", c(`fs = ["{notes}"]`), "b", policy.CodeNeedsSchema02, "2:7", ""},
		{"placeholder unclosed", "schema = \"0.2\"\n" + c(`fs = ["{notes"]`), "b", policy.CodeBadParam, "3:7", ""},
		{"placeholder escapes", "schema = \"0.2\"\n" + c(`fs = ["{notes}/../x"]`), "b", policy.CodeBadParam, "3:7", ""},
		{"placeholder runs on", "schema = \"0.2\"\n" + c(`fs = ["{notes}x"]`), "b", policy.CodeBadParam, "3:7", ""},
		{"placeholder in a layer", "schema = \"0.2\"\n" + c(`fs = ["{notes}"]`), "l", policy.CodeBadParam, "3:7", ""},

		{"deny in a base", "[deny]\ncapabilities = []\n", "b", policy.CodeMisplacedKey, "1:2", ""},
		{"params in a base", "[params]\nnotes = \"/a\"\n", "b", policy.CodeMisplacedKey, "1:2", ""},
		{"requires in a policy", "[requires]\nfs = []\n", "bl", policy.CodeMisplacedKey, "1:2", ""},
		{"deny no capability", "[deny]\ncapabilities = [\"fs\"]\n", "l", policy.CodeBadCapability, "2:17", ""},
		{"deny no domain there is", "[deny]\ncapabilities = [\"kb:read:contcts\"]\n", "l", policy.CodeBadDomain, "2:17", ""},
		{"deny unknown key", "[deny]\ncapability = []\n", "l", policy.CodeUnknownKey, "2:1", `"capabilities"`},
		{"deny a string", "[deny]\ncapabilities = \"exec:*:*\"\n", "l", policy.CodeWrongType, "2:16", ""},
		{"deny a tool that can be none", "[deny]\ntools = [\"a b\"]\n", "l", policy.CodeBadName, "2:10", "net_http"},
		{"deny tools true", "[deny]\ntools = true\n", "l", policy.CodeWrongType, "2:9", ""},
		{"deny tools a string", "[deny]\ntools = \"net_http\"\n", "l", policy.CodeWrongType, "2:9", ""},
		{"deny tools a number within", "[deny]\ntools = [1]\n", "l", policy.CodeWrongType, "2:10", ""},
		{"deny unknown tier", "[deny]\ntiers = [\"operator\"]\n", "l", policy.CodeBadTier, "2:10", "operator_sensitive"},
		{"deny tier in capitals", "[deny]\ntiers = [\"Network\"]\n", "l", policy.CodeBadTier, "2:10", "network"},
		{"deny unknown effect", "[deny]\neffects = [\"io_write\"]\n", "l", policy.CodeBadEffect, "2:12", "io-write"},
		{"tools in a base", "[tools]\nallow = [\"net_http\"]\n", "b", policy.CodeMisplacedKey, "1:2", ""},
		{"tools unknown key", "[tools]\ndeny = []\n", "l", policy.CodeUnknownKey, "2:1", ""},
		{"tools allow a boolean", "[tools]\nallow = true\n", "l", policy.CodeWrongType, "2:9", ""},
		{"visible in a base", "[visible]\ncategories = []\n", "b", policy.CodeMisplacedKey, "1:2", ""},
		{"visible unknown key", "[visible]\ncategory = []\n", "l", policy.CodeUnknownKey, "2:1", "categories"},
		{"visible a string", "[visible]\ncategories = \"web\"\n", "l", policy.CodeWrongType, "2:14", ""},
		{"constraints in a base", "[constraints.net]\nhosts = []\n", "b", policy.CodeMisplacedKey, "1:2", ""},
		{"constraints of no family", "[constraints.web]\nhosts = []\n", "l", policy.CodeUnknownKey, "1:14", ""},
		{"constraints unknown field", "[constraints.net]\nmax_response = 1\n", "l", policy.CodeUnknownKey, "2:1", ""},
		{"constraints number for a list", "[constraints.net]\nhosts = 1\n", "l", policy.CodeWrongType, "2:9", ""},
		{"constraints list for a number", "[constraints.net]\ntimeout_ms = [1]\n", "l", policy.CodeWrongType, "2:14", ""},
		{"constraints string for a number", "[constraints.net]\ntimeout_ms = \"1\"\n", "l", policy.CodeWrongType, "2:14", ""},
		{
			"constraints number for a switch", "[constraints.net]\nallow_redirects = 1\n", "l", policy.CodeWrongType, "2:19",
			"",
		},
		{"constraints negative", "[constraints.net]\ntimeout_ms = -1\n", "l", policy.CodeBadConstraint, "2:14", "0 for none"},
		{
			"constraints unknown version", "[constraints.net]\nmin_tls = \"1.1\"\n", "l", policy.CodeBadConstraint, "2:11",
			"1.3",
		},
		{"constraints methods in 0.1", "[constraints.net]\nmethods = [\"GET\"]\n", "l", policy.CodeNeedsSchema02, "2:11", ""},
		{
			"constraints beside capabilities",
			"[capabilities]\nnet = [\"a.example\"]\n[constraints.net]\nhosts = [\"b.example\"]\n", "l", policy.CodeTwoSpellings,
			"4:1", "keep one",
		},
		{"leases in 0.1", "[leases]\n\"fs:read:/a\" = { max_uses = 1 }\n", "bl", policy.CodeNeedsSchema02, "1:2", ""},
		{
			"lease of no capability", "schema = \"0.2\"\n[leases]\n\"fs\" = { max_uses = 1 }\n", "bl", policy.CodeBadCapability,
			"3:1", "",
		},
		{"lease of nothing", "schema = \"0.2\"\n[leases]\n\"fs:read:/a\" = {}\n", "bl", policy.CodeMissing, "3:16", ""},
		{
			"lease without a zone", "schema = \"0.2\"\n[leases]\n\"fs:read:/a\" = { expires = 2026-12-01T00:00:00 }\n", "bl",
			policy.CodeBadLease, "3:28", "2026",
		},
		{
			"lease that ends in a string", "schema = \"0.2\"\n[leases]\n\"fs:read:/a\" = { expires = \"never\" }\n", "bl",
			policy.CodeWrongType, "3:28", "",
		},
		{
			"lease of a tool", "schema = \"0.2\"\n[leases]\n\"tool:call:memory:kb_put\" = { max_uses = 1 }\n", "bl",
			policy.CodeBadLease, "3:1", "[deny] tools",
		},
		{
			"lease of fewer than no uses", "schema = \"0.2\"\n[leases]\n\"fs:read:/a\" = { max_uses = -1 }\n", "bl",
			policy.CodeBadLease, "3:29", "0 for none",
		},
		{
			"lease unknown key", "schema = \"0.2\"\n[leases]\n\"fs:read:/a\" = { max_uses = 1, expire = 1 }\n", "bl",
			policy.CodeUnknownKey, "3:32", "expires",
		},
		{"another system's tools", "tool_denny = []\n", "l", policy.CodeUnknownKey, "1:1", ""},
		{
			"another system's deny list", "tool_deny = [\"exec__sandboxed_exec\"]\n", "l", policy.CodeMisplacedKey, "1:1",
			"[deny] tools",
		},
		{
			"another system's categories", "categories = [\"file\"]\n", "l", policy.CodeMisplacedKey, "1:1",
			"[visible] categories",
		},
		{"another's name", "name = \"other\"\n", "l", policy.CodeBadName, "1:8", "called"},
		{"schema_version unknown", "schema_version = \"2\"\n", "l", policy.CodeBadSchema, "1:18", "1.0"},
		{"description a number", "description = 1\n", "l", policy.CodeWrongType, "1:15", ""},
		{"profile in a base", "profile = \"operator_full\"\n", "b", policy.CodeUnknownKey, "1:1", ""},
		{"adapters in a base", "allowed_adapters = [\"http\"]\n", "b", policy.CodeUnknownKey, "1:1", ""},
		{"description in a base", "description = \"x\"\n", "b", policy.CodeMisplacedKey, "1:1", "manifest"},
		{"param by number", "[params]\nnotes = 1\n", "l", policy.CodeWrongType, "2:9", ""},
		{"param relative", "[params]\nnotes = \"a/b\"\n", "l", policy.CodeBadPath, "2:9", ""},
		{"param in capitals", "[params]\nNotes = \"/a\"\n", "l", policy.CodeBadParam, "2:1", ""},

		{"limit negative", "[limits]\ncpu_fuel = -1\n", "bl", policy.CodeBadLimit, "2:12", "0 for none"},
		{"limit decimal", "[limits]\ncpu_fuel = 1.0\n", "bl", policy.CodeWrongType, "2:12", ""},
		{"limit a string", "[limits]\ncpu_fuel = \"1\"\n", "bl", policy.CodeWrongType, "2:12", ""},
		{"limit a boolean", "[limits]\nhostcalls_max = true\n", "bl", policy.CodeWrongType, "2:17", ""},
		{"limit not a number", "[limits]\nwall_time_ms = nan\n", "bl", policy.CodeWrongType, "2:16", ""},
		{"limit overflows", "[limits]\ncpu_fuel = 9223372036854775808\n", "bl", policy.CodeSyntax, "2:12", ""},
		{"limit overflows in its unit", "[limits]\nmax_steps = 9223372036854775807\n", "bl", policy.CodeBadLimit, "2:13", ""},
		{"limit under two names", "[limits]\nmax_steps = 1\ncpu_fuel = 1\n", "bl", policy.CodeTwoSpellings, "3:1", ""},
		{"limit unknown", "[limits]\ncpu = 1\n", "bl", policy.CodeUnknownKey, "2:1", ""},
		{"money negative", "[limits]\nmodel_usd = -0.5\n", "bl", policy.CodeBadLimit, "2:13", ""},
		{"money no number", "[limits]\nmodel_usd = nan\n", "bl", policy.CodeBadLimit, "2:13", ""},
		{"money without end", "[limits]\nmodel_usd = inf\n", "bl", policy.CodeBadLimit, "2:13", ""},
		{"money too little", "[limits]\nmodel_usd = 1e-9\n", "bl", policy.CodeBadLimit, "2:13", ""},
	}
}

// Nothing that is not understood is passed over: the document is refused by
// both readings that know it, with one error, in its place, with a hint.
//
//rlp:holds R10 R14 R15 R16 R21 R31 R36 R37 R38 R39 R47 A9 A10 A61 Y14 Y17 Y19
func TestRefusals(t *testing.T) {
	for _, c := range refusals() {
		for _, reading := range c.readings {
			t.Run(fmt.Sprintf("%s/%c", c.name, reading), func(t *testing.T) {
				var findings []policy.Finding
				var refused bool
				if reading == 'b' {
					b, f := policy.ParseBase("f", []byte(c.text), options)
					refused, findings = b == nil, f
				} else {
					o, f := policy.ParseLayer("o", "f", []byte(c.text), options)
					refused, findings = o == nil, f
				}
				errs := errorsOf(findings)
				if !refused || len(errs) != 1 {
					t.Fatalf("refused %v: %v", refused, findings)
				}
				f := errs[0]
				if f.Code != c.code || fmt.Sprintf("%d:%d", f.Line, f.Column) != c.at || f.Path != "f" {
					t.Errorf("got %v, want %s at %s", f, c.code, c.at)
				}
				if !strings.Contains(f.Hint+f.Message, c.hint) {
					t.Errorf("%v does not say %s", f, c.hint)
				}
			})
		}
	}
}

// All problems are reported, not the first.
func TestAllProblems(t *testing.T) {
	_, findings := policy.ParseBase("f",
		[]byte("schema = \"9\"\nnet = []\n[capabilities]\nfs = [\"a\", \"b\", 1]\nkbread = 1\n[limits]\ncpu_fuel = "+
			"-1\n[leases]\n"), options)
	if n := len(errorsOf(findings)); n != 8 {
		t.Errorf("%d errors: %v", n, findings)
	}
	if err := policy.AsError(findings); err == nil || strings.Count(err.Error(), "\n") != 7 {
		t.Errorf("the error has a line for each: %v", err)
	}
	if policy.AsError(nil) != nil {
		t.Error("no findings, no error")
	}
}

// Warnings and infos do not refuse.
//
//rlp:holds R13 R17 R29 C23
func TestWarnings(t *testing.T) {
	opt := options
	opt.Stat = files{"/home/", "/etc/passwd", "/home/op/x/"}.stat
	for _, c := range []struct {
		text string
		code policy.Code
		at   string
		hint string
	}{
		{capabilities(`fs = ["/home/a/.."]`), policy.CodePathDotDot, "2:7", "write /home"},
		{capabilities(`fs = ["/etc/passwd"]`), policy.CodePathIsFile, "2:7", "/etc"},
		{capabilities(`fs = ["/gone"]`), policy.CodePathMissing, "2:7", ""},
		{capabilities(`fs = ["/"]`), policy.CodePathRoot, "2:7", ""},
		{capabilities(`fs = ["/home"]`), policy.CodeFSReadOnly, "2:6", "fs_rw"},
		{capabilities(`fs = ["/home", "/home/"]`), policy.CodeDuplicate, "2:16", ""},
		{capabilities(`fs = ["/ho` + "\u202e" + `me"]`), policy.CodeHiddenChars, "2:7", ""},
		{capabilities(`kb_write = true`), policy.CodeKBWriteAll, "2:12", ""},
		{capabilities(`kb_read = ["contacts_raw"]`), policy.CodeRawAlone, "2:11", "contacts"},
		{capabilities(`exec = true`), policy.CodeExecAny, "2:8", ""},
		{
			"schema = \"0.2\"\n" + capabilities(`exec = ["/usr/bin/grep", "/opt/python3.12", "/usr/bin/env"]`),
			policy.CodeExecOrders, "3:8", "/usr/bin/grep",
		},
		{capabilities(`net = {}`), policy.CodeNoHosts, "2:7", ""},
		{capabilities(`net = { hosts = ["a.example"], allow_http = true }`), policy.CodeAllowHTTP, "2:45", ""},
		{"schema = \"0.2\"\n" + capabilities(`model = ["*"]`), policy.CodeWildcardScope, "3:10", ""},
	} {
		b, findings := policy.ParseBase("f", []byte(c.text), opt)
		found := false
		for _, f := range findings {
			found = found || f.Code == c.code && fmt.Sprintf("%d:%d", f.Line, f.Column) == c.at && strings.Contains(f.Hint,
				c.hint)
		}
		if b == nil || !found {
			t.Errorf("%q: %v", c.text, findings)
		}
	}
	// The file is granted, and not the folder that it lies in.
	if set := base(t, capabilities(`fs = ["/etc/passwd"]`)); !allows(t, set, "fs:read:/etc/passwd") ||
		allows(t, set, "fs:read:/etc/shadow") {
		t.Errorf("a file grants %s", set)
	}
	// A quiet policy has nothing to say, and a path is not looked at unasked.
	for _, text := range []string{
		capabilities(`kb_read = ["contacts"]`), capabilities(`fs_rw = ["/gone"]`),
		capabilities("fs = [\"/a\"]\nfs_rw = [\"/b\"]"), "schema = \"0.2\"\n" + capabilities(`fs = ["/a"]`),
	} {
		if _, f := policy.ParseBase("f", []byte(text), options); len(f) != 0 {
			t.Errorf("%q: %v", text, f)
		}
	}
}

// Which programs take orders is told once for a list, whatever their versions are
// called; a layer grants nothing, and controls only work on data.
func TestProgramsThatTakeOrders(t *testing.T) {
	const head = "schema = \"0.2\"\n"
	text := head + capabilities(`exec = ["/usr/bin/sh", "/usr/bin/python3.12", "/usr/bin/find", "/usr/bin/git", "/usr/bin/grep", "/usr/bin/wc", "/usr/bin/sha256sum"]`)
	told := func(findings []policy.Finding) (list []string) {
		for _, f := range findings {
			if f.Code == policy.CodeExecOrders {
				list = append(list, f.Message)
			}
		}
		return list
	}
	_, findings := policy.ParseBase("f", []byte(text), options)
	want := "/usr/bin/sh runs code that it is given; /usr/bin/python3.12 runs code that it is given; /usr/bin/find " +
		"starts other programs; /usr/bin/git starts hooks and programs that the files of a checkout name"
	if got := told(findings); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, findings := policy.ParseLayer("override:f", "f", []byte(text), options); len(told(findings)) > 0 {
		t.Errorf("of a layer it says %q", told(findings))
	}
}
