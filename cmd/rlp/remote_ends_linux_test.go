package main

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runloop.dev/rlp/launcher"
)

// What refuses or ends a launch by the service is told as of a launch here.
//
//rlp:holds A40 K74
func TestLaunchRemoteEnds(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	s := h.serving(t)
	file := filepath.Join(h.work, "x")
	r := start(t, h.env, "rlp", "launch", "--remote", "--deny", "fs:*:*", "probe", "--", "write", file, "x")
	if _, err := os.Stat(file); r.code != launcher.StatusPolicy || strings.Count(r.stderr, "\nrlp: fs:") < 2 ||
		!errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v %+v", err, r)
	}
	r = start(t, h.env, "rlp", "launch", "--remote", "probe", "--", "write", file, "x")
	if text, err := os.ReadFile(file); r.code != 0 || string(text) != "x" {
		t.Errorf("control: %v %+v", err, r)
	}
	r = start(t, h.env, "rlp", "launch", "--remote", "--limit", "wall_time_ms=50", "probe", "--", "spin")
	if r.code != 124 || !strings.HasPrefix(r.stderr, "RLP_WASM_ERROR code=WASM_TIMEOUT exit_code=124 ") {
		t.Errorf("%+v", r)
	}
	c := exec.Command("rlp", "launch", "--remote", "probe", "--", "write", h.work+"/begun", "x", "spin")
	c.Env = h.env
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	soon(t, "it began", func() bool { _, err := os.Stat(h.work + "/begun"); return err == nil })
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _ = c.Wait(); c.ProcessState.ExitCode() != launcher.StatusCancelled {
		t.Errorf("interrupted: %d", c.ProcessState.ExitCode())
	}
	soon(t, "the service ended it", func() bool {
		_, text := s.ask(t, 0, http.MethodGet, "/runs?limit=1", nil)
		return strings.Contains(text, `"outcome":"cancelled"`)
	})
}
