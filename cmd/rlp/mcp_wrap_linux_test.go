//lint:file-ignore SA1019 versions of the protocol that clients and servers speak today have it

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/effect/mcpclient/mcptest"
)

// A wrapped is a home of its own, and the client of a server that is behind it.
type wrapped struct {
	t          *testing.T
	env        []string
	home, work string
	tool       string // the program that is each kind of server
	opt        mcp.ClientOptions
	name       string // of the client
	speaks     string // the version of the protocol; "": the newest

	mu      sync.Mutex
	notices []string
	said    heard // on stderr
}

// heard is what several processes say at once.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func wrappedHome(t *testing.T) *wrapped {
	t.Helper()
	w := &wrapped{t: t, work: t.TempDir(), name: "test", speaks: "2025-11-25"}
	w.home = filepath.Join(w.work, ".runloop")
	w.env = append(os.Environ(), "HOME="+w.work, "RUNLOOP_HOME="+w.home)
	var err error
	if w.tool, err = exec.LookPath("mcptool"); err != nil {
		t.Fatal(err)
	}
	return w
}

// file writes a file of the home.
func (w *wrapped) file(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// client is one of rlp mcp wrap hub with more arguments, or, without any, of the
// server itself.
func (w *wrapped) client(kind string, args ...string) *mcp.ClientSession {
	w.t.Helper()
	c := exec.Command(w.tool, kind)
	if len(args) > 0 {
		c = rlpWrap(w, "hub", kind, args[1:]...)
	}
	return w.started(c)
}

// rlpWrap is rlp in front of a server of the kind by another name.
func rlpWrap(w *wrapped, name, kind string, args ...string) *exec.Cmd {
	return exec.Command("rlp", slices.Concat([]string{"mcp", "wrap", name}, args, []string{"--", w.tool, kind})...)
}

// started is the client of the server that a command starts.
func (w *wrapped) started(c *exec.Cmd) *mcp.ClientSession {
	w.t.Helper()
	opt := w.opt
	opt.LoggingMessageHandler = func(_ context.Context, r *mcp.LoggingMessageRequest) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notices = append(w.notices, fmt.Sprint(r.Params.Data))
	}
	c.Env, c.Stderr, c.Dir = w.env, &w.said, "/"
	client := mcp.NewClient(&mcp.Implementation{Name: w.name, Version: "1"}, &opt)
	client.AddRoots(&mcp.Root{URI: "file:///home/somebody"})
	cs, err := client.Connect(w.t.Context(), &mcp.CommandTransport{Command: c, TerminateDuration: 20 * time.Second},
		&mcp.ClientSessionOptions{ProtocolVersion: w.speaks})
	if err != nil {
		w.t.Fatalf("%v: %s", err, &w.said)
	}
	w.t.Cleanup(func() { _ = cs.Close() })
	return cs
}

const behind = "behind rlp"

// says is the text of a call's answer, and whether it is an error.
func (w *wrapped) says(cs *mcp.ClientSession, tool, text string) (string, bool) {
	w.t.Helper()
	r, err := cs.CallTool(w.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": text}})
	if err != nil {
		return err.Error(), true
	}
	said := ""
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			said += t.Text
		}
	}
	return said, r.IsError
}

func (w *wrapped) tools(cs *mcp.ClientSession) []string {
	w.t.Helper()
	list, err := cs.ListTools(w.t.Context(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// A stock client works with a server behind rlp as with the server: tools, prompts,
// resources, instructions. What a layer takes is not in the list, and refused by its
// name with a notice; every call is in the log, and the session is a run.
func TestAServerBehindAPolicy(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	open := w.client("rich", behind)
	if all := w.tools(open); !slices.Contains(all, "echo") || !slices.Contains(all, "poison") || len(all) != 13 {
		t.Errorf("control: without a layer it offers %q", all)
	}
	if said, failed := w.says(open, "poison", ""); failed || said != mcptest.Injection {
		t.Errorf("control: %q", said)
	}
	if hello := open.InitializeResult(); !strings.HasPrefix(hello.Instructions, "Use it well. (rich)\n\nrlp stands") {
		t.Errorf("instructions %q", hello.Instructions)
	}
	who := map[string]string{"who": "Ann"}
	prompt, err := open.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: who})
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Greet Ann" {
		t.Errorf("%v %v", prompt, err)
	}
	for _, uri := range []string{"test://page", "test://pages/7"} {
		if r, err := open.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil ||
			r.Contents[0].Text != mcptest.Secret {
			t.Errorf("%s: %v %v", uri, r, err)
		}
	}
	if err := open.Close(); err != nil {
		t.Errorf("it ended with %v: %s", err, &w.said)
	}

	w.file("caps/overrides/hub.toml", "[deny]\ntools = [\"mcp:hub/poison\", \"mcp:hub/resources/read\"]\n")
	narrow := w.client("rich", behind)
	if all := w.tools(narrow); slices.Contains(all, "poison") || len(all) != 12 {
		t.Errorf("it offers %q", all)
	}
	if narrow.InitializeResult().Capabilities.Resources != nil {
		t.Error("it offers resources")
	}
	said, failed := w.says(narrow, "poison", "")
	if !failed || !strings.Contains(said, "tool_hidden: override:hub.toml hides the tool") {
		t.Errorf("%q", said)
	}
	if _, err := narrow.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://page"}); err == nil ||
		!strings.Contains(err.Error(), "tool_hidden") {
		t.Errorf("reading a resource: %v", err)
	}
	if said, failed := w.says(narrow, "echo", "x"); failed || said != `{"text":"x"}` {
		t.Errorf("%q", said)
	}
	if err := narrow.Close(); err != nil {
		t.Errorf("it ended with %v: %s", err, &w.said)
	}
	if all := strings.Join(w.notices, "\n"); !strings.Contains(all, "poison") || !strings.Contains(all, "tool_hidden") {
		t.Errorf("notices %q", all)
	}
	log := start(t, w.env, "rlp", "audit", "list", "--json").stdout
	for _, want := range []string{
		`"agent":"hub"`, `"tool":"mcp:hub/poison"`, `"reason":"tool_hidden"`, `"target":"hub/echo"`, `"outcome":"ok"`,
		`"target":"hub/prompts/get"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if r := start(t, w.env, "rlp", "runs", "list"); strings.Count(r.stdout, "hub") != 2 {
		t.Errorf("%+v", r)
	}
}

// A server that says anything else of itself than it is known by, in its
// instructions too, is refused until its operator accepts it.
func TestAWrappedServerThatChanged(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	if said, failed := w.says(w.client("rich", behind), "echo", "x"); failed {
		t.Fatalf("control: %s", said)
	}
	cs := w.client("other words", behind)
	if all := w.tools(cs); len(all) != 0 {
		t.Errorf("it offers %q", all)
	}
	if said, failed := w.says(cs, "echo", "x"); !failed || !strings.Contains(said, "rlp mcp accept hub") {
		t.Errorf("%q", said)
	}
	if hello := cs.InitializeResult(); strings.Contains(hello.Instructions, "other words") ||
		!strings.Contains(hello.Instructions, "rlp mcp accept hub") {
		t.Errorf("instructions %q", hello.Instructions)
	}
	if r := start(t, w.env, "rlp", "mcp", "list"); !strings.Contains(r.stdout, "changed") {
		t.Errorf("%+v", r)
	}
	if r := start(t, w.env, "rlp", "mcp", "accept", "hub", "--yes"); r.code != 0 || !strings.Contains(r.stdout,
		"+ description: Use it well. (other words)") {
		t.Errorf("%+v", r)
	}
	if said, failed := w.says(w.client("other words", behind), "echo", "x"); failed {
		t.Errorf("%q", said)
	}
}

// What a server asks of the client never reaches it, and neither does progress that
// it makes up: behind rlp nobody answers it, nor sees a question of its.
//
//rlp:holds N18
func TestNothingThatAServerAsksReachesTheClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		way  []string
		said string
	}{
		{nil, "sampling given, elicitation given, 1 roots"}, // control: without rlp
		{[]string{behind}, "sampling refused, elicitation refused, 0 roots"},
	} {
		w := wrappedHome(t)
		asked := make(chan string, 1000)
		w.opt = mcp.ClientOptions{
			CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				asked <- "sampling"
				return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "x"}}, nil
			},
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked <- "elicitation"
				return &mcp.ElicitResult{Action: "accept"}, nil
			},
			ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { asked <- "progress" },
		}
		cs := w.client("rich", c.way...)
		if said, failed := w.says(cs, "asks", ""); failed || said != c.said {
			t.Errorf("%q: %q", c.way, said)
		}
		if c.way == nil {
			soon(t, "progress is told", func() bool { return len(asked) > 2 })
			continue
		}
		if err := cs.Close(); err != nil || len(asked) > 0 {
			t.Errorf("it was asked for %d things, and ended with %v", len(asked), err)
		}
	}
}

// A hostile server harms neither its client nor rlp: each session goes on or ends
// with a status and a record, and the files of the client are as they were.
//
//rlp:holds N18
func TestAHostileServerBehindRlp(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	config := filepath.Join(w.work, "mcp.json")
	cs := w.client("rich", behind)
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 13 { // one is called like a path, which a name may be
		t.Errorf("%v: it offers %q", err, w.tools(cs))
	}
	for _, tool := range list.Tools {
		if strings.ContainsAny(tool.Name+tool.Description, "\x1b\x07\u202e") || strings.Contains(tool.Name, " ") {
			t.Errorf("%q: %q", tool.Name, tool.Description)
		}
	}
	for _, name := range []string{"a b", "\x1b[2Jowned", "prompts/get"} {
		if said, failed := w.says(cs, name, ""); !failed || strings.Contains(said, "called") {
			t.Errorf("%q: %s", name, said)
		}
	}
	if said, _ := w.says(cs, "write", config); exists(config) {
		t.Errorf("it writes the client's settings: %s", said)
	}
	if said, failed := w.says(cs, "huge", ""); !failed {
		t.Errorf("huge: %.200s", said)
	}
	if said, failed := w.says(cs, "crash", ""); !failed {
		t.Errorf("crash: %s", said)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "mute", Arguments: map[string]any{}}); err == nil {
		t.Error("mute answers")
	}
	cancel()
	if said, failed := w.says(cs, "echo", "still"); failed {
		t.Errorf("it is not started again: %s", said)
	}
	if err := cs.Close(); err != nil {
		t.Errorf("it ended with %v: %s", err, &w.said)
	}
	if said, failed := w.says(w.client("rich"), "write", config); failed || !exists(config) {
		t.Fatalf("control: without rlp: %s", said)
	}
	for kind, want := range map[string]int{"silent": 124, "deaf": 124, "line": 69, "noise": 69, "dead": 69} {
		args := []string{"mcp", "wrap", "hub", "--limit", "wall_time_ms=4000", "--", w.tool, kind}
		if r := start(t, w.env, "rlp", args...); r.code != want || r.stdout != "" || strings.Contains(r.stderr, "\x1b") {
			t.Errorf("%s: %+v", kind, r)
		}
	}
	if r := start(t, w.env, "rlp", "audit", "verify"); r.code != 0 {
		t.Errorf("%+v", r)
	}
}

// A person is asked at the client before a call, where the operator wants that; the
// word of a client that the operator did not name does not count.
func TestConfirmingAtAClient(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	w.file("config.toml", "security.confirm_external_actions = true\napprovals.approvers = [\"trusted\"]\n")
	question, answer := "", map[string]any{"allow": true}
	w.opt.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		question = r.Params.Message
		return &mcp.ElicitResult{Action: "accept", Content: answer}, nil
	}
	if said, failed := w.says(w.client("good", behind), "echo", "x"); !failed || !strings.Contains(said, "approvers") ||
		question != "" {
		t.Errorf("another client: %q, asked %q", said, question)
	}
	w.name = "trusted"
	cs := w.client("good", behind)
	if said, failed := w.says(cs, "echo", "x"); failed || !strings.Contains(question, `hub/echo with {"text":"x"}`) {
		t.Errorf("%q, asked %q", said, question)
	}
	answer = map[string]any{"allow": false}
	if said, failed := w.says(cs, "echo", "y"); !failed || !strings.Contains(said, "said no") {
		t.Errorf("%q", said)
	}
}

// What a server is given of variables, secrets and files is what the session holds,
// and a layer takes it.
func TestWhatAWrappedServerIsGiven(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	w.file("config.toml", "security.secrets.provider = \"env\"\n")
	w.env = append(w.env, "RLP_SECRET_default_0hub_0token=hub-token-8888", "GREETING=hello", "OTHER=mine")
	note := filepath.Join(w.work, "notes", "a")
	if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{
		behind, "--secret", "TOKEN=runloop/hub/token", "--allow", "env:read:GREETING", "--allow",
		"fs:write:" + filepath.Dir(note),
	}
	cs := w.client("rich", args...)
	given, _ := w.says(cs, "given", "")
	if !strings.Contains(given, `"GREETING=hello"`) || !strings.Contains(given, `"TOKEN=`) ||
		strings.Contains(given, "hub-token-8888") || strings.Contains(given, "OTHER") {
		t.Errorf("given %s", given)
	}
	if said, _ := w.says(cs, "write", note); said != "written" {
		t.Errorf("%s", said)
	}
	w.file("caps/overrides/hub.toml", "[capabilities]\nsecrets = []\nenv = []\nfs = []\n")
	if !exists(note) {
		t.Error("it is not there")
	}
	cs = w.client("rich", args...)
	given, _ = w.says(cs, "given", "")
	if strings.Contains(given, "GREETING") || strings.Contains(given, "TOKEN") {
		t.Errorf("given %s", given)
	}
	err := os.Remove(note)
	if said, _ := w.says(cs, "write", note); err != nil || exists(note) {
		t.Errorf("%s, %v", said, err)
	}
	for name, c := range map[string]struct {
		config string
		args   []string
		status int
		says   string
	}{
		"taken by tools": {"", []string{"tools", "--", w.tool, "good"}, 2, "taken by the tools"},
		"taken by settings": {
			"[mcp.servers.b]\nurl = \"https://mcp.example.com/\"\n", []string{"b", "--", w.tool, "good"}, 2, "[mcp.servers.b]",
		},
		"no id":    {"", []string{"B", "--", w.tool, "good"}, 2, "lower-case"},
		"both":     {"", []string{"b", "--url", "https://mcp.example.com/", "--", w.tool}, 2, "either"},
		"in clear": {"", []string{"b", "--url", "http://mcp.example.com/"}, 2, "https"},
		"no secret": {
			"", []string{"b", "--secret", "A=runloop/a/b", "--", w.tool, "good"}, 69, "rlp secrets put runloop/a/b",
		},
		"no lane":          {"exec.lane = \"native\"\n", []string{"b", "--", w.tool, "good"}, 78, "no lane confines b"},
		"not there":        {"", []string{"b", "--", "/nonexistent/server"}, 65, "/nonexistent/server: "},
		"the server taken": {"", []string{"b", "--deny", "mcp:call:b", "--", w.tool, "good"}, 77, "cap_missing"},
	} {
		w.file("config.toml", c.config)
		if r := start(t, w.env, "rlp", append([]string{"mcp", "wrap"}, c.args...)...); r.code != c.status ||
			!strings.Contains(r.stderr, c.says) || r.stdout != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A client whose settings were adopted starts its server through rlp, which gives it
// the token that is in the file no more; undone, the settings are what they were.
func TestAnAdoptedClientStartsItsServer(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	path := filepath.Join(w.work, "Claude", "claude_desktop_config.json")
	const token = "tok-4eC39HqLyjWDarjtT1zdp7dc"
	text := `{"mcpServers": {"My Hub": {"command": "` + w.tool + `", "args": ["rich"], "env": {"HUB_TOKEN": "` + token +
		`", "GREETING": "hello"}}}}`
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	adopt := func(status int, args ...string) string {
		t.Helper()
		r := start(t, w.env, "rlp", append([]string{"mcp", "adopt", path}, args...)...)
		if r.code != status || strings.Contains(r.stdout+r.stderr, token) {
			t.Errorf("%v: %+v", args, r)
		}
		return r.stdout
	}
	if shown := adopt(0); !strings.Contains(shown, "nothing is changed yet") || !strings.Contains(shown, `+ `) {
		t.Errorf("%s", shown)
	}
	adopt(65, "--write") // there is no vault
	if now, err := os.ReadFile(path); err != nil || string(now) != text {
		t.Errorf("%s, %v", now, err)
	}
	if r := start(t, w.env, "rlp", "secrets", "init"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	adopt(0, "--write")
	var now struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &now)
	}
	hub := now.Servers["My Hub"]
	if err != nil || strings.Contains(string(data), token) || hub.Env["GREETING"] != "hello" {
		t.Fatalf("%v: %s", err, data)
	}
	w.env = append(w.env, "GREETING="+hub.Env["GREETING"])
	cs := w.started(exec.Command(hub.Command, hub.Args...))
	given, _ := w.says(cs, "given", "")
	if !strings.Contains(given, `"HUB_TOKEN=`) || strings.Contains(given, token) ||
		!strings.Contains(given, `"GREETING=hello"`) {
		t.Errorf("%s", given)
	}
	// who may write where the settings are may not write them
	note := filepath.Join(filepath.Dir(path), "note")
	cs = w.client("rich", behind, "--allow", "fs:write:"+filepath.Dir(path))
	w.says(cs, "write", note)
	w.says(cs, "write", path)
	if now, err := os.ReadFile(path); err != nil || !exists(note) || string(now) != string(data) {
		t.Errorf("a server writes %s, %v", now, err)
	}
	if shown := adopt(0, "--write"); !strings.Contains(shown, "already") {
		t.Errorf("%s", shown)
	}
	adopt(0, "--undo")
	if now, err := os.ReadFile(path); err != nil || string(now) != text {
		t.Errorf("%s, %v", now, err)
	}
	adopt(2, "--undo")
	cs = w.client("rich", behind, "--allow", "fs:write:"+filepath.Dir(path)) // control
	if said, _ := w.says(cs, "write", path); said != "written" {
		t.Errorf("%s", said)
	}
}

// A server at a URL is reached by the guards of rlp's own requests, with its token,
// which its client does not have.
func TestAWrappedServerAtAURL(t *testing.T) {
	t.Parallel()
	w := wrappedHome(t)
	w.file("config.toml", "security.secrets.provider = \"env\"\n")
	w.env = append(w.env, "RLP_SECRET_default_0hub_0token=hub-token-8888")
	handler := mcptest.Handler("rich")
	var bearer atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		bearer.Store(r.Header.Get("Authorization"))
		handler.ServeHTTP(rw, r)
	}))
	defer srv.Close()
	url := []string{"mcp", "wrap", "hub", "--url", srv.URL, "--secret", "runloop/hub/token"}
	cs := w.started(exec.Command("rlp", append(url, "--deny", "tool:call:mcp:hub/poison")...))
	if all := w.tools(cs); !slices.Contains(all, "echo") || slices.Contains(all, "poison") {
		t.Errorf("%q", all)
	}
	if said, failed := w.says(cs, "echo", "x"); failed || bearer.Load() != "Bearer hub-token-8888" {
		t.Errorf("%s, asked with %v", said, bearer.Load())
	}
	if err := cs.Close(); err != nil {
		t.Errorf("it ended with %v: %s", err, &w.said)
	}
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"the secret taken": {append(url, "--deny", "secrets:read:*"), 0, "is not given to hub"},
		"nobody there":     {[]string{"mcp", "wrap", "hub", "--url", "http://127.0.0.1:1/"}, 69, "cannot be reached"},
	} {
		if r := start(t, w.env, "rlp", c.args...); !strings.Contains(r.stderr, c.says) || c.status > 0 && r.code != c.status {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A client of any version of the protocol works with a server behind rlp, and is
// told why a call is refused. One that nobody can be asked at has its call refused.
func TestVersionsOfClientsBehindRlp(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "2025-06-18", "2025-03-26", "2024-11-05"} {
		w := wrappedHome(t)
		w.speaks = version
		cs := w.client("rich", behind, "--deny", "tool:call:mcp:hub/poison")
		if all := w.tools(cs); !slices.Contains(all, "echo") || slices.Contains(all, "poison") {
			t.Errorf("%s: it offers %q", version, all)
		}
		if said, failed := w.says(cs, "echo", "x"); failed || said != `{"text":"x"}` {
			t.Errorf("%s: %s", version, said)
		}
		if said, failed := w.says(cs, "poison", ""); !failed || !strings.Contains(said, "tool_hidden") {
			t.Errorf("%s: %s", version, said)
		}
		if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://page"}); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		w.file("config.toml", "security.confirm_external_actions = true\napprovals.approvers = [\"test\"]\n")
		cs = w.client("rich", behind)
		if said, failed := w.says(cs, "echo", "x"); !failed || !strings.Contains(said, "not_confirmed") {
			t.Errorf("%s: %s", version, said)
		}
	}
}
