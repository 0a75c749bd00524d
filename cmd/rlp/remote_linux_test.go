package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runloop.dev/rlp/launcher"
)

// A launch by the service is told as a launch here.
//
//rlp:holds A40 A60
func TestLaunchRemote(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	if r := start(t, h.env, "rlp", "launch", "--remote", h.agent); r.code != launcher.StatusUnavailable ||
		!strings.Contains(r.stderr, "no service answers (is rlp serve running there?)") {
		t.Errorf("nobody serves: %+v", r)
	}
	s := h.serving(t)
	if r := start(t, h.env, "rlp", "launch", "--remote", "no_such_agent"); r.code != launcher.StatusInput ||
		!strings.Contains(r.stderr, "no_such_agent") {
		t.Errorf("unknown: %+v", r)
	}
	for _, flag := range []string{"--stream", "--dry-run", "--turns", "--audit-allow", "--events"} {
		if r := start(t, h.env, "rlp", "launch", "--remote", flag, h.agent); r.code != launcher.StatusUsage ||
			!strings.Contains(r.stderr, flag) {
			t.Errorf("%s: %+v", flag, r)
		}
	}
	for _, cmd := range [][]string{
		{"launch", "--remote", "https://agents.example:8770", h.agent},
		{"top", "--remote", "https://agents.example:8770"},
	} {
		if r := start(t, h.env, "rlp", cmd...); r.code != launcher.StatusUsage || !strings.Contains(r.stderr,
			"write --remote=https://agents.example:8770") {
			t.Errorf("%v: %+v", cmd, r)
		}
	}
	here := start(t, h.env, "rlp", "launch", "--no-daemon", h.agent)
	there := start(t, h.env, "rlp", "launch", "--remote", h.agent)
	if here != there {
		t.Errorf("here %+v\nthere %+v", here, there)
	}
	var report launcher.Report
	r := start(t, h.env, "rlp", "launch", "--json", "--remote="+s.said.Addresses[1], h.agent)
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || report.RunID == "" || report.ExitCode != r.code {
		t.Errorf("%v: %+v", err, r)
	}
	bad := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(bad, []byte("rlpt_none_of_these\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := start(t, h.env, "rlp", "launch", "--remote", "--token-file", bad, h.agent); r.code != launcher.StatusPolicy {
		t.Errorf("a token that is none fell back to the socket: %+v", r)
	}
	if r := start(t, h.env, "rlp", "launch", "--token-file", bad, h.agent); r.code != launcher.StatusUsage {
		t.Errorf("--token-file alone: %+v", r)
	}
	if r := start(t, h.env, "rlp", "launch", "--remote", "--limit", "nonsense=5",
		h.agent); r.code != launcher.StatusInput || !strings.Contains(r.stderr, "nonsense") {
		t.Errorf("a limit that is none: %+v", r)
	}
}

// A violation names its capability and its layer once, whether its message does
// or not.
func TestViolationLine(t *testing.T) {
	for _, c := range []struct {
		v    launcher.Violation
		want string
	}{
		{launcher.Violation{
			Message: "fs:read:/srv was taken away by caller (--deny fs:*:*)", Capability: "fs:read:/srv",
			Layer: "caller",
		}, "fs:read:/srv was taken away by caller (--deny fs:*:*)"},
		{
			launcher.Violation{Message: "no lane here confines programs", Capability: "process:exec:/bin/ls", Layer: "base"},
			"process:exec:/bin/ls: no lane here confines programs (base)",
		},
		{launcher.Violation{Message: "nothing is left", Layer: "base"}, "nothing is left (base)"},
	} {
		if got := violationLine(c.v); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
