package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/launcher"
)

// A shownText is what a program has written to its terminal.
type shownText struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (s *shownText) read(f *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits until text was written.
func (s *shownText) until(t *testing.T, text string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		s.mu.Lock()
		found := strings.Contains(s.text.String(), text)
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("%q is not on the screen: %q", text, s.text.String())
		}
	}
}

// rlp top on a terminal of 80 by 24, of a real service.
func TestTop(t *testing.T) {
	m := &made{probe: buildProbe(t)}
	m.cache = compiledProbe(t, m.probe)
	h := m.servable(t)
	if r := start(t, h.env, "rlp", "top"); r.code != launcher.StatusUnavailable {
		t.Errorf("nobody serves: %+v", r)
	}
	h.serving(t)
	if r := start(t, h.env, "rlp", "launch", "--remote", "--json", h.agent); r.code == launcher.StatusUnavailable {
		t.Fatalf("%+v", r)
	}
	plain := start(t, h.env, "rlp", "top")
	if lines := strings.Split(strings.TrimSpace(plain.stdout), "\n"); plain.code != 0 || len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "RUN") {
		t.Fatalf("%+v", plain)
	}
	var doc struct {
		Runs []struct {
			Agent string `json:"agent"`
		} `json:"runs"`
	}
	if r := start(t, h.env, "rlp", "top", "--json"); json.Unmarshal([]byte(r.stdout), &doc) != nil || len(doc.Runs) != 1 {
		t.Fatalf("%+v", r)
	}
	c := exec.Command("rlp", "top")
	c.Env = append(h.env, "TERM=xterm-256color", "NO_COLOR=1")
	f, tty := ownTerminal(t)
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() }) // it may have ended
	s := &shownText{more: make(chan struct{}, 1)}
	go s.read(f)
	press := func(key string) {
		if _, err := f.WriteString(key); err != nil {
			t.Fatal(err)
		}
	}
	s.until(t, doc.Runs[0].Agent)
	press("\r")
	s.until(t, "run.start")
	press("?")
	s.until(t, "asks before")
	press("q")
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %q", err, s.text.String())
	}
}
