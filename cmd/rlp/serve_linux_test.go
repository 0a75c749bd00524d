package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/serve/host/hosttest"
)

// A testService is a service that a test started, as a program of its own.
type testService struct {
	*helped
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	said   struct {
		Serving   bool              `json:"serving"`
		Addresses []string          `json:"addresses"`
		Grant     map[string]string `json:"grant"`
		Who       string            `json:"who"`
	}
}

// serving starts rlp serve, and returns when it says that it serves.
func (h *helped) serving(t *testing.T, args ...string) *testService {
	t.Helper()
	return h.servingBy(t, exec.Command("rlp", append([]string{"serve", "--json", "--listen", "127.0.0.1:0"}, args...)...))
}

// servingBy starts a service by a command.
func (h *helped) servingBy(t *testing.T, cmd *exec.Cmd) *testService {
	t.Helper()
	s := &testService{helped: h, cmd: cmd, stderr: new(bytes.Buffer)}
	s.cmd.Env, s.cmd.Stderr, s.cmd.Dir = h.env, s.stderr, "/"
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.cmd.Wait()
	})
	if err := json.NewDecoder(out).Decode(&s.said); err != nil || !s.said.Serving {
		t.Fatalf("it never served: %v: %s", err, s.stderr)
	}
	return s
}

// ended waits for the end of the process, and is its exit status.
func (s *testService) ended() int {
	_ = s.cmd.Wait() // the status says it
	return s.cmd.ProcessState.ExitCode()
}

// ask asks by the socket or the address, whichever at is.
func (s *testService) ask(t *testing.T, at int, method, path string, body any) (int, string) {
	t.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	base, transport := s.said.Addresses[at], &http.Transport{}
	if socket, is := strings.CutPrefix(base, "unix:"); is {
		base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
	}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, s.stderr)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// run is POST /run.
func (s *testService) run(t *testing.T, at int, body map[string]any) (int, map[string]any) {
	t.Helper()
	status, text := s.ask(t, at, http.MethodPost, "/run", body)
	document := map[string]any{}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatalf("%d %q: %v", status, text, err)
	}
	return status, document
}

// servable is a home in which the probe is installed, under a policy and a grant
// that leave it the folder work.
func (m *made) servable(t *testing.T) *helped {
	h := m.at(t)
	if r := start(t, h.env, "rlp", "agent", "install", h.agent); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if err := os.WriteFile(filepath.Join(h.home, "config.toml"),
		[]byte("[security]\nrun_grant = \"operator_full\"\n[serve]\ngrace = \"300ms\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// The lines of the log about a launch that fails name the request that asked for it.
func TestAFailedLaunchIsLoggedByItsRequest(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	s := h.serving(t)
	override := filepath.Join(h.home, "caps", "overrides", "probe.toml")
	if err := os.WriteFile(override, []byte("[broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, r := s.run(t, 0, map[string]any{"agent": "probe"}); status != http.StatusServiceUnavailable {
		t.Fatalf("%d %v", status, r)
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	s.ended()
	files, err := filepath.Glob(filepath.Join(h.home, "log", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	log, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for line := range strings.Lines(string(log)) {
		var l struct {
			Msg     string `json:"msg"`
			Request string `json:"request_id"`
			Run     string `json:"run_id"`
		}
		if json.Unmarshal([]byte(line), &l) == nil && (l.Msg == "unavailable" || l.Msg == "run failed") {
			names[l.Request+" "+l.Run]++
		}
	}
	for both, n := range names {
		if request, run, _ := strings.Cut(both, " "); request == "" || run == "" || n != 2 {
			t.Errorf("%q in %d lines", both, n)
		}
	}
	if len(names) != 1 {
		t.Errorf("the failed launch is of %d names: %s", len(names), log)
	}
}

// The service, from its start to its end, by socket and by address.
//
//rlp:holds A30 A33 A39 A40 A47 A48 A53 A54
func TestServe(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	s := h.serving(t)
	socket := filepath.Join(h.home, "run", "serve.sock")
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if s.said.Addresses[0] != "unix:"+socket || !strings.HasPrefix(s.said.Addresses[1], "http://127.0.0.1:") ||
		s.said.Grant["http"] != "operator_full" || !strings.Contains(s.said.Who, "user") {
		t.Errorf("%+v", s.said)
	}
	if r := start(t, h.env, "rlp", "serve", "--listen", "none"); r.code != 69 || !strings.Contains(r.stderr,
		"another rlp serve") {
		t.Errorf("a second one: %+v", r)
	}
	wasm, err := os.ReadFile(m.probe)
	if err != nil {
		t.Fatal(err)
	}
	sent := base64.StdEncoding.EncodeToString(hosttest.Archived(t, "probe", "fs_rw = [\""+h.work+"\"]\n", wasm))
	for at := range s.said.Addresses {
		name := s.said.Addresses[at][:4]
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(h.work, name)
			for _, body := range []map[string]any{{"agent": "probe"}, {"bundle": sent}} {
				body["args"] = []string{"write", file, "x"}
				status, r := s.run(t, at, body)
				if text, err := os.ReadFile(file); status != http.StatusOK || r["outcome"] != "ok" || err != nil ||
					string(text) != "x" || !strings.Contains(fmt.Sprint(r["stdout"]), "write "+file) {
					t.Fatalf("%d %v %v", status, r, err)
				}
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				body["forbidden_adapters"] = []string{"fs"}
				if status, r = s.run(t, at, body); status != http.StatusForbidden || r["error"] != "policy_violation" ||
					len(r["violations"].([]any)) < 2 {
					t.Errorf("%d %v", status, r)
				}
				if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("something was done: %v", err)
				}
			}
			for field, body := range map[string]map[string]any{
				"agent":               {"agent": 7},
				"nonsense":            {"agent": "probe", "nonsense": 1},
				"allowed_adapters[1]": {"agent": "probe", "allowed_adapters": []any{"fs", nil}},
				"limits.wall_time_ms": {"agent": "probe", "limits": map[string]any{"wall_time_ms": "1"}},
				"bundle":              {"bundle": "/etc/passwd"},
				"tenant":              {"agent": "probe", "tenant": "other"},
			} {
				if status, r := s.run(t, at, body); status != http.StatusBadRequest || r["field"] != field {
					t.Errorf("%s: %d %v", field, status, r)
				}
			}
			if status, _ := s.run(t, at, map[string]any{"agent": "nobody"}); status != http.StatusNotFound {
				t.Errorf("nobody: %d", status)
			}
			if status, r := s.run(t, at, map[string]any{
				"agent": "probe", "args": []string{"spin"},
				"limits": map[string]any{"max_time_ms": 50},
			}); status != http.StatusOK || r["outcome"] != "timeout" {
				t.Errorf("%d %v", status, r)
			}
			if status, text := s.ask(t, at, http.MethodGet, "/healthz", nil); status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(); code != 0 {
		t.Errorf("it ended with %d: %s", code, s.stderr)
	}
	if r := start(t, h.env, "rlp", "audit", "verify"); r.code != 0 {
		t.Errorf("the log: %+v", r)
	}
}

// A run that is under way when the service ends has the grace time, is then
// cancelled, and has its end in the log before the process is gone.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	s := h.serving(t)
	status, r := s.run(t, 0, map[string]any{"agent": "probe", "wait": false, "args": []string{
		"write", h.work + "/begun",
		"x", "spin",
	}})
	if status != http.StatusAccepted {
		t.Fatalf("%d %v", status, r)
	}
	h.begun(t)
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(); code != 0 {
		t.Errorf("it ended with %d: %s", code, s.stderr)
	}
	if ends := h.ends(t); !slices.Equal(ends, []string{"run.failed cancelled"}) {
		t.Errorf("%q", ends)
	}
}

// begun returns when a guest has written its mark.
func (h *helped) begun(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); <-tick.C {
		if _, err := os.Stat(filepath.Join(h.work, "begun")); err == nil {
			return
		}
	}
	t.Fatal("it never began")
}

// What cannot be served safely is not served, and says why.
//
//rlp:holds A33 A48
func TestServeRefusesToStart(t *testing.T) {
	t.Parallel()
	if l := config.Default().Serve.Listen; l != "127.0.0.1:8770" {
		t.Errorf("it would serve at %s", l)
	}
	work := t.TempDir()
	env := append(os.Environ(), "HOME="+work, "RUNLOOP_HOME=")
	for name, c := range map[string]struct {
		env  string
		args []string
		code int
		says string
	}{
		"everybody":  {"", []string{"--listen", "0.0.0.0:0"}, 77, "other machines"},
		"no grant":   {"RUNLOOP__SECURITY__RUN_GRANT=nobody", nil, 65, `there is no profile "nobody"`},
		"no port":    {"", []string{"--listen", "localhost"}, 2, "HOST:PORT"},
		"nothing":    {"", []string{"--listen", "none", "--socket", "none"}, 2, "leave nothing"},
		"one tenant": {"", []string{"--tenant", "acme"}, 2, "every tenant"},
		"no key":     {"RUNLOOP__SERVE__TLS_CERT=/nowhere/cert.pem", []string{"--listen", "127.0.0.1:0"}, 65, "tls_key"},
		"a file":     {"", []string{"--listen", "none", "--socket", os.Args[0]}, 69, "something else lies there"},
		"no such token": {
			"RUNLOOP__SERVE__TOKEN_SECRET=runloop/serve/token",
			[]string{"--listen", "none"},
			69,
			"token_secret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, append(env, c.env), "rlp", append([]string{"serve"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.stderr, c.says) {
				t.Errorf("%d, want %d and %q: %s", r.code, c.code, c.says, r.stderr)
			}
		})
	}
}

// A service manager is told that it serves, and passes the listeners.
func TestServeUnderAManager(t *testing.T) {
	work := t.TempDir()
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(work, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	passed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	file, err := passed.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rlp, err := exec.LookPath("rlp")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" serve`, rlp)
	c.Env = append(os.Environ(), "HOME="+work, "RUNLOOP_HOME=", "NOTIFY_SOCKET="+filepath.Join(work, "notify"))
	c.ExtraFiles = []*os.File{file}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	heard := func() string {
		t.Helper()
		if err := notify.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 64)
		n, err := notify.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if got := heard(); got != "READY=1" {
		t.Errorf("told %q", got)
	}
	answer, err := http.Get("http://" + passed.Addr().String() + "/healthz")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%v %v", answer, err)
	}
	if err := errors.Join(answer.Body.Close(), c.Process.Signal(syscall.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	if got := heard(); got != "STOPPING=1" {
		t.Errorf("told %q", got)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended: %v", err)
	}
}
