package hostcalls

import (
	"encoding/json"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/environ"
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
	ordinary := strings.Fields("LANG LC_ALL TZ USER API_TOKEN AWS_SECRET_ACCESS_KEY GH_TOKEN NODE_ENV GIT_AUTHOR_NAME " +
		"HTTP_PROXY TEXT QTY FOO lang COLUMNS MANAGER DATA_PATH")
	for i, name := range ordinary {
		value := "1"
		if environ.FormOf(name) == nil {
			value = "/usr/share/x"
		}
		if n, d := r.start(name, value); n < 0 || len(f.ran) != i+1 {
			t.Errorf("control: %s: %d %+v", name, n, d)
		}
	}
}

// unknownHint ends what is said of a variable that nothing is known of.
const unknownHint = "is no variable of which rlp knows that no program runs its value: "

// Of most variables nobody knows what programs do with them: they run the words
// of them, with files, arguments and stdin of the agent's. So such a variable is a
// secret or one path, whatever the program gets.
//
//rlp:holds K40
func TestVariablesOfWhichNothingIsKnown(t *testing.T) {
	values := []string{
		"", "x", "1", "true", "sh", "sh -c id", "/bin/sh -s", "-T -TT /bin/sh", "-e code(1)", "pk.mod", "evil",
		"-I/usr/share/x", "x=rc", "@/usr/share/x",
		"/usr/share/x:/usr/share/y", "/usr/share/x /usr/share/y", "/usr/share/x,y", "/usr/share/x;id", "/usr/share/x\n",
		" /usr/share/x", "/usr/share/$x", "/usr/share/`x`",
		"/usr/share/*", "/usr/share/x/", "/usr/share/./x", "/usr//share", "/usr/share/../x", "//usr/share/x", "./rc", "../rc",
		"~/rc", "file:///usr/share/x",
		"/usr/share/\u00e4", "rlsec_abc ", "Bearer rlsec_abc", "rlsec_abcrlsec_abc", "/rlsec_abc,",
		strings.Repeat("x", 100_000),
	}
	for _, grants := range [][]string{nil, {"fs:read:/read"}, {"fs:write:/data"}} {
		r, f := execRig(t, append([]string{"process:exec:*", "env:read:*", "secrets:read:runloop/door/word"}, grants...)...)
		r.host.cfg.Secrets = oneSecret{"rlsec_abc", "hunter2 -c 'id'", "runloop/door/word"}
		for _, name := range []string{"GREP", "DIFF", "ZIPOPT", "AWK", "DJANGO_SETTINGS_MODULE", "CONF", "DATA_PATH"} {
			for _, value := range values {
				if n, d := r.start(name, value); Errno(-n) != Acces || d.Reason != "program_not_permitted" ||
					!strings.HasPrefix(d.Hint, "env."+name+": "+unknownHint) {
					t.Errorf("%s %.99q: %d %+v", name, value, n, d)
				}
				if last := r.log.Decisions[len(r.log.Decisions)-1]; !last.Deny || last.Target != name ||
					last.Reason != "program_not_permitted" {
					t.Errorf("%.99q: recorded %+v", value, last)
				}
			}
		}
		if len(f.ran) != 0 {
			t.Fatalf("ran %v", f.ran)
		}
		for i, value := range []string{"rlsec_abc", "/usr/share/x", "/usr/share/x-1.2_3+4", nullDevice} {
			if n, d := r.start("GREP", value); n < 0 || len(f.ran) != i+1 {
				t.Errorf("control: %q: %d %+v", value, n, d)
			}
		}
	}
	r, f := execRig(t, "process:exec:*", "env:read:*")
	if n, d := r.start("GREP", "rlsec_abc"); n >= 0 || len(f.ran) != 0 {
		t.Errorf("a handle where there are no secrets: %d %+v", n, d)
	}
}

// A path is shown to the program, is data, and leads through nothing that the
// agent may write. Of what the agent may not see it is told nothing.
//
//rlp:holds K40
func TestPathsInVariables(t *testing.T) {
	for _, c := range []struct{ value, says string }{
		{"/usr/share/x", ""},
		{"/usr/missing", "nothing is at /usr/missing"},
		{"/usr/broken", "nobody can tell what /usr/broken leads to"},
		{"/usr/bin", "/usr/bin is a program or a device, or a folder that holds one"},
		{"/usr/bin/grep", "/usr/bin/grep is a program or a device"},
		{"/proc/self/fd/0", "/proc/self/fd/0 is nothing that the program is shown"},
		{"/srv/there", "/srv/there is nothing that the program is shown"},
		{"/", "/ is nothing that the program is shown"},
		{"/read/x", ""},
		{"/read/in/x", "the agent may write /read/in/x"},
		{"/read", "the agent may write /read/in, and so what the program finds by /read"},
		{"/gone/x", "the agent may write /gone/x"},
		{"/data/x", "the agent may write /data/x"},
		{"/etc/link", "the agent may write /data/rc, and so what the program finds by /etc/link"},
		{"/usr/link", "/usr/link is nothing that the program is shown"},
	} {
		r, f := execRig(t, "process:exec:*", "env:read:*", "fs:read:/read", "fs:write:/read/in", "fs:read:/gone",
			"fs:delete:/gone", "fs:read:/data", "fs:write:/data")
		f.links = map[string]string{"/etc/link": "/data/rc", "/usr/link": "/srv/there"}
		n, d := r.start("CONF", c.value)
		if (c.says == "") != (n >= 0) || (n >= 0) != (len(f.ran) == 1) || c.says != "" && !strings.HasPrefix(d.Hint,
			"env.CONF: "+c.says) {
			t.Errorf("%s: %d %+v", c.value, n, d)
		}
	}
	r, _ := execRig(t, "process:exec:*", "env:read:*", "fs:read:/")
	if n, d := r.start("CONF", "/proc/self/fd/0"); n >= 0 || !strings.HasPrefix(d.Hint,
		"env.CONF: /proc/self/fd/0 is in /proc") {
		t.Errorf("%d %+v", n, d)
	}
}

// What is known of a variable passes whatever the program gets, and nothing that a
// program or shell could take there for a path, a command or an expression.
//
//rlp:holds K40
func TestVariablesOfWhichFormsAreKnown(t *testing.T) {
	taken := map[string][]string{
		"PGPASSWORD": {"pa$$w0rd", "", "/data/x", "a b"}, "AWS_SECRET_ACCESS_KEY": {"wJalrXUtnFEMI/K7MDENG/bPxRfi/../x"},
		"GIT_AUTHOR_NAME": {"Ann `A` \\ Lee"}, "GITHUB_TOKEN": {"ghp_abc"},
		"TOKEN": {"Bearer rlsec_abc"}, "TZ": {
			"", "Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3", "<+03>-3", "UTC",
			"/usr/share/zoneinfo/UTC",
		}, "PORT": {"8080"}, "LINES": {"24"},
		"NO_PROXY": {"*.example.com,.local,10.0.0.0/8,[::1]"}, "HTTP_PROXY": {
			"http://u:p@proxy.example.com:8080/",
			"http://h", "h:8080", "socks5h://127.0.0.1:1", "http://u:rlsec_abc@h/",
		},
		"https_proxy": {"http://u:p%24@h:8080/"}, "DEBUG": {"app:*", "1", "a:b,-c:d", "true"},
		"LANG": {"C.UTF-8", "de_DE@euro"}, "LANGUAGE": {"de:en"}, "GIT_AUTHOR_DATE": {
			"2020-01-01T00:00:00+02:00",
			"Mon, 3 Jul 2020 10:00:00 +0200",
		},
		"GOOS": {"linux"}, "GOARCH": {"amd64"}, "CGO_ENABLED": {"0"}, "RUST_BACKTRACE": {"1", "full"},
		"LOG_LEVEL": {"info", "WARN"}, "PKG_VERSION": {"1", "1.2.3-rc1"}, "PGCONNECT_TIMEOUT": {"3"},
		"NPM_CONFIG_LOGLEVEL": {"warn"}, "npm_config_loglevel": {"silly"}, "PYTHONUNBUFFERED": {"1"},
		"PYTHONDONTWRITEBYTECODE": {"1"}, "PIP_NO_COLOR": {"1"}, "RUST_LOG": {"info,my_crate=debug"},
		"PGHOST": {"db.example.com", "::1"}, "PGUSER": {"postgres"}, "PGDATABASE": {"app"}, "TERM": {"xterm-256color"},
		"NO_COLOR": {"1", ""}, "CI": {"true"}, "SOURCE_DATE_EPOCH": {"1700000000"},
	}
	refused := map[string][]string{
		"TZ": {"/data/x", ":/data/x", "../x", "Europe/../../x", ":../x", "a:/x", "$(id)"}, "LANGUAGE": {
			"../../data", "de/x",
			"/data", "de:/data",
		}, "LANG": {"..", "./x", "$x"},
		"LINES": {"a[$(id)]", "x", "0x1", "-1"}, "COLUMNS": {"a[$(id)]", "USER"}, "SOURCE_DATE_EPOCH": {"a[$(id)]"},
		"PORT": {"/data/socket", "sh"}, "VERBOSE": {"PASSWORD", "a[`id`]", "sh"},
		"DEBUG": {"sh", "evil", "*", "sh,app:x", ":x", "/bin/sh", "a:/bin/sh", "sh -c id", "a:b c"}, "QUIET": {"echo"},
		"CI": {"sh"}, "NO_COLOR": {"/data/rc"}, "LOG_LEVEL": {"GIT_AUTHOR_NAME"},
		"HTTP_PROXY": {
			"socks5h://localhost/data/socket", "http://h/data", "/data/x", "file:///data/x", "unix:///data/x",
			"//data", "~/x", "..", "a b", "http://h//",
		},
		"PGHOST": {"/data/socket", "@x/y", "a b"}, "PGDATABASE": {"sslkey=x:y", "postgres://x/y", "host=x"},
		"NO_PROXY": {"/data", "a,/data", "$(id)"}, "GIT_AUTHOR_DATE": {"/data", "`id`"},
		"TERM": {"/data/x", "../x"}, "USER": {"../x", "~bob"}, "GOOS": {"../x", "/data"}, "NODE_ENV": {"../../data/x"},
		"CGO_ENABLED": {"/data"},
	}
	for _, grants := range [][]string{nil, {"fs:read:/data", "fs:write:/data"}} {
		r, f := execRig(t, append([]string{"process:exec:*", "env:read:*", "secrets:read:runloop/door/word"}, grants...)...)
		r.host.cfg.Secrets = oneSecret{"rlsec_abc", "hunter2", "runloop/door/word"}
		for name, values := range taken {
			for _, value := range values {
				before := len(f.ran)
				if n, d := r.start(name, value); n < 0 || len(f.ran) != before+1 {
					t.Errorf("%s %q: %d %+v", name, value, n, d)
				}
			}
		}
		before := len(f.ran)
		for name, values := range refused {
			for _, value := range values {
				if n, d := r.start(name, value); Errno(-n) != Acces || d.Reason != "program_not_permitted" ||
					!strings.HasPrefix(d.Hint, "env."+name+": ") {
					t.Errorf("%s %q: %d %+v", name, value, n, d)
				}
			}
		}
		if len(f.ran) != before {
			t.Errorf("ran %v", f.ran[before:])
		}
	}
	r, _ := execRig(t, "process:exec:*", "env:read:*")
	if _, d := r.start("PORT", "sh"); d.Hint != "env.PORT: takes a number, a secret's handle alone, or one absolute path" {
		t.Errorf("%+v", d)
	}
}

// The variables of an attached tool are held to the same.
func TestVariablesOfToolsAreHeldToTheSame(t *testing.T) {
	grants := append([]string{"env:read:CONF", "fs:write:/data"}, grepGrants...)
	for value, refused := range map[string]bool{
		"/data/rc": true, "sh": true, "/usr/bin/grep": true, "": true,
		"/usr/rc": false,
	} {
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
