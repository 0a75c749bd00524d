package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runIn is rlp run in a home, for an agent.
func runIn(home, agent string, args ...string) *exec.Cmd {
	c := exec.Command("rlp", append([]string{"run", "--name", agent}, args...)...)
	c.Env = append(os.Environ(), "HOME="+home, "RUNLOOP_HOME=")
	return c
}

// An edit that takes a host away cuts what is open to it within a second; the record
// says how many bytes went, and for how long.
//
//rlp:holds N15
func TestAnEditCutsConnections(t *testing.T) {
	home := t.TempDir()
	begun, over := make(chan struct{}), make(chan time.Time, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "begun ")
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
		over <- time.Now()
	}))
	defer s.Close()
	c := runIn(home, "held", "--audit-allow", "--allow", "network:tcp:"+strings.TrimPrefix(s.URL, "http://"), "--", "curl",
		"-sN", s.URL)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	must(t, c.Start())
	<-begun
	override := filepath.Join(home, ".runloop", "caps", "overrides", "held.toml")
	must(t, os.WriteFile(override, []byte("[capabilities]\nnet = []\n"), 0o600))
	edited := time.Now()
	if err := c.Wait(); err == nil || !strings.HasPrefix(out.String(), "begun ") {
		t.Errorf("it ended well: %v\n%s", err, out.String())
	}
	if took := (<-over).Sub(edited); took > time.Second {
		t.Errorf("cut after %v", took)
	}
	log := exec.Command("rlp", "audit", "list", "--json")
	log.Env = append(os.Environ(), "HOME="+home, "RUNLOOP_HOME=")
	text, err := log.Output()
	must(t, err)
	for _, want := range []string{`"kind":"caps.swap"`, `"verb":"connect"`, "what allowed it was taken away", `"duration_ms":`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the log has no %s:\n%s", want, text)
		}
	}
}

// A signal that rlp is sent reaches the program, which may end by it; one that does not
// is ended, and so is what takes no notice of an end of its time.
//
//rlp:holds N12
func TestSignalsReachTheProgram(t *testing.T) {
	home := t.TempDir()
	const loop = "; echo begun; while :; do sleep 0.1; done"
	for name, c := range map[string]struct {
		signal syscall.Signal
		script string
		says   string
	}{
		"term":    {syscall.SIGTERM, "trap 'echo asked; exit 3' TERM" + loop, "begun\nasked\n"},
		"hup":     {syscall.SIGHUP, "trap 'echo asked; exit 3' HUP" + loop, "begun\nasked\n"},
		"int":     {syscall.SIGINT, "trap 'echo asked; exit 3' INT" + loop, "begun\nasked\n"},
		"default": {syscall.SIGTERM, "trap : USR1" + loop, "begun\n"},
		"deaf":    {syscall.SIGTERM, "trap 'echo asked' TERM" + loop, "begun\nasked\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := c
			cmd := runIn(home, "asked"+name, "--allow", "process:exec:*", "--", "sh", "-c", c.script)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			lines := bufio.NewReader(out)
			said, err := lines.ReadString('\n')
			must(t, err)
			must(t, cmd.Process.Signal(c.signal))
			rest, err := io.ReadAll(lines)
			must(t, err)
			_ = cmd.Wait()
			if said += string(rest); said != c.says || cmd.ProcessState.ExitCode() != 130 {
				t.Errorf("%q, want %q; %v", said, c.says, cmd.ProcessState)
			}
		})
	}
	t.Run("late", func(t *testing.T) { // control: what ends by its time is not waited for
		t.Parallel()
		began := time.Now()
		cmd := runIn(home, "late", "--allow", "process:exec:*", "--limit", "wall_time_ms=500", "--", "sh", "-c",
			"trap '' TERM"+loop)
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 124 || time.Since(began) > 4*time.Second {
			t.Errorf("%v after %v", cmd.ProcessState, time.Since(began))
		}
	})
}

// Where nobody looks on, stderr says in two lines what a program was denied.
//
//rlp:holds D6
func TestDenialsAreToldOffATerminal(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		flags []string
		urls  []string
		says  []string
	}{
		{nil, nil, nil},
		{nil, []string{"https://example.com/"}, []string{
			"rlp: denied net.connect https://example.com:443", "rlp: why: rlp caps explain",
		}},
		{nil, []string{"https://a.example/", "https://b.example/", "https://c.example/"}, []string{
			"rlp: denied net.connect https://a.example:443", "rlp: and 2 more: rlp runs show ",
		}},
		{[]string{"-q"}, []string{"https://example.com/"}, nil},
		{[]string{"--json"}, []string{"https://example.com/"}, nil},
	} {
		args := append(slices.Clone(c.flags), "--allow", "process:exec:*", "--", "sh", "-c", `for url; do curl -s "$url"; done; true`, "sh")
		cmd := runIn(home, "quiet", append(args, c.urls...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		must(t, cmd.Run())
		lines := strings.FieldsFunc(said.String(), func(r rune) bool { return r == '\n' })
		if len(lines) != len(c.says) {
			t.Errorf("%q %q: %q", c.flags, c.urls, lines)
			continue
		}
		for i, want := range c.says {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%q %q: %q, want %q", c.flags, c.urls, lines[i], want)
			}
		}
	}
}
