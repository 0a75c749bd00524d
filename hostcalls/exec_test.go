package hostcalls

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
)

// fakeExec is an Exec that starts nothing and remembers everything.
type fakeExec struct {
	found   map[string]Program // by the path that is asked for
	sought  []string
	links   map[string]string // for Leads
	ran     []Command
	answers Ended
	err     error
	seesAll bool
	starts  func() // before each program
}

func (f *fakeExec) SeesAll() bool { return f.seesAll }

func (f *fakeExec) Find(path string) (Program, error) {
	f.sought = append(f.sought, path)
	if strings.HasPrefix(path, "/proc/") {
		return Program{}, ErrNoPrograms
	}
	if p, ok := f.found[path]; ok {
		return p, nil
	}
	return Program{}, &Fail{Errno: Noent, Hint: "argv[0]: no such program"}
}

func (f *fakeExec) Leads(path string) ([]string, error) {
	if strings.HasPrefix(path, "/proc/") {
		return nil, ErrNoPrograms
	}
	switch {
	case path == "/usr/broken":
		return nil, errors.New("a circle of links")
	case path == "/usr/missing":
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	case strings.HasPrefix(path, "/usr/bin"):
		return nil, fmt.Errorf("%s: %w", path, ErrNotData)
	}
	if to, ok := f.links[path]; ok {
		return []string{path, to}, nil
	}
	return []string{path}, nil
}

func (f *fakeExec) Shows(path string) bool {
	return path == "/usr" || strings.HasPrefix(path, "/usr/") || path == "/etc/link"
}

func (f *fakeExec) Run(_ context.Context, c *Command) (*Ended, error) {
	if f.starts != nil {
		f.starts()
	}
	own := *c
	own.Stdin, own.Argv, own.Env = bytes.Clone(c.Stdin), slices.Clone(c.Argv), slices.Clone(c.Env)
	f.ran = append(f.ran, own)
	e := f.answers
	return &e, f.err
}

// execRig is a rig whose programs are grep, sh (a link to dash) and box (which
// no policy names by its own name).
func execRig(t testing.TB, grants ...string) (*rig, *fakeExec) {
	t.Helper()
	r := newRig(t, grants...)
	f := &fakeExec{found: map[string]Program{
		"/usr/bin/grep": {File: "/usr/bin/grep", Name: "/usr/bin/grep", Via: []string{"/usr/bin/grep"}},
		"/bin/grep":     {File: "/usr/bin/grep", Name: "/usr/bin/grep", Via: []string{"/bin", "/usr/bin/grep"}},
		"/bin/sh":       {File: "/usr/bin/dash", Name: "/usr/bin/sh", Via: []string{"/bin", "/usr/bin/sh", "/usr/bin/dash"}},
		"/bin/box":      {File: "/usr/bin/dash", Via: []string{"/bin", "/usr/bin/box", "/usr/bin/dash"}},
		"/srv/tool":     {File: "/srv/tool", Name: "/srv/tool", Via: []string{"/srv/tool"}},
		"/usr/linked":   {File: "/opt/tool", Name: "/opt/tool", Via: []string{"/srv/link", "/opt/tool"}},
	}}
	r.host.cfg.Exec = f
	return r, f
}

func execAnswer(t testing.TB, response string) (head map[string]any, body string) {
	t.Helper()
	if len(response) < 4 {
		t.Fatalf("response %q", response)
	}
	n := int(binary.LittleEndian.Uint32([]byte(response)))
	if err := json.Unmarshal([]byte(response[4:4+n]), &head); err != nil {
		t.Fatal(err)
	}
	return head, response[4+n:]
}

//rlp:holds R84 C18 K40
func TestExecRunStartsWhatWasJudged(t *testing.T) {
	r, f := execRig(t, "process:exec:/usr/bin/grep", "process:exec:/usr/bin/dash", "env:read:LANG", "env:read:TERM")
	f.answers = Ended{ExitCode: 3, Stdout: []byte("out"), Stderr: []byte("errors")}
	_, response := r.call(execRunName,
		`{"argv":["/bin/sh","-c","x y"],"env":{"TERM":"dumb","LANG":"C"},"cwd":"sub","timeout_ms":1500}`, "input")
	head, body := execAnswer(t, response)
	if fmt.Sprint(head) != "map[exit_code:3 stderr_bytes:6 stdout_bytes:3 timed_out:false]" || body != "outerrors" {
		t.Errorf("%v, %q", head, body)
	}
	want := Command{
		File: "/usr/bin/dash", Argv: []string{"/usr/bin/sh", "-c", "x y"}, Env: []string{"LANG=C", "TERM=dumb"}, Dir: "sub",
		Stdin: []byte("input"), Timeout: 1500 * time.Millisecond, MaxOutput: MaxExecOutput + maxSecret,
		Holds: r.host.cfg.Gate.Set(),
	}
	if len(f.ran) != 1 || fmt.Sprint(f.ran[0]) != fmt.Sprint(want) {
		t.Errorf("ran %v\nwant %v", f.ran, want)
	}
	f.answers = Ended{ExitCode: 137, TimedOut: true}
	if _, response = r.call(execRunName, `{"argv":["/bin/grep"]}`, ""); !strings.Contains(response, `"timed_out":true`) {
		t.Errorf("%q", response)
	}
	if c := f.ran[1]; c.File != "/usr/bin/grep" || c.Argv[0] != "/usr/bin/grep" || c.Timeout != 30*time.Second ||
		len(c.Env) != 0 {
		t.Errorf("%+v", c)
	}
	var targets []string
	for _, d := range r.log.Decisions {
		targets = append(targets, d.Cap+" "+d.Target)
	}
	if got := strings.Join(targets, ", "); got != "exec.spawn /usr/bin/dash, env.read LANG, env.read TERM, exec.spawn /usr/bin/grep" {
		t.Errorf("recorded %s", got)
	}
}

//rlp:holds K39 K72 C18 C19
func TestExecRunRefusals(t *testing.T) {
	for _, c := range []struct {
		name, request string
		errno         Errno
		reason, says  string
	}{
		{"not granted", `{"argv":["/bin/ls"]}`, Acces, "program_not_permitted", `it would need exec = ["/bin/ls"]`},
		{
			"not there, and not granted", `{"argv":["/no/where"]}`, Acces, "program_not_permitted",
			`it would need exec = ["/no/where"]`,
		},
		{"granted, and not there", `{"argv":["/usr/bin/gone"]}`, Noent, "noent", "no such program"},
		{"another name of a granted file", `{"argv":["/bin/box"]}`, Acces, "program_not_permitted", "by another name"},
		{
			"a file that the agent writes", `{"argv":["/srv/tool"]}`, Acces, "program_not_permitted",
			"the agent may write /srv/tool",
		},
		{
			"a link that the agent writes", `{"argv":["/usr/linked"]}`, Acces, "program_not_permitted",
			"the agent may write /srv/link",
		},
		{
			"a variable that is not granted", `{"argv":["/bin/grep"],"env":{"LANG":"C","HTTP_PROXY":"x"}}`, Acces, "cap_missing",
			`env = ["HTTP_PROXY"]`,
		},
		{"a variable in another case", `{"argv":["/bin/grep"],"env":{"lang":"C"}}`, Acces, "cap_missing", `env = ["lang"]`},
	} {
		r, f := execRig(t, "process:exec:/usr/bin/grep", "process:exec:/usr/bin/dash", "process:exec:/usr/bin/gone",
			"process:exec:/srv/tool", "process:exec:/opt/tool", "fs:write:/srv", "env:read:LANG")
		n, d := r.denial(execRunName, c.request, "")
		if Errno(-n) != c.errno || d.Reason != c.reason || !strings.Contains(d.Hint, c.says) {
			t.Errorf("%s: %d %+v", c.name, n, d)
		}
		if len(f.ran) != 0 {
			t.Errorf("%s: it ran", c.name)
		}
		if _, response := r.call(execRunName, `{"argv":["/bin/grep"]}`, ""); len(f.ran) != 1 {
			t.Errorf("%s: control: %q", c.name, response)
		}
	}
	// who may not start a program does not learn that the agent writes it, or that it is there
	r, f := execRig(t, "process:exec:/usr/bin/grep", "fs:write:/srv")
	for _, path := range []string{"/srv/tool", "/srv/none", "/bin/box"} {
		if n, d := r.denial(execRunName, `{"argv":["`+path+`"]}`, ""); Errno(-n) != Acces || !strings.Contains(d.Hint,
			"policy.caps does not ask for it") {
			t.Errorf("%s: %d %+v", path, n, d)
		}
	}
	if len(f.ran) != 0 {
		t.Errorf("ran %v", f.ran)
	}
}

// A refusal tells where a link leads to nobody but the record.
//
//rlp:holds C18
func TestADenialSpeaksOfThePathThatWasGiven(t *testing.T) {
	for _, c := range []struct{ name, path, grant, deny string }{
		{"not granted", "/bin/sh", "process:exec:/usr/bin/grep", ""},
		{"taken away", "/bin/sh", "process:exec:*", "process:exec:/usr/bin/dash"},
		{"another name", "/bin/box", "process:exec:/usr/bin/dash", ""},
	} {
		r, f := execRig(t, c.grant)
		if c.deny != "" {
			g, err := caps.ParseGrant(c.deny)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.gate.Hold(&caps.Layer{Name: "late", Deny: []caps.Entry{{Grant: g}}}); err != nil {
				t.Fatal(err)
			}
		}
		n, d := r.denial(execRunName, `{"argv":["`+c.path+`"]}`, "")
		if all := fmt.Sprint(d); Errno(-n) != Acces || len(f.ran) != 0 || strings.Contains(all, "dash") ||
			d.Capability != "process:exec:"+c.path {
			t.Errorf("%s: %d %s", c.name, n, all)
		}
		if got := r.log.Decisions[len(r.log.Decisions)-1].Target; got != "/usr/bin/dash" {
			t.Errorf("%s: recorded %s", c.name, got)
		}
	}
	r, f := execRig(t, "process:exec:*") // control: looked for, where something may be started
	if n, d := r.denial(execRunName, `{"argv":["/proc/self/cwd"]}`, ""); Errno(-n) != Acces ||
		d.Reason != "program_not_permitted" || !strings.Contains(d.Hint, "/proc") || len(f.sought) != 1 {
		t.Errorf("%d %+v, sought %v", n, d, f.sought)
	}
	r, f = execRig(t, "env:read:LANG")
	for _, path := range []string{"/bin/sh", "/proc/self/cwd"} {
		if n, d := r.denial(execRunName, `{"argv":["`+path+`"]}`, ""); Errno(-n) != Acces || d.Capability != "process:exec:"+
			path || len(f.sought) != 0 {
			t.Errorf("%s, exec not held: %d %+v, sought %v", path, n, d, f.sought)
		}
	}
}

// What the agent could write when the run began it may have written.
func TestAProgramWrittenBeforeANarrowingIsRefused(t *testing.T) {
	r, f := execRig(t, "process:exec:/srv/tool", "fs:write:/srv")
	if err := r.gate.Hold(&caps.Layer{
		Name:   "late",
		Bounds: []caps.Bound{{Family: caps.FS, Modes: caps.AllModes(caps.FS)}},
	}); err != nil {
		t.Fatal(err)
	}
	if n, d := r.denial(execRunName, `{"argv":["/srv/tool"]}`, ""); Errno(-n) != Acces || len(f.ran) != 0 {
		t.Errorf("%d %+v, ran %v", n, d, f.ran)
	}
}

func TestExecRunSaysWhatIsWrongAndWhere(t *testing.T) {
	r, f := execRig(t, "process:exec:*", "env:read:*")
	for request, says := range map[string]string{
		``:                                      "the request: not JSON: it ends too early",
		`[]`:                                    "the request: an object is wanted",
		`{`:                                     "not JSON",
		`{"argv":["/bin/grep"]} x`:              "stands behind the end",
		`{"argv":["/bin/grep"],"argv":["/x"]}`:  "argv: given twice",
		`{"Argv":["/bin/grep"]}`:                "Argv: no key of a request",
		`{"argv":["/bin/grep"],"shell":true}`:   "shell: no key of a request",
		`{}`:                                    "argv: missing",
		`{"argv":[]}`:                           "argv: missing",
		`{"argv":"/bin/grep"}`:                  "argv: a list of texts",
		`{"argv":null}`:                         "argv: a list of texts",
		`{"argv":["/bin/grep",1]}`:              "argv[1]: a text",
		`{"argv":["/bin/grep",null]}`:           "argv[1]: a text",
		`{"argv":["/bin/grep",["x"]]}`:          "argv[1]: a text",
		`{"argv":["/bin/grep","a\u0000b"]}`:     "argv[1]: has a NUL",
		`{"argv":["/bin/grep","\u0000"]}`:       "argv[1]: has a NUL",
		`{"argv":["/bin/grep","\ud800"]}`:       "argv[1]: half of a character",
		`{"argv":["/bin/grep","\\\\\ud800x"]}`:  "argv[1]: half of a character",
		`{"argv":["/bin/grep","\udc00\ud800"]}`: "argv[1]: half of a character",
		`{"argv":["/bin/grep","\ud800\u0041"]}`: "argv[1]: half of a character",
		`{"argv":["/bin/grep"],"env":{"A\uDfff":"x"}}`:        "env: half of a character",
		`{"argv":["grep"]}`:                                   "argv[0]: must be the absolute path",
		`{"argv":["./grep"]}`:                                 "argv[0]: must be the absolute path",
		`{"argv":["/"]}`:                                      "argv[0]: must be the absolute path",
		`{"argv":["/bin/../bin/grep"]}`:                       "argv[0]: must be the absolute path",
		`{"argv":["/bin//grep"]}`:                             "argv[0]: must be the absolute path",
		`{"argv":["/bin/grep/"]}`:                             "argv[0]: must be the absolute path",
		`{"argv":["/bin/grep"],"cwd":".."}`:                   "cwd: lies in",
		`{"argv":["/bin/grep"],"cwd":"a/../../b"}`:            "cwd: lies in",
		`{"argv":["/bin/grep"],"cwd":1}`:                      "cwd: a text",
		`{"argv":["/bin/grep"],"timeout_ms":-1}`:              "timeout_ms: a whole number",
		`{"argv":["/bin/grep"],"timeout_ms":1.5}`:             "timeout_ms: a whole number",
		`{"argv":["/bin/grep"],"timeout_ms":"1"}`:             "timeout_ms: a whole number",
		`{"argv":["/bin/grep"],"env":[]}`:                     "env: an object",
		`{"argv":["/bin/grep"],"env":{"A":1}}`:                "env.A: a text",
		`{"argv":["/bin/grep"],"env":{"A":"1","A":"2"}}`:      "A: given twice",
		`{"argv":["/bin/grep"],"env":{"A=B":"1"}}`:            "env.A=B: no name",
		`{"argv":["/bin/grep"],"env":{"":"1"}}`:               `env."": no name`,
		`{"argv":["/bin/grep"],"env":{"A":"x\u0000"}}`:        "env.A: has a NUL",
		"{\"argv\":[\"/bin/grep\",\"\xff\"]}":                 "not UTF-8",
		`{"argv":[` + strings.Repeat(`"/x",`, 5000) + `"x"]}`: "argv[4096]: one more than the 4096",
	} {
		n, d := r.denial(execRunName, request, "")
		if Errno(-n) != Inval || d.Reason != "invalid_request" || !strings.Contains(d.Hint, says) {
			t.Errorf("%.80s: %d %+v", request, n, d)
		}
	}
	if len(f.ran) != 0 {
		t.Errorf("ran %v", f.ran)
	}
}

// Whatever env grants, these never come from a request.
//
//rlp:holds K40
func TestVariablesThatSteer(t *testing.T) {
	r, f := execRig(t, "process:exec:*", "env:read:*")
	for _, name := range []string{
		"PATH", "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP",
		"NODE_OPTIONS",
		"RUBYOPT", "PERL5OPT", "PERL5LIB", "BASH_ENV", "ENV", "PROMPT_COMMAND", "IFS", "BASH_FUNC_x%%", "GIT_SSH_COMMAND",
		"GIT_CONFIG_COUNT",
		"HOME", "TMPDIR", "XDG_CONFIG_HOME", "RLP_TENANT", "GLIBC_TUNABLES", "PAGER", "JAVA_TOOL_OPTIONS",
		"TAR_OPTIONS", "RSYNC_RSH", "GOFLAGS", "RUSTC_WRAPPER", "VIMINIT", "EXINIT", "GCC_EXEC_PREFIX", "COMPILER_PATH",
		"ZDOTDIR", "FPATH",
	} {
		if n, d := r.denial(execRunName, `{"argv":["/bin/grep"],"env":{"`+name+`":"x"}}`, ""); Errno(-n) != Inval ||
			!strings.HasPrefix(d.Hint, "env."+name) {
			t.Errorf("%s: %d %+v", name, n, d)
		}
	}
	if _, _ = r.call(execRunName, `{"argv":["/bin/grep"],"env":{"LANG":"x","TZ":"","HTTP_PROXY":"y"}}`, ""); len(f.ran) != 1 || len(f.ran[0].Env) != 3 {
		t.Errorf("control: %+v", f.ran)
	}
}

func TestExecSpawns(t *testing.T) {
	r, f := execRig(t, "process:exec:/usr/bin/grep")
	r.host.budget.Bound(caps.Limits{}.With(caps.ExecSpawns, 2))
	_, _ = r.denial(execRunName, `{"argv":["/bin/sh"]}`, "") // what is not started does not count
	for range 2 {
		_, _ = r.call(execRunName, `{"argv":["/bin/grep"]}`, "")
	}
	n, d := r.denial(execRunName, `{"argv":["/bin/grep"]}`, "")
	if Errno(-n) != Dquot || d.Reason != "budget_exhausted" || !strings.Contains(d.Hint, "exec_spawns") ||
		len(f.ran) != 2 {
		t.Errorf("%d %+v, ran %d", n, d, len(f.ran))
	}
	if n, d := r.denial(execRunName, `{"argv":["/bin/sh"]}`, ""); Errno(-n) != Acces {
		t.Errorf("not granted, and nothing left: %d %+v", n, d)
	}
}

func TestExecTroubleIsNotSpelledOut(t *testing.T) {
	r, f := execRig(t, "process:exec:/usr/bin/grep")
	f.err = errors.New("making /secret/place: no")
	if n, d := r.denial(execRunName, `{"argv":["/bin/grep"]}`, ""); Errno(-n) != IO || strings.Contains(d.Hint, "secret") {
		t.Errorf("%d %+v", n, d)
	}
	f.err = &Fail{Errno: Inval, Hint: "cwd: no folder"}
	if n, d := r.denial(execRunName, `{"argv":["/bin/grep"]}`, ""); Errno(-n) != Inval || d.Hint != "cwd: no folder" {
		t.Errorf("%d %+v", n, d)
	}
	r.host.cfg.Exec = nil
	if n, d := r.denial(execRunName, `{"argv":["/usr/bin/grep"]}`, ""); Errno(-n) != Notsup || d.Reason != "unavailable" {
		t.Errorf("%d %+v", n, d)
	}
}

// oneSecret is a vault with one secret in it.
type oneSecret struct{ handle, value, id string }

func (o oneSecret) Handle(_ context.Context, id string) (string, error) {
	if id != o.id {
		return "", fs.ErrNotExist
	}
	return o.handle, nil
}

func (o oneSecret) Named(text string) []string {
	if strings.Contains(text, o.handle) {
		return []string{o.handle}
	}
	return nil
}

func (o oneSecret) Fill(text string, admit func(id string) error) (string, error) {
	if !strings.Contains(text, o.handle) {
		return text, nil
	}
	if err := admit(o.id); err != nil {
		return "", err
	}
	return strings.ReplaceAll(text, o.handle, o.value), nil
}

func (o oneSecret) Scrub(p []byte, _ func(id string)) []byte {
	return bytes.ReplaceAll(p, []byte(o.value), []byte("[secret]"))
}

func (o oneSecret) Sending(string, string) error { return nil }

func (o oneSecret) Hear(context.Context, string, []string) error { return nil }

func (o oneSecret) Knows() bool { return true }

func (o oneSecret) Stream(func(id string)) func(p []byte, end bool) []byte {
	return func(p []byte, _ bool) []byte { return o.Scrub(p, nil) }
}

func TestSecretsGoIntoVariablesAndDoNotComeBack(t *testing.T) {
	id := "runloop/mail/key"
	vault := oneSecret{"rlsec_abc", "hunter2hunter2", id}
	r, f := execRig(t, "process:exec:/usr/bin/grep", "env:read:TOKEN", "secrets:read:"+id)
	r.host.cfg.Secrets = vault
	f.answers = Ended{Stdout: []byte("token is hunter2hunter2."), Stderr: []byte("hunter2hunter2")}
	request := `{"argv":["/bin/grep","rlsec_abc"],"env":{"TOKEN":"Bearer rlsec_abc"}}`
	_, response := r.call(execRunName, request, "rlsec_abc")
	head, body := execAnswer(t, response)
	if body != "token is [secret].[secret]" || head["stdout_bytes"] != 18.0 || head["stderr_bytes"] != 8.0 {
		t.Errorf("%v %q", head, body)
	}
	if c := f.ran[0]; c.Env[0] != "TOKEN=Bearer hunter2hunter2" || c.Argv[1] != "rlsec_abc" ||
		string(c.Stdin) != "rlsec_abc" {
		t.Errorf("%+v", c)
	}
	// taken away
	r, f = execRig(t, "process:exec:/usr/bin/grep", "env:read:TOKEN")
	r.host.cfg.Secrets = vault
	if n, d := r.denial(execRunName, request, ""); Errno(-n) != Acces || len(f.ran) != 0 {
		t.Errorf("not granted: %d %+v, ran %v", n, d, f.ran)
	}
	// a value that the cut goes through leaves no beginning of it
	r, f = execRig(t, "process:exec:/usr/bin/grep")
	r.host.cfg.Secrets = vault
	for _, filler := range []int{MaxExecOutput - 5, MaxExecOutput + maxSecret - 5} {
		all := append(bytes.Repeat([]byte("x"), filler), "hunter2hunter2"...)
		f.answers = Ended{Stdout: all[:min(len(all), MaxExecOutput+maxSecret)], StdoutCut: len(all) > MaxExecOutput+maxSecret}
		_, response = r.call(execRunName, `{"argv":["/bin/grep"]}`, "")
		head, body = execAnswer(t, response)
		if strings.Contains(body, "hunt") || len(body) > MaxExecOutput || head["stdout_bytes"] != float64(len(body)) ||
			head["stdout_truncated"] != true {
			t.Errorf("%d: %v, %d bytes, ends in %q", filler, head, len(body), body[len(body)-20:])
		}
	}
	many := bytes.Repeat([]byte("hunter2hunter2"), 1<<20)[:MaxExecOutput+maxSecret] // marks are shorter
	f.answers = Ended{Stdout: many, StdoutCut: true}
	_, response = r.call(execRunName, `{"argv":["/bin/grep"]}`, "")
	if _, body = execAnswer(t, response); strings.Contains(body, "hun") {
		t.Errorf("ends in %q", body[len(body)-20:])
	}
}

func FuzzExecRun(f *testing.F) {
	for _, s := range []string{
		`{"argv":["/bin/grep","x"],"env":{"LANG":"C"},"cwd":"a","timeout_ms":1}`, `{"argv":["/bin/sh"]}`, `{"argv":[]}`,
		`{"env":{"PATH":""}}`, "\xff", `{"argv":["/bin/grep"`,
	} {
		f.Add(s, "in")
	}
	f.Fuzz(func(t *testing.T, request, stdin string) {
		if len(request)+len(stdin) > 1<<15 {
			return
		}
		r, x := execRig(t, "process:exec:/usr/bin/grep", "env:read:LANG")
		n, _ := r.call(execRunName, request, stdin)
		for _, c := range x.ran {
			if c.File != "/usr/bin/grep" || n < 0 || !json.Valid([]byte(request)) || string(c.Stdin) != stdin {
				t.Errorf("%q ran %+v", request, c)
			}
			for _, v := range c.Env {
				if !strings.HasPrefix(v, "LANG=") {
					t.Errorf("%q: %q", request, v)
				}
			}
			for _, word := range append(slices.Clone(c.Argv), c.Dir) {
				if strings.IndexByte(word, 0) >= 0 || word == ".." {
					t.Errorf("%q: %q", request, word)
				}
			}
		}
		if n >= 0 && len(x.ran) != 1 {
			t.Errorf("%q: answered %d, ran %d", request, n, len(x.ran))
		}
	})
}

// The operator says how much of each stream an agent gets, at most.
//
//rlp:holds K64
func TestStreamsAreAsLongAsTheOperatorSays(t *testing.T) {
	r, f := execRig(t, "process:exec:/usr/bin/grep")
	for _, c := range []struct {
		most, out, err int
		cutOut, cutErr any
	}{{0, 3000, 2000, nil, nil}, {3000, 3000, 2000, nil, nil}, {2999, 2999, 2000, true, nil}, {
		1000, 1000, 2000, true,
		nil,
	}, {2 * MaxExecOutput, 3000, 2000, nil, nil}} {
		f.answers = Ended{
			ExitCode: 137, OutOfMemory: true, Stdout: bytes.Repeat([]byte("x"), 3000),
			Stderr: make([]byte, 2000), StdoutMax: c.most,
		}
		_, response := r.call(execRunName, `{"argv":["/bin/grep"]}`, "")
		head, body := execAnswer(t, response)
		if len(body) < c.out || head["stdout_bytes"] != float64(c.out) || head["stderr_bytes"] != float64(c.err) ||
			head["stdout_truncated"] != c.cutOut || head["stderr_truncated"] != c.cutErr || head["out_of_memory"] != true {
			t.Errorf("%+v: %v, %d bytes", c, head, len(body))
		}
	}
}

// However much the operator says, a guest gets no more than the bound; of what was
// cut so much less that no beginning of a value is left.
func TestStreamsAreBounded(t *testing.T) {
	h := &redactor{cfg: &Config{}}
	for _, c := range []struct {
		long, most, kept int
		cut, truncated   bool
	}{
		{MaxExecOutput, 2 * MaxExecOutput, MaxExecOutput, false, false},
		{MaxExecOutput + 1, 2 * MaxExecOutput, MaxExecOutput, false, true},
		{maxSecret + 100, 0, 100, true, true},
		{maxSecret, 0, 0, true, true},
		{10, 0, 0, true, true},
	} {
		if kept, truncated := h.output(make([]byte, c.long), c.cut, c.most); len(kept) != c.kept || truncated != c.truncated {
			t.Errorf("%+v: %d bytes, %v", c, len(kept), truncated)
		}
	}
}

// A request of so many bytes is read, a longer one is not.
func TestProgramRequestsAreBounded(t *testing.T) {
	r, f := execRig(t, "process:exec:/usr/bin/grep")
	r.mem = make([]byte, 2<<20)
	const request = `{"argv":["/bin/grep"]}`
	for i, want := range []Errno{0, TooBig} {
		if n, _ := r.call(execRunName, request+strings.Repeat(" ", MaxExecRequest-len(request)+i), ""); want == 0 && n < 0 ||
			want != 0 && Errno(-n) != want || len(f.ran) != 1 {
			t.Errorf("%d bytes more than the most: %d, ran %v", i, n, f.ran)
		}
	}
}

// A value with a NUL ends no variable: the program is not started.
func TestAValueEndsNoVariable(t *testing.T) {
	for _, value := range []string{"\x00", "a\x00LD_PRELOAD=x"} {
		r, f := execRig(t, "process:exec:/usr/bin/grep", "env:read:TOKEN", "secrets:read:runloop/mail/key")
		r.host.cfg.Secrets = oneSecret{"rlsec_abc", value, "runloop/mail/key"}
		if n, d := r.start("TOKEN", "rlsec_abc"); Errno(-n) != Inval || !strings.Contains(d.Hint,
			"TOKEN: the secret has a NUL") || len(f.ran) != 0 {
			t.Errorf("%q: %d %+v, ran %v", value, n, d, f.ran)
		}
	}
}

// Nothing is started, nor sent, without the word of the gate, nor where it cannot
// be said what the program gets.
func TestNothingHappensWithoutAPermit(t *testing.T) {
	r, f := execRig(t, "process:exec:/usr/bin/grep", "fs:read:/data")
	q := &execReq{program: f.found["/bin/grep"], argv: []string{"/bin/grep"}}
	if _, err := r.host.runProgram(t.Context(), gate.Permit{}, q); !errors.Is(err, errDenied) {
		t.Errorf("a program: %v", err)
	}
	x := &exchange{h: r.host, ctx: t.Context()}
	if _, err := x.send(gate.Permit{}); !errors.Is(err, errDenied) {
		t.Errorf("a request: %v", err)
	}
	op, err := r.gate.Op(execRunName)
	if err != nil {
		t.Fatal(err)
	}
	a := r.gate.Admit(op, caps.Request{Family: caps.Exec, Name: "/usr/bin/grep"}, "", nil)
	if !a.OK() {
		t.Fatal("control: refused")
	}
	for _, untrusted := range []string{"", "fs:read:/data"} {
		if untrusted != "" {
			r.host.cfg.Sources.Untrusted, err = caps.Base([]caps.Entry{{Grant: grantOf(t, untrusted)}}, caps.Limits{})
			if err != nil {
				t.Fatal(err)
			}
		}
		q.within = &caps.Layer{
			Name:  "bad",
			Allow: []caps.Entry{{Grant: caps.Grant{Family: caps.FS, Modes: caps.Modes(caps.Read), Scope: "no path"}}},
		}
		if _, err := r.host.runProgram(t.Context(), a.Permit, q); err == nil || !strings.Contains(err.Error(),
			"narrowing by bad") || len(f.ran) != 0 {
			t.Errorf("%q: %v, ran %v", untrusted, err, f.ran)
		}
	}
	q.within = nil
	if _, err := r.host.runProgram(t.Context(), a.Permit, q); err != nil || len(f.ran) != 1 {
		t.Errorf("control: %v, ran %v", err, f.ran)
	}
}

// A program that was given a folder has it to its end: that comes no later than
// the end of the first lease of files.
func TestAProgramEndsWithTheFirstLease(t *testing.T) {
	base, err := caps.Base([]caps.Entry{{Grant: caps.Grant{
		Family: caps.FS, Modes: caps.AllModes(caps.FS),
		Scope: "/data",
	}}}, caps.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{cfg: Config{Now: func() int64 { return 1000 * int64(time.Millisecond) }}}
	for ends, want := range map[int64]time.Duration{
		caps.Forever: time.Minute, caps.Forever - 1: time.Minute, 1500: 500 * time.Millisecond, 1000: time.Millisecond,
		5: time.Millisecond,
	} {
		l := &caps.Layer{Name: "l", Leases: []caps.Lease{{Entry: caps.Entry{Grant: caps.Grant{
			Family: caps.FS,
			Modes:  caps.Modes(caps.Read), Scope: "/data/x",
		}}, Expires: ends, MaxUses: caps.Unbounded}}}
		set, _, err := base.Narrow(l)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&execution{h: h, holds: set}).whileLeased(time.Minute); got != want {
			t.Errorf("a lease until %d leaves %v, want %v", ends, got, want)
		}
	}
}
