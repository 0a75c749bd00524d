package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/serve/daemon"
)

// What a helper does for its clients, and what it does not.
func TestDaemon(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	for name, test := range map[string]func(*testing.T, *made){
		"signals": daemonSignals, "is the client": daemonIsTheClient, "declines": daemonDeclines,
		"starts by itself": daemonStartsByItself,
		"is stopped":       daemonIsStopped,
	} {
		t.Run(name, func(t *testing.T) { test(t, m) })
	}
}

// spin is a guest that says that it has begun, and never ends.
func (h *helped) spin(t *testing.T) *exec.Cmd {
	t.Helper()
	return h.launch(t, "write", h.work+"/begun", "x", "spin")
}

// ended waits for a client, and returns its status and what it said.
func ended(t *testing.T, c *exec.Cmd) (status int, said string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Wait() // the status says it
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the client waits on")
	}
	return c.ProcessState.ExitCode(), fmt.Sprint(c.Stdout, c.Stderr)
}

// A helper and a client end each other as one process ends: a signal is the
// operator's, once recorded; a client that is killed takes its run along; a
// helper that is killed leaves clients that say so, launch nothing again, and a
// run that is recorded as killed.
func daemonSignals(t *testing.T, m *made) {
	h := m.help(t)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		c := h.spin(t)
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if status, said := ended(t, c); status != 130 || !strings.Contains(said, `"outcome": "cancelled"`) ||
			strings.Contains(said, "goroutine ") {
			t.Errorf("%v: %d %s", s, status, said)
		}
	}
	killed, other := h.spin(t), h.spin(t)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended(t, killed)
	h.until(t, func(s *daemon.State) bool { return s.Running == 1 })
	if got := h.ends(t); !slices.Equal(got, []string{
		"run.failed cancelled", "run.failed cancelled",
		"run.failed cancelled", "run.failed cancelled", "run.failed cancelled",
	}) {
		t.Errorf("the log: %v", got)
	}
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
	if status, said := ended(t, other); status != 69 || !strings.Contains(said, "not launched again") ||
		!strings.Contains(said, `"exit_code": 69`) {
		t.Errorf("its helper is gone: %d %s", status, said)
	}
	if got := h.ends(t); len(got) != 6 || got[5] != "run.failed killed" {
		t.Errorf("the log: %v", got)
	}
	if r := start(t, h.env, "rlp", "launch", h.agent, "--", "args"); r.code != 0 {
		t.Errorf("behind the socket that it left: %+v", r)
	}
}

// until waits for a state of the helper.
func (h *helped) until(t *testing.T, is func(*daemon.State) bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		s, err := h.state()
		if err != nil {
			t.Fatal(err)
		}
		if is(s) {
			return
		}
	}
	t.Fatal("it never came to that")
}

// What the helper takes of a client is the client's: variables, the folder, and
// the limits; and many at once do not mix.
func daemonIsTheClient(t *testing.T, m *made) {
	h := m.help(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			dir := filepath.Join(h.work, fmt.Sprint("dir", i))
			input := fmt.Sprintf("[%d]", i)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Error(err)
				return
			}
			if err := os.WriteFile(filepath.Join(dir, "input"), []byte(input), 0o600); err != nil {
				t.Error(err)
				return
			}
			c := exec.Command("rlp", "launch", "../agent", "--input", "@input", "--", "env", "MINE", "stdin")
			c.Dir, c.Env = dir, append(slices.Clone(h.env), fmt.Sprint("MINE=client", i))
			out, err := c.CombinedOutput()
			if want := fmt.Sprint("env MINE: client", i, "\n"); err != nil || !strings.Contains(string(out), want) ||
				!strings.Contains(string(out), input) {
				t.Errorf("%v %s", err, out)
			}
		})
	}
	all.Wait()
	h.until(t, func(s *daemon.State) bool { return s.Done == 8 })
	for status, limit := range map[int]string{
		124: "wall_time_ms=50", 137: "cpu_fuel=100000",
		138: "memory_bytes=33554432",
	} {
		word := map[int][]string{124: {"spin"}, 137: {"spin"}, 138: {"grow", "100"}}[status]
		args := append([]string{"launch", h.agent, "--limit", limit, "--"}, word...)
		one, other := start(t, h.env, "rlp", args...), start(t, append(slices.Clone(h.env), "RUNLOOP_DAEMON=off"), "rlp",
			args...)
		if one.code != status || other.code != status || plain(one.stderr) != plain(other.stderr) {
			t.Errorf("through the helper:\n%+v\nby itself:\n%+v", one, other)
		}
	}
	h.until(t, func(s *daemon.State) bool { return s.Done == 11 && len(s.Declined) == 0 })
}

// What the helper could not do as the client would is declined before anything
// is recorded, and done by the client.
func daemonDeclines(t *testing.T, m *made) {
	h := m.help(t)
	programs := filepath.Join(h.work, "programs")
	elsewhere := filepath.Join(h.work, "else")
	if err := warm(elsewhere, elsewhere, m.cache); err != nil {
		t.Fatal(err)
	}
	h.bundle(t, programs, "[capabilities]\nexec = true\n")
	linked, link, input := filepath.Join(h.work, "linked"), filepath.Join(h.work, "link"), filepath.Join(h.work, "input")
	h.bundle(t, linked, "[capabilities]\nfs = [\""+link+"\"]\n")
	if err := errors.Join(os.Symlink("/proc/self/cwd", link), os.WriteFile(input, []byte("[]"), 0o600)); err != nil {
		t.Fatal(err)
	}
	why := map[string]int{}
	for name, c := range map[string]struct {
		args, env []string
		why       string
	}{
		"programs": {args: []string{"launch", programs, "--", "args"}, why: "programs, servers of tools or other agents"},
		"variable": {
			args: []string{"launch", h.agent, "--", "args"}, env: []string{"SSL_CERT_FILE=/none"},
			why: "another SSL_CERT_FILE",
		},
		"home": {args: []string{"launch", h.agent, "--home", filepath.Join(elsewhere, ".runloop"), "--input", `"--home=` +
			h.home + `"`, "--", "args"}},
		"asked":  {args: []string{"launch", h.agent, "--no-daemon", "--", "args"}},
		"off":    {args: []string{"launch", h.agent, "--", "args"}, env: []string{"RUNLOOP_DAEMON=off"}},
		"bundle": {args: []string{"launch", "/proc/self/root" + h.agent, "--", "args"}, why: ownPath},
		"input": {
			args: []string{"launch", h.agent, "--input", "@/proc/thread-self/root" + input, "--", "args"},
			why:  ownPath,
		},
		"publish": {
			args: []string{"launch", h.agent, "--", "args"},
			env:  []string{`RUNLOOP__AUDIT__PUBLISH=["file:/proc/self/root` + h.work + `/published"]`}, why: ownPath,
		},
		"linked": {
			args: []string{"launch", linked, "--", "args"}, env: []string{"RUNLOOP__SECURITY__PATH_PROFILE=relaxed"},
			why: ownPath,
		},
	} {
		if r := start(t, append(slices.Clone(h.env), c.env...), "rlp", c.args...); r.code != 0 || !strings.Contains(r.stdout,
			"args : probe") {
			t.Errorf("%s: %+v", name, r)
		}
		if c.why != "" {
			why[c.why]++
			h.until(t, func(s *daemon.State) bool { return s.Declined[c.why] == why[c.why] })
		}
	}
	if r := start(t, h.env, "rlp", "launch", filepath.Join(h.work, "none")); r.code != 65 || !strings.Contains(r.stderr,
		"none") {
		t.Errorf("no bundle: %+v", r)
	}
	h.until(t, func(s *daemon.State) bool { return s.Declined["what cannot be composed"] == 1 && s.Done == 0 })
	h.until(t, func(s *daemon.State) bool { return s.Running == 0 })
	if got := h.ends(t); !slices.Equal(got, slices.Repeat([]string{"run.complete "}, 8)) {
		t.Errorf("each once, and that of the other home is not here: %v", got)
	}
}

// Where the operator asks for it, the first launch leaves a helper behind, and
// it ends when it is told to.
func daemonStartsByItself(t *testing.T, m *made) {
	h := m.at(t)
	launch := func() {
		if r := start(t, h.env, "rlp", "launch", h.agent, "--", "args"); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	launch()
	if _, err := h.state(); err == nil {
		t.Error("nobody asked for a helper")
	}
	if err := os.WriteFile(filepath.Join(h.home, "config.toml"), []byte("[daemon]\nstart = \"auto\"\nidle = \"5m\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	launch()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		if _, err := h.state(); err == nil {
			break
		}
	}
	launch()
	if s, err := h.state(); err != nil || s.Done != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if r := start(t, h.env, "rlp", "daemon", "stop"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := h.state(); err == nil {
		t.Error("it is still there")
	}
}

// A helper that was stopped keeps no launch waiting, nor who reads its output.
func daemonIsStopped(t *testing.T, m *made) {
	h := m.help(t)
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var how syscall.WaitStatus
	if _, err := syscall.Wait4(h.cmd.Process.Pid, &how, syscall.WUNTRACED, nil); err != nil || !how.Stopped() {
		t.Fatalf("%v, %v", how, err)
	}
	c := exec.Command("rlp", "launch", h.agent, "--", "args")
	c.Env = h.env
	c.Stdout, c.Stderr = new(strings.Builder), new(strings.Builder)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if status, said := ended(t, c); status != 0 || !strings.Contains(said, "args : probe") {
		t.Errorf("%d %s", status, said)
	}
	if err := h.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if s, err := h.state(); err != nil || s.Done != 0 || len(s.Declined) != 0 {
		t.Errorf("it was asked: %+v, %v", s, err)
	}
}

// plain is a text without what differs from run to run.
func plain(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r >= '0' && r <= '9' }), "#")
}
