package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"runloop.dev/rlp/launcher"
)

// A messenger asks a service for whoever asks it, and says so: what it asks is
// nobody's but for a token. It is a machine elsewhere, without one.
type messenger struct {
	*httptest.Server
	bearer atomic.Value // the Authorization of the last request
}

func (s *testService) through(t *testing.T) *messenger {
	t.Helper()
	to, err := url.Parse(s.said.Addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	m := &messenger{}
	p := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		m.bearer.Store(r.In.Header.Get("Authorization"))
		r.SetURL(to) // and so the host
		r.SetXForwarded()
	}}
	m.Server = httptest.NewServer(p)
	t.Cleanup(m.Close)
	return m
}

// everywhere is what files below a folder hold, by path.
func everywhere(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%v: %d files", err, len(all))
	}
	return all
}

// arguments are those of all processes of this machine.
func arguments(t *testing.T) string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, path := range all {
		line, _ := os.ReadFile(path) // it may have ended
		text.Write(append(line, '\n'))
	}
	return text.String()
}

// A token in the environment proves who asks a service elsewhere, and nothing
// does without it; it is in no argument, no log, no trace and no message.
//
//rlp:holds K57 K71
func TestTokenOfTheEnvironment(t *testing.T) {
	t.Parallel()
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	collector := telling(t)
	h.env = append(h.env, "RUNLOOP__SERVE__OTLP="+collector.URL)
	s := h.serving(t)
	far := s.through(t)
	token, id := h.newToken(t, "--name", "ci")
	bearing := append(h.env[:len(h.env):len(h.env)], "RUNLOOP_TOKEN="+token)
	said := map[string]string{}
	ask := func(env []string, args ...string) ran {
		t.Helper()
		r := start(t, env, "rlp", args...)
		said[strings.Join(args, " ")] += r.stdout + r.stderr
		return r
	}
	launch := []string{"launch", "-v", "--remote=" + far.URL, "--json", "probe", "--", "args"}
	tops := []string{"top", "--remote=" + far.URL, "--json"}

	r := ask(bearing, launch...)
	var report launcher.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || r.code != 0 || report.Outcome != launcher.OK {
		t.Fatalf("control: %v %+v", err, r)
	}
	if far.bearer.Load() != "Bearer "+token {
		t.Errorf("control: %v was sent", far.bearer.Load())
	}
	if r := ask(bearing, tops...); r.code != 0 || !strings.Contains(r.stdout, report.RunID) || !strings.Contains(r.stdout,
		`"caller": "token:ci"`) {
		t.Errorf("control: %+v", r)
	}
	wrong := token[:len(token)-4] + "2222"
	refused := func(what string, env []string, says string) {
		t.Helper()
		for _, args := range [][]string{launch, tops} {
			if r := ask(env, args...); r.code != launcher.StatusPolicy || !strings.Contains(r.stderr, says) ||
				strings.Contains(r.stdout, report.RunID) {
				t.Errorf("%s: %s: %+v", what, args[0], r)
			}
		}
	}
	refused("without", h.env, "rlp token new")
	refused("another", append(h.env, "RUNLOOP_TOKEN="+wrong), "the token is not good here")
	if r := ask(append(h.env, "RUNLOOP_TOKEN="+token+" x"), launch...); r.code != launcher.StatusUsage ||
		!strings.Contains(r.stderr, "a blank in it") {
		t.Errorf("with a blank: %+v", r)
	}
	if r := ask(bearing, "launch", "--remote=http://192.0.2.1:8770", "probe"); r.code != launcher.StatusUsage ||
		!strings.Contains(r.stderr, "in the clear") {
		t.Errorf("in the clear: %+v", r)
	}

	// While a run goes on that waits for a token, the token ends.
	c := exec.Command("rlp", "launch", "--remote="+far.URL, "probe", "--", "write", h.work+"/begun", "x", "spin")
	var out bytes.Buffer
	c.Env, c.Stdout, c.Stderr = bearing, &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	h.begun(t)
	if text := arguments(t); !strings.Contains(text, "--remote="+far.URL) || strings.Contains(text, secretOf(token)) {
		t.Errorf("arguments of all: %q", text)
	}
	h.revoke(t, id)
	if _ = c.Wait(); c.ProcessState.ExitCode() == 0 {
		t.Errorf("its token was revoked: %s", &out)
	}
	soon(t, "the run ends with its token", func() bool {
		_, text := s.ask(t, 0, http.MethodGet, "/runs?limit=1", nil)
		return strings.Contains(text, `"outcome":"cancelled"`)
	})
	refused("revoked", bearing, "the token is revoked")

	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.ended(); code != 0 {
		t.Errorf("it ended with %d: %s", code, s.stderr)
	}
	said["the service"], said["the launch whose token was revoked"] = s.stderr.String(), out.String()
	said["traces"], said["metrics"] = collector.at("/v1/traces"), collector.at("/v1/metrics")
	said["records"] = start(t, h.env, "rlp", "audit", "list", "--json").stdout
	if !strings.Contains(said["traces"], "run probe") || !strings.Contains(said["records"], report.RunID) ||
		!strings.Contains(s.own(t), "token:ci") {
		t.Errorf("control: what is looked through: %d %d", len(said["traces"]), len(said["records"]))
	}
	for path, text := range everywhere(t, h.home) {
		said[path] = text
	}
	for where, text := range said {
		for _, value := range []string{secretOf(token), secretOf(wrong)} {
			if how := holds(text, value); how != "" {
				t.Errorf("%s has the token as %s", where, how)
			}
		}
	}
}

// secretOf is what of a token nobody may know but its holder: all behind its id.
func secretOf(token string) string { return token[strings.LastIndexByte(token, '_')+1:] }
