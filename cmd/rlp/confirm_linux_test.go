package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
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
