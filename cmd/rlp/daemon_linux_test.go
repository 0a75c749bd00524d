package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"runloop.dev/rlp/internal/serve/daemon"
)

// throughDaemon are the scripts whose launches a helper does: what they expect
// is what they expect of any launch. Those that wait for clocks, and those whose
// launches it declines, add nothing.
func throughDaemon() []string {
	names := []string{
		"launch_params", "launch_turns", "launch_override", "launch_pipe", "launch_refuse", "launch_kb",
		"launch_log", "launch_empty", "launch_same", "kb_live", "net_http",
	}
	if testing.Short() {
		names = names[:2]
	}
	var list []string
	for _, name := range names {
		list = append(list, filepath.Join("testdata", "script", name+".txtar"))
	}
	return list
}

// The same command lines come to the same ends, word for word, when a resident
// helper does them.
func TestScriptsThroughDaemon(t *testing.T) {
	t.Parallel()
	runScripts(t, "", throughDaemon(), func(env *testscript.Env) error {
		d, err := startDaemon(env.Vars, filepath.Join(env.WorkDir, "home", ".runloop"))
		if err != nil {
			return err
		}
		env.Defer(func() {
			state, err := d.state()
			switch {
			case err != nil:
				fmt.Fprintln(os.Stderr, err)
				err = errors.Join(err, d.cmd.Process.Kill())
			case state.Done == 0:
				err = errors.New("control: the helper has done no launch")
			}
			if err = errors.Join(err, d.stop()); err != nil {
				env.T().Fatal(err)
			}
		})
		return nil
	})
}

// A helper that a test started.
type testDaemon struct {
	cmd    *exec.Cmd
	socket string
}

// startDaemon returns when it serves.
func startDaemon(env []string, home string) (*testDaemon, error) {
	d := &testDaemon{exec.Command("rlp", "daemon", "--quiet", "--home", home), filepath.Join(home, "run",
		daemon.SocketName)}
	d.cmd.Env, d.cmd.Stderr, d.cmd.Dir = env, os.Stderr, "/"
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		c, err := daemon.Dial(d.socket)
		if err == nil {
			c.Close()
			return d, nil
		}
	}
	return nil, errors.Join(errors.New("the helper never served"), d.cmd.Process.Kill(), d.cmd.Wait())
}

// state asks as the program does that serves: the test's own is the same.
func (d *testDaemon) state() (*daemon.State, error) {
	s, err := daemon.Ask(d.socket, daemon.Status)
	if err != nil {
		return nil, fmt.Errorf("asking the helper: %w", err)
	}
	return s, nil
}

func (d *testDaemon) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return d.cmd.Wait()
}

// helped is a helper in a home of its own, an agent that may use work, and the
// environment of its clients.
type helped struct {
	*testDaemon
	*made
	env               []string
	home, work, agent string
}

// made is the agent, and what it is compiled to.
type made struct{ probe, cache string }

func (m *made) at(t *testing.T) *helped {
	t.Helper()
	work := t.TempDir()
	h := &helped{made: m, home: filepath.Join(work, ".runloop"), work: work, agent: filepath.Join(work, "agent")}
	h.testDaemon = &testDaemon{socket: filepath.Join(h.home, "run", daemon.SocketName)}
	h.env = append(os.Environ(), "HOME="+work, "RUNLOOP_HOME="+h.home)
	h.bundle(t, h.agent, "[capabilities]\nfs_rw = [\""+work+"\"]\nenv = [\"MINE\"]\n")
	if err := warm(work, work, m.cache); err != nil {
		t.Fatal(err)
	}
	return h
}

// help is a helper that serves.
func (m *made) help(t *testing.T) *helped {
	t.Helper()
	h := m.at(t)
	var err error
	if h.testDaemon, err = startDaemon(append(h.env, "MINE=daemon"), h.home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill() // it may have ended
		_ = h.cmd.Wait()
	})
	return h
}

// bundle is a bundle of the probe under a policy.
func (m *made) bundle(t *testing.T, dir, policy string) {
	t.Helper()
	manifest := "[agent]\nname = \"probe\"\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = " +
		"\"probe.wasm\" }\n[caps]\nfile = \"policy.caps\"\n"
	wasm, err := os.ReadFile(m.probe)
	err = errors.Join(err, os.MkdirAll(dir, 0o700))
	for name, data := range map[string][]byte{
		"probe.wasm": wasm, "manifest.toml": []byte(manifest),
		"policy.caps": []byte(policy),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// launch starts a client, and returns when its guest has begun to spin.
func (h *helped) launch(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("rlp", append([]string{"launch", h.agent, "--json", "--"}, args...)...)
	c.Env = h.env
	c.Stdout, c.Stderr = new(strings.Builder), new(strings.Builder)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(h.work, "begun")
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		if _, err := os.Stat(mark); err == nil {
			if err := os.Remove(mark); err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	t.Fatalf("it never began: %s", c.Stderr)
	return nil
}

// ends are the kinds and outcomes of the ends in the log, which is read by a
// process of its own.
func (h *helped) ends(t *testing.T) (list []string) {
	t.Helper()
	r := start(t, h.env, "rlp", "audit", "list", "--json")
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	for dec.More() {
		var rec struct{ Kind, Outcome, Reason string }
		if err := dec.Decode(&rec); err != nil {
			t.Fatal(err)
		}
		if rec.Kind == "run.complete" || rec.Kind == "run.failed" {
			list = append(list, rec.Kind+" "+rec.Reason)
		}
	}
	return list
}
