//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// A command is a program that says what it is expected to, and ends with 0.
type command struct {
	args []string // the program's path first
	env  []string
	says string
}

// spawner starts one program at a time from one thread, with nothing between
// the clock and the system calls: os/exec's pipes and goroutines take longer
// than a small program runs.
type spawner struct {
	null, out *os.File
}

func newSpawner(out string) (*spawner, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(out, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		null.Close()
		return nil, err
	}
	return &spawner{null, f}, nil
}

func (s *spawner) close() {
	s.null.Close()
	s.out.Close()
}

// run returns how long c took from before it was started until it was gone.
func (s *spawner) run(c command) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := s.out.Truncate(0); err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{Env: c.env, Files: []uintptr{s.null.Fd(), s.out.Fd(), s.out.Fd()}}
	began := time.Now()
	pid, err := syscall.ForkExec(c.args[0], c.args, attr)
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", c.args[0], err)
	}
	var status syscall.WaitStatus
	for {
		_, err = syscall.Wait4(pid, &status, 0, nil)
		if err != syscall.EINTR {
			break
		}
	}
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, s.judge(c, status)
}

// judge returns an error unless the program did what it was started for.
func (s *spawner) judge(c command, status syscall.WaitStatus) error {
	said := make([]byte, 4096)
	n, _ := s.out.ReadAt(said, 0)
	said = bytes.TrimSpace(said[:n])
	if !status.Exited() || status.ExitStatus() != 0 || string(said) != c.says {
		return fmt.Errorf("%q ended with %d and said %q, not %q", c.args, status.ExitStatus(), said, c.says)
	}
	return nil
}
