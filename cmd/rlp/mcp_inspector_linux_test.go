package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// inspector is the public inspector of servers, the version that was tried.
const inspector = "@modelcontextprotocol/inspector@2.12.0"

// inspected is what the inspector's command line says of rlp mcp.
func (h *helped) inspected(t *testing.T, rlp string, args ...string) (map[string]any, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	all := []string{
		"--yes", "--prefer-offline", inspector, "--cli", "env", "HOME=" + h.work, "RUNLOOP_HOME=" + h.home,
		rlp, "mcp",
	}
	c := exec.CommandContext(ctx, "npx", append(all, args...)...)
	var problems strings.Builder
	c.Env, c.Stderr = os.Environ(), &problems // npm keeps what it downloads in the home of whoever tests
	out, err := c.Output()
	if err != nil {
		t.Logf("npx: %v: %s", err, problems.String())
		return nil, err
	}
	var v map[string]any
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v, nil
}

// The public inspector lists the agents, calls one, and is told why another is
// refused.
func TestTheInspector(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npx"); err != nil || testing.Short() {
		t.Log("not asked: the public inspector, which takes npm (.ci/setup) and time; the SDK's client asks the same in " +
			"TestToolsOverStdio")
		return
	}
	if out, err := exec.CommandContext(t.Context(), "npx", "--yes", "--prefer-offline", inspector, "--cli",
		"--help").CombinedOutput(); err != nil {
		t.Logf("not asked: the public inspector, which npm cannot have here: %v: %s", err, out)
		return
	}
	rlp, err := exec.LookPath("rlp")
	if err != nil {
		t.Fatal(err)
	}
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.tooled(t)
	list, err := h.inspected(t, rlp, "--method", "tools/list")
	if err != nil {
		t.Fatal(err)
	}
	tools, _ := list["tools"].([]any)
	var names []string
	for _, tool := range tools {
		name, _ := tool.(map[string]any)["name"].(string)
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "plain probe rlp_audit rlp_explain rlp_kb_search rlp_run rlp_runs" {
		t.Errorf("it lists %s", got)
	}
	said, err := h.inspected(t, rlp, "--method", "tools/call", "--tool-name", "plain", "--tool-arg", `input=["args"]`)
	if err != nil || said["isError"] == true {
		t.Errorf("it calls one: %v %v", err, said)
	}
	said, err = h.inspected(t, rlp, "--method", "tools/call", "--tool-name", "rlp_runs", "--tool-arg", "limit=3")
	if runs, _ := json.Marshal(said["structuredContent"]); err != nil || !strings.Contains(string(runs),
		`"agent":"plain"`) {
		t.Errorf("it reads: %v %s", err, runs)
	}
	// The command line ends with a status of its own when a tool answers an error.
	c := exec.CommandContext(t.Context(), "npx", "--yes", "--prefer-offline", inspector, "--cli", "env", "HOME="+h.work,
		"RUNLOOP_HOME="+h.home, rlp, "mcp",
		"--method", "tools/call", "--tool-name", "probe", "--tool-arg", `input=["args"]`)
	out, _ := c.CombinedOutput()
	if !strings.Contains(string(out), "profile:mcp_default") || !strings.Contains(string(out),
		"nothing of it was executed") {
		t.Errorf("why it is refused: %s", out)
	}
}
