package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A seat is a terminal at which somebody runs a program.
type seat struct {
	t        *testing.T
	keyboard *os.File
	shown    string
	read     chan string
	command  *exec.Cmd
}

// sit runs a program by rlp run at a terminal of 33 lines.
func sit(t *testing.T, home, agent string, args ...string) *seat {
	t.Helper()
	keyboard, tty := ownTerminal(t)
	must(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77}))
	s := &seat{t: t, keyboard: keyboard, read: make(chan string, 1000), command: runIn(home, agent, args...)}
	s.command.Env = append(s.command.Env, "TERM=xterm")
	s.command.Stdin, s.command.Stdout, s.command.Stderr = tty, tty, tty
	s.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, s.command.Start())
	must(t, tty.Close()) // the end of the program is the end of what is shown
	go func() {
		defer close(s.read)
		for buf := make([]byte, 4096); ; {
			n, err := keyboard.Read(buf)
			if err != nil {
				return
			}
			s.read <- string(buf[:n])
		}
	}()
	t.Cleanup(func() { _ = s.command.Process.Kill() })
	return s
}

// sees waits until text is shown, then types; it returns what was shown before.
func (s *seat) sees(text, types string) (before string) {
	s.t.Helper()
	for late := time.After(time.Minute); ; {
		var found bool
		if before, s.shown, found = cut(s.shown, text); found {
			break
		}
		select {
		case more, ok := <-s.read:
			if !ok {
				s.t.Fatalf("%q is not shown, but %.2000q", text, s.shown)
			}
			s.shown += more
		case <-late:
			s.t.Fatalf("%q is not shown, but %.2000q", text, s.shown)
		}
	}
	if _, err := s.keyboard.WriteString(types); err != nil {
		s.t.Fatal(err)
	}
	return before
}

// cut is [strings.Cut] that leaves s whole where sep is not in it.
func cut(s, sep string) (before, behind string, found bool) {
	if before, behind, found = strings.Cut(s, sep); !found {
		return "", s, false
	}
	return before, behind, true
}

// ends waits for the end.
func (s *seat) ends(status int) {
	s.t.Helper()
	for more := range s.read {
		s.shown += more
	}
	if err := s.command.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		s.t.Fatal(err)
	}
	if got := s.command.ProcessState.ExitCode(); got != status {
		s.t.Errorf("status %d, want %d; %q", got, status, s.shown)
	}
}

// A shell has its jobs and its screen, an editor writes what was typed.
//
//rlp:holds N12
func TestRunAtATerminal(t *testing.T) {
	home := t.TempDir()
	s := sit(t, home, "shell", "--allow", "process:exec:*", "--", "bash", "--norc", "--noprofile", "-i")
	s.sees("$ ", "stty size\r")
	// a key that is typed while bash changes the modes of the terminal may get lost
	s.sees("33 77", `sh -c 'trap "echo \$((40+3))on; exec sleep 1000" CONT; echo $((40+2))go; while :; do :; done'`+"\r")
	s.sees("42go\r\n", "\x1a")
	s.sees("Stopped", "")
	s.sees("$ ", "fg\r")
	s.sees("43on\r\n", "\x03")
	s.sees("$ ", "echo ended $?\r")
	s.sees("ended 130", "exit 9\r")
	s.ends(9)
	if _, err := os.Stat("/usr/bin/vi"); err != nil {
		t.Log("smaller: vi is not installed")
		return
	}
	dir := t.TempDir()
	s = sit(t, home, "editor", "--allow", "fs:write:"+dir, "--", "vi", "-u", "NONE", "-n", filepath.Join(dir, "text"))
	s.sees("[New", ":set lines?\r")
	s.sees("lines=33", "ione\x7f\x7f\x7ftwo\x1b:wq\r")
	s.ends(0)
	if text, err := os.ReadFile(filepath.Join(dir, "text")); err != nil || string(text) != "two\n" {
		t.Errorf("%q %v", text, err)
	}
}

// A program ends on time with all that it started, has as much memory as it may, and
// of what it prints the report keeps what its limit says; each with a control.
//
//rlp:holds N12
func TestRunIsBounded(t *testing.T) {
	home := t.TempDir()
	run := func(agent, script string, limits ...string) (outcome string, status int, out string) {
		t.Helper()
		args := []string{"--json", "--allow", "process:exec:*"}
		for _, l := range limits {
			args = append(args, "--limit", l)
		}
		text, err := runIn(home, agent, append(args, "--", "sh", "-c", script)...).Output()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		var report struct {
			Outcome, Stdout string
			ExitCode        int `json:"exit_code"`
		}
		must(t, json.Unmarshal(text, &report))
		return report.Outcome, report.ExitCode, report.Stdout
	}
	const tree = "echo begun; setsid sleep 86399 & "
	outcome, status, out := run("late", tree+"exec sleep 86399", "wall_time_ms=2000")
	if status != 124 || out != "begun\n" {
		t.Errorf("%s, %d, %q", outcome, status, out)
	}
	outcome, status, out = run("soon", tree+"exit 0", "wall_time_ms=60000")
	if status != 0 || out != "begun\n" {
		t.Errorf("%s, %d, %q", outcome, status, out)
	}
	if left, err := exec.Command("pgrep", "-f", "^sleep 86399$").Output(); err == nil {
		t.Errorf("left: %s", left)
	}
	const much = "head -c 150000000 /dev/zero | tail -c 140000000 | wc -c" // tail holds it
	if outcome, status, _ := run("large", much, "memory_bytes=64000000"); status != 138 {
		t.Errorf("%s, %d", outcome, status)
	}
	if outcome, status, out := run("small", much); status != 0 || out != "140000000\n" {
		t.Errorf("control: %s, %d, %q", outcome, status, out)
	}
	for limit, kept := range map[string]int{"stdout_max_bytes=1000": 1000, "stdout_max_bytes=9000": 5000} {
		outcome, status, out := run("loud", "head -c 5000 /dev/zero | tr '\\0' x", limit)
		if status != 0 || len(out) != kept {
			t.Errorf("%s, %d, %d bytes", outcome, status, len(out))
		}
	}
}
