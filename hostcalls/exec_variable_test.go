package hostcalls

import (
	"encoding/json"
	"strings"
	"testing"

	"runloop.dev/rlp/caps"
)

// start asks for grep with one variable.
func (r *rig) start(name, value string) (int64, answerJSON) {
	r.t.Helper()
	text, err := json.Marshal(map[string]any{"argv": []string{"/bin/grep"}, "env": map[string]string{name: value}})
	if err != nil {
		r.t.Fatal(err)
	}
	n, response := r.call(execRunName, string(text), "")
	var d answerJSON
	if n < 0 {
		if err := json.Unmarshal([]byte(response), &d); err != nil {
			r.t.Fatalf("%q: %v", response, err)
		}
	}
	return n, d
}

// Whatever env grants, what steers a program is refused by its name, in whatever
// case it is written, and whatever its value.
//
//rlp:holds K40
func TestSteeringVariablesInAnyCase(t *testing.T) {
	r, f := execRig(t, "process:exec:*", "env:read:*")
	for _, name := range strings.Fields(`
		WGETRC CC CXX GOROOT CURL_HOME GNUPGHOME GTK_MODULES QT_PLUGIN_PATH SASL_PATH KRB5_CONFIG KRB5CCNAME AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_CA_BUNDLE
		HGRCPATH HGEDITOR NPM_CONFIG_SCRIPT_SHELL NODE_REPL_EXTERNAL_MODULE GIT_CONFIG_PARAMETERS GIT_EXEC_PATH GIT_SSH GIT_PAGER LD_PRELOAD PYTHONSTARTUP PYTHONWARNINGS
		PYENV_ROOT LESS LESSOPEN MANPAGER SYSTEMD_PAGER MY_PAGER MYEDITOR SUDO_ASKPASS FOO_COMMAND X_CMD JAVA_OPTS MAVEN_OPTS CFLAGS LDFLAGS GOCACHEPROG GOAUTH GODEBUG
		PSQLRC PSQL_HISTORY NANORC M4PATH DEPENDENCIES_OUTPUT SUNPRO_DEPENDENCIES
		SSLKEYLOGFILE OPENSSL_CONF KUBECONFIG DOCKER_CONFIG PIP_INDEX_URL CARGO_HOME RUSTC_WRAPPER TMP ZDOTDIR PERL5DB R_PROFILE VIMINIT MAILRC CVS_RSH SVN_SSH TZDIR`) {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name[:1]) + strings.ToLower(name[1:])} {
			if n, d := r.start(spelled, "1"); Errno(-n) != Inval || !strings.HasPrefix(d.Hint, "env."+spelled+": decides") {
				t.Errorf("%s: %d %+v", spelled, n, d)
			}
		}
	}
	if len(f.ran) != 0 {
		t.Errorf("ran %v", f.ran)
	}
	ordinary := strings.Fields("LANG LC_ALL TZ USER API_TOKEN AWS_SECRET_ACCESS_KEY GH_TOKEN NODE_ENV GIT_AUTHOR_NAME HTTP_PROXY TEXT QTY FOO lang COLUMNS MANAGER DATA_PATH")
	for i, name := range ordinary {
		if n, d := r.start(name, "1"); n < 0 || len(f.ran) != i+1 {
			t.Errorf("control: %s: %d %+v", name, n, d)
		}
	}
}

// A variable that steers nothing by its name is passed on when its value leads to
// nothing that the agent may write, however a program may take it apart.
//
//rlp:holds K40
func TestValuesThatLeadToTheAgentsFiles(t *testing.T) {
	r, f := execRig(t, "process:exec:*", "env:read:*", "fs:write:/data", "fs:delete:/gone", "fs:write:/odd,a=b c", "fs:read:/read")
	f.links = map[string]string{"/etc/link": "/data/rc"}
	f.files = []string{"rc"}
	for _, value := range []string{
		"/data", "/data/", "/data/rc", "//data/rc", "/data/./rc", "/etc/../data/rc", "/read/../data/rc", "/", "/gone/rc", "/etc/link",
		"/usr/lib:/data/lib", "/usr/lib;/data/lib", "--config=/data/rc", "-c /data/rc", "-I/data", "@/data/rc", "!/data/x", "a,/data/rc", `"/data/rc"`, "'/data/rc'",
		`{"plugin":"/data/rc"}`, `{"plugin":"\u002fdata"}`, "x\n/data/rc", "(/data/rc)", "rc|/data/run", "a&/data/run", "file:///data/rc", "FILE:/data/rc", "file://localhost/usr/x",
		"a=%2Fdata%2Frc", "~/rc", "x:~/rc", "~root/rc", "$HOME/rc", "${TMPDIR}/rc", "x$HOME", "`id`", "$(id)", "unix:/data/socket", "sqlite:////data/x", "jar:/data/x.jar",
		"/odd,a=b c", "/odd,a=b c/rc", "x:/odd,a=b c/rc:/etc",
		".", "./rc", "..", "../rc", "a/../rc", "/usr:.", "rc", "rc/x", "x=rc", "/usr/lib:rc", ",/usr/x:rc", "/proc/self/fd/0", "x:/proc/self/environ",
	} {
		if n, d := r.start("CONF", value); Errno(-n) != Acces || d.Reason != "program_not_permitted" || !strings.HasPrefix(d.Hint, "env.CONF: ") {
			t.Errorf("%q: %d %+v", value, n, d)
		}
		if last := r.log.Decisions[len(r.log.Decisions)-1]; !last.Deny || last.Target != "CONF" || last.Reason != "program_not_permitted" {
			t.Errorf("%q: recorded %+v", value, last)
		}
	}
	if n, d := r.start("DATA_PATH", "/usr/lib:"); n >= 0 || !strings.Contains(d.Hint, "empty element") {
		t.Errorf("%d %+v", n, d)
	}
	if n, d := r.start("CONF", strings.Repeat("a ", 3*maxWords)); n >= 0 || !strings.Contains(d.Hint, "words") {
		t.Errorf("%d %+v", n, d)
	}
	if len(f.ran) != 0 {
		t.Fatalf("ran %v", f.ran)
	}
	for i, value := range []string{"", "/usr/share/x", "/usr/lib:/usr/share", "/database", "/read/x", strings.Repeat("x", 100_000)} {
		if n, d := r.start("CONF", value); n < 0 || len(f.ran) != i+1 {
			t.Errorf("control: %.99q: %d %+v", value, n, d)
		}
	}
	if n, _ := r.start("NO_COLOR", "/data/rc"); n < 0 {
		t.Error("control: what is harmless whatever its value")
	}
}

// Why a value is refused is said, and bounds are the last of what is taken.
func TestRefusedValuesSayWhy(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"CONF", "$HOME/rc", "has $ in it"},
		{"CONF", "a=%2Fdata%2Frc", "has %2f in it"},
		{"CONF", "~/rc", "~/rc depends on who reads it"},
		{"CONF", "/usr/../data", "/usr/../data has .. in it"},
		{"CONF", "/proc/self/fd/0", "/proc/self/fd/0 is in /proc"},
		{"CONF", "/broken", "nobody can tell where /broken leads"},
		{"CONF", "./rc", "./rc is in the working folder"},
		{"CONF", "rc/x", "rc/x is in the working folder"},
		{"CONF", "other", "other can be the name of a file in /data"},
		{"CONF", "/data/" + strings.Repeat("x", maxPath-len("/data/")), "the agent may write /data/x"},
		{"CONF", "/data/" + strings.Repeat("x", maxPath-len("/data/")+1), ""},
		{"LANG", strings.Repeat("a ", maxWords-1), ""},
		{"LANG", strings.Repeat("a ", maxWords), "holds more than 4096 words"},
	} {
		r, f := execRig(t, "process:exec:*", "env:read:*", "fs:write:/data")
		f.files = []string{"rc"}
		r.host.cfg.Secrets = oneSecret{"rlsec_abc", "hunter2", "runloop/door/word"} // and none of these is its handle
		n, d := r.start(c.name, c.value)
		if (c.says == "") != (n >= 0) || c.says != "" && !strings.HasPrefix(d.Hint, "env."+c.name+": "+c.says) {
			t.Errorf("%s %.40q: %d %+v", c.name, c.value, n, d)
		}
	}
	for _, c := range []struct {
		name, value string
		refused     bool
	}{{"DATA_PATH", "/usr/lib:", true}, {"DATA_PATH", "/usr/lib", false}, {"CONF", "/usr/lib::x", false}} {
		r, _ := execRig(t, "process:exec:*", "env:read:*") // no folder of the agent's but the run's
		if n, d := r.start(c.name, c.value); (n < 0) != c.refused || c.refused && !strings.Contains(d.Hint, "empty element") {
			t.Errorf("%s %q: %d %+v", c.name, c.value, n, d)
		}
	}
}

// A word without a slash is the name of a file in whatever folder a program is told
// to work in. Where it can be one that the agent may write, it is passed on in none
// but the variables of which it is known that programs take no file by them.
//
//rlp:holds K40
func TestWordsAreRelativePaths(t *testing.T) {
	words := []string{
		"x", "1", "true", "en_US.UTF-8", "Europe/Berlin", "text/html", "https://example.com/a/b?c=d", "xterm-256color", "a b, c.",
		"--config=/etc/x", `{"a":[1,2.5],"b":"/usr/x"}`, "10.0.0.1:80", "rcs", "2026-11-23", "...", "/usr/lib:x", "a/rlsec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	}
	for name, c := range map[string]struct {
		grants  []string
		seesAll bool
		refused bool
	}{
		"no folder":                            {nil, false, false},
		"a folder to read":                     {[]string{"fs:read:/read"}, false, false},
		"a folder to write":                    {[]string{"fs:write:/data"}, false, true},
		"a folder to delete in":                {[]string{"fs:delete:/data"}, false, true},
		"a folder to read with one to write":   {[]string{"fs:read:/read", "fs:write:/read/in"}, false, true},
		"a folder to read, another to write":   {[]string{"fs:read:/aaa", "fs:write:/data"}, false, true},
		"all of the host's, none of them here": {nil, true, false},
	} {
		for _, word := range words {
			r, f := execRig(t, append([]string{"process:exec:*", "env:read:*"}, c.grants...)...)
			f.seesAll = c.seesAll
			n, d := r.start("CONF", word)
			if c.refused != (Errno(-n) == Acces && d.Reason == "program_not_permitted" && strings.Contains(d.Hint, "can be the name of a file in /")) || c.refused != (len(f.ran) == 0) {
				t.Errorf("%s: %q: %d %+v", name, word, n, d)
			}
			if n, d := r.start("debug", word); n < 0 {
				t.Errorf("%s: DEBUG %q: %d %+v", name, word, n, d)
			}
		}
	}
	r, _ := execRig(t, "process:exec:*", "env:read:*", "fs:write:/data")
	if n, d := r.start("CONF", "/usr/lib:"); n >= 0 || !strings.Contains(d.Hint, "empty element") {
		t.Errorf("%d %+v", n, d)
	}
	r.host.cfg.Secrets = oneSecret{"rlsec_abc", "x", "runloop/door/word"}
	if n, d := r.start("CONF", "rlsec_abc"); Errno(-n) == Acces && d.Reason == "program_not_permitted" {
		t.Errorf("a handle, in the place of which the value comes: %+v", d)
	}
}

// A tool that is given none of the run's files works in none of their folders,
// unless programs see all files. Paths into what the agent may write stay refused.
func TestWordsOfToolsWithoutFiles(t *testing.T) {
	for _, c := range []struct {
		files, value string
		seesAll      bool
		refused      bool
	}{
		{"", "x", false, false},
		{"fs:write:/data", "x", false, true},
		{"", "x", true, true},
		{"", "-I/data/rc", false, true},
		{"", "-I/usr/rc", false, false},
		{"", "x:/odd,a=b c/rc:/etc", false, true},
		{"", "x:/even,a=b c/rc:/etc", false, false},
	} {
		tool := grepTool()
		own := *tool.Program
		tool.Program, own.Env = &own, []ToolField{{Name: "CONF", Parts: []ToolPart{{Text: c.value}}}}
		tool.Files = &caps.Layer{Name: "tool", Bounds: []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}}}
		if c.files != "" {
			tool.Files.Allow = []caps.Entry{{Grant: grantOf(t, c.files)}}
		}
		r, f := toolRig(t, tool, append([]string{"env:read:CONF", "fs:write:/data", "fs:write:/odd,a=b c", "process:exec:/data/tool"}, grepGrants...)...)
		f.seesAll = c.seesAll
		if n, out := r.use("count", `{}`); (n < 0) != c.refused || (len(f.ran) == 0) != c.refused {
			t.Errorf("%+v: %d %s", c, n, out)
		}
	}
}

// The variables of an attached tool are held to the same.
func TestVariablesOfToolsAreHeldToTheSame(t *testing.T) {
	grants := append([]string{"env:read:CONF", "fs:write:/data"}, grepGrants...)
	for value, refused := range map[string]bool{"/data/rc": true, "/usr/rc": false} {
		tool := grepTool()
		own := *tool.Program
		tool.Program, own.Env = &own, []ToolField{{Name: "CONF", Parts: []ToolPart{{Text: value}}}}
		r, f := toolRig(t, tool, grants...)
		n, out := r.use("count", `{}`)
		if (n < 0) != refused || (len(f.ran) == 0) != refused || refused && !strings.Contains(out, "program_not_permitted") {
			t.Errorf("%s: %d %s", value, n, out)
		}
	}
	tool := grepTool()
	tool.Program.Env = []ToolField{{Name: "wgetrc"}}
	if err := tool.Check(); err == nil {
		t.Error("a steering variable in small letters was taken")
	}
}
