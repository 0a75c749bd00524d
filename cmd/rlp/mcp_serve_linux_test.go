package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tooled is a home with the probe installed twice: "probe", whose policy asks for
// a folder, and "plain", which asks for nothing. What they do is their input, a
// list.
func (m *made) tooled(t *testing.T) *helped {
	t.Helper()
	h := m.at(t)
	for name, policy := range map[string]string{
		"probe": "[capabilities]\nfs_rw = [\"" + h.work + "\"]\n",
		"plain": "[capabilities]\n",
	} {
		dir := filepath.Join(h.work, "of-"+name)
		m.bundle(t, dir, policy)
		path := filepath.Join(dir, "manifest.toml")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte(`name = "probe"`), fmt.Appendf(nil, "name = %q", name), 1)
		text = append(text, "[schemas.with]\ntype = \"array\"\nitems = { type = \"string\" }\n"...)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := start(t, h.env, "rlp", "agent", "install", dir); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	return h
}

// assistant is the SDK's own client of rlp mcp.
func (h *helped) assistant(t *testing.T, env ...string) *mcp.ClientSession {
	t.Helper()
	c := exec.Command("rlp", "mcp")
	said := new(bytes.Buffer)
	c.Env, c.Stderr, c.Dir = append(slices.Clone(h.env), env...), said, "/"
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: c, TerminateDuration: 20 * time.Second}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	t.Cleanup(func() {
		if err := cs.Close(); err != nil {
			t.Errorf("it ended with %v: %s", err, said)
		}
	})
	return cs
}

// told calls a tool, and is all that it answers.
func told(t *testing.T, cs *mcp.ClientSession, name string, arguments map[string]any) (string, bool) {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(p), r.IsError
}

func input(words ...string) map[string]any { return map[string]any{"input": words} }

// What is called as a tool starts from computing alone, unless the
// operator names another grant; a client that knows the protocol alone sees why.
//
//rlp:holds A32
func TestToolsOverStdio(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.tooled(t)
	cs := h.assistant(t)
	var names []string
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if want := []string{
		"plain", "probe", "rlp_audit", "rlp_explain", "rlp_kb_search", "rlp_run",
		"rlp_runs",
	}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	if text, failed := told(t, cs, "plain", input("stdin")); failed || !strings.Contains(text, "runloop.dev/run_id") {
		t.Errorf("computing: %s", text)
	}
	text, failed := told(t, cs, "probe", input("ls", h.work))
	if !failed || !strings.Contains(text, "mcp_default") || !strings.Contains(text, "nothing of it was executed") ||
		!strings.Contains(text, "security.run_grant") {
		t.Errorf("more than computing: %s", text)
	}
	if text, failed := told(t, cs, "plain", map[string]any{"input": 7}); !failed || !strings.Contains(text, "do not fit") {
		t.Errorf("what is no input: %s", text)
	}

	wide := h.assistant(t, "RUNLOOP__SECURITY__RUN_GRANT=operator_full") // control
	if text, failed := told(t, wide, "probe", input("ls", h.work)); failed || !strings.Contains(text, "of-plain") {
		t.Errorf("under another grant: %s", text)
	}
	text, failed = told(t, wide, "probe", input("read", "/etc/hostname"))
	if !failed || !strings.Contains(text, "fs.read /etc/hostname") || !strings.Contains(text, "path_not_permitted") {
		t.Errorf("what the bundle did not ask for: %s", text)
	}
	var denied struct {
		Meta struct {
			Run    string `json:"runloop.dev/run_id"`
			Denied []struct {
				Record int `json:"record"`
			} `json:"runloop.dev/denied"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(text), &denied); err != nil || len(denied.Meta.Denied) == 0 {
		t.Fatalf("%v %s", err, text)
	}
	text, failed = told(t, wide, "rlp_explain", map[string]any{
		"run_id": denied.Meta.Run,
		"record": denied.Meta.Denied[0].Record,
	})
	if failed || !strings.Contains(text, `"decision":"deny"`) || !strings.Contains(text, "edits") {
		t.Errorf("explained: %s", text)
	}
	for _, tool := range []string{"rlp_runs", "rlp_audit"} {
		if text, failed := told(t, wide, tool, nil); failed || !strings.Contains(text, denied.Meta.Run) {
			t.Errorf("%s: %s", tool, text)
		}
	}
	if text, failed := told(t, wide, "rlp_run", map[string]any{"run_id": denied.Meta.Run}); failed ||
		!strings.Contains(text, "/etc/hostname") {
		t.Errorf("the run: %s", text)
	}
	if text, failed := told(t, wide, "rlp_kb_search", map[string]any{"domain": "drafts", "query": "anything"}); failed {
		t.Errorf("searching: %s", text)
	}
}

// What a client began ends with its end, and the log says so.
func TestEndOfAnAssistantIsRecorded(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.tooled(t)
	c := exec.Command("rlp", "mcp")
	c.Env, c.Dir = append(slices.Clone(h.env), "RUNLOOP__SECURITY__RUN_GRANT=operator_full"), "/"
	in, err := c.StdinPipe()
	var out bytes.Buffer
	c.Stdout = &out
	if err = errors.Join(err, c.Start()); err != nil {
		t.Fatal(err)
	}
	begun := filepath.Join(h.work, "begun")
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"probe","arguments":{"input":["write","` + begun +
			`","x","spin"]}}}`,
	} {
		if _, err := in.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	for late := time.Now().Add(time.Minute); ; {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("it never began: %s", &out)
		}
	}
	if err := errors.Join(in.Close(), c.Wait()); err != nil {
		t.Errorf("it ended with %v", err)
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("on stdout: %q", line)
		}
	}
	r := start(t, h.env, "rlp", "audit", "list", "--json")
	if r.code != 0 || !strings.Contains(r.stdout, `"outcome":"cancelled"`) {
		t.Errorf("%+v", r)
	}
	if r := start(t, h.env, "rlp", "audit", "verify"); r.code != 0 {
		t.Errorf("%+v", r)
	}
}
