package main

import (
	"bytes"
	"context"
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
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/hostcalls"
)

// pty is a terminal of a script's own.
func pty() (keyboard, tty *os.File, err error) {
	if keyboard, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	if err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(err, keyboard.Close())
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, errors.Join(err, keyboard.Close())
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	return keyboard, tty, err
}

// asked runs a command of the script at a terminal of its own, with stdin and
// stdout elsewhere, types ANSWER when it is asked, and writes what was shown to
// the files screen and stdout: asked ANSWER COMMAND ARGS... What is typed before
// the question, EARLY, is typed before the command begins.
func asked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: asked ANSWER COMMAND ARGS...")
	}
	keyboard, tty, err := pty()
	ts.Check(err)
	defer keyboard.Close()
	if early := ts.Getenv("EARLY"); early != "" {
		_, err := keyboard.WriteString(early + "\n")
		ts.Check(err)
	}
	path := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, args[1]); path == "" {
			if _, err := os.Stat(p); err == nil {
				path = p
			}
		}
	}
	var out bytes.Buffer
	cmd := exec.Command(path, args[2:]...)
	cmd.Args[0] = args[1]
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &out, &out
	for _, name := range []string{"HOME", "PATH", "RUNLOOP_HOME", "WORK", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.ExtraFiles = []*os.File{tty}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	ts.Check(cmd.Start())
	ts.Check(tty.Close())
	screen := make(chan []byte)
	go func() {
		var all []byte
		part := make([]byte, 1024)
		for {
			n, err := keyboard.Read(part)
			all = append(all, part[:n]...)
			if err != nil { // nobody holds the terminal any more
				screen <- all
				return
			}
			if bytes.HasSuffix(all, []byte("\nAllow it this once? [y/N] ")) {
				_, _ = keyboard.WriteString(args[0] + "\n")
			}
		}
	}()
	_ = cmd.Wait() // the script looks at what it said
	ts.Check(os.WriteFile(ts.MkAbs("screen"), <-screen, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("said"), out.Bytes(), 0o600))
}

// What is typed before the question, no answer, and the end of the run are each
// no yes; the words of a guest cannot draw on the screen.
func TestOnlyAnAnswerIsAYes(t *testing.T) {
	q := hostcalls.Question{Tool: "send", Description: "d\x1b[2J\r\nAllow it", Target: "POST https://x.org/", Arguments: strings.Repeat("x", 5000) + "\u202e"}
	shownText := asking("writer", q)
	for _, c := range []string{"\x1b", "\u202e", "\nAllow it this once? [y/N] y"} {
		if strings.Contains(shownText, c) {
			t.Errorf("%q is shown", c)
		}
	}
	if strings.Count(shownText, "\r\n") != 5 || !strings.Contains(shownText, "and 1006 characters more that are not shown") {
		t.Errorf("%s", shownText)
	}
	drawn := &typing{text: strings.NewReader("n\n")}
	askAt(t.Context(), drawn, "writer", q)
	if shown := drawn.shown.String(); !strings.HasPrefix(shown, "\x18\x1b\\") || !strings.HasSuffix(shown, shownText) || strings.IndexByte(ownScreen, '\n') >= 0 {
		t.Errorf("what an agent left open is not ended first: %q", shown)
	}
	for typed, want := range map[string]bool{"y\n": true, "YES\n": true, " yes \n": true, "n\n": false, "\n": false, "yy\n": false, "y": false, strings.Repeat("y", 100) + "\n": false} {
		s := &typing{text: strings.NewReader(typed)}
		if yes, how := askAt(t.Context(), s, "writer", q); yes != want {
			t.Errorf("%q: %v, %s", typed, yes, how)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &typing{waits: make(chan struct{})}
	if yes, how := askAt(ctx, s, "writer", q); yes || how != "nobody answered in time" {
		t.Errorf("after the end of the run: %v %s", yes, how)
	}
}

// typing is a screen at which text was typed; one that waits ends with its
// deadline.
type typing struct {
	text  *strings.Reader
	shown strings.Builder
	waits chan struct{}
}

func (s *typing) Read(p []byte) (int, error) {
	if s.waits != nil {
		<-s.waits
		return 0, os.ErrDeadlineExceeded
	}
	return s.text.Read(p)
}
func (s *typing) Write(p []byte) (int, error) { return s.shown.Write(p) }
func (s *typing) Close() error                { return nil }
func (s *typing) SetReadDeadline(t time.Time) error {
	if s.waits != nil && t.Before(time.Now()) {
		close(s.waits)
	}
	return nil
}
