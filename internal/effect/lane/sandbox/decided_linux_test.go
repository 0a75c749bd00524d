package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// replaceable is a program of a plan that knows it by what it holds.
func replaceable(t *testing.T, command string) (p *Plan, say []byte) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath(command)
	if err != nil {
		t.Fatal(err)
	}
	say, err = os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "program"), say, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(say)
	return &Plan{File: filepath.Join(dir, "program"), Work: dir, Dir: ".", SHA256: hex.EncodeToString(sum[:])}, say
}

// What is executed is the file that was read, by the descriptor that it was read by:
// another one that is put in its place after that changes nothing.
func TestWhatWasReadIsExecuted(t *testing.T) {
	p, _ := replaceable(t, "echo")
	program, _, err := p.find()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(program)
	other := filepath.Join(p.Work, "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho another\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, p.File); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(p.File, "read").Output(); err != nil || string(out) != "another\n" {
		t.Fatalf("control: its path leads to %q, %v", out, err)
	}
	c := exec.Command("/proc/self/fd/"+strconv.Itoa(program), "read")
	if out, err := c.Output(); err != nil || string(out) != "read\n" {
		t.Errorf("it said %q, %v", out, err)
	}
	if _, _, err := p.find(); !errors.Is(err, errProgram) || !strings.Contains(err.Error(), "another file than its manifest") {
		t.Errorf("the other one: %v", err)
	}
}

// A file that was read cannot be written until it is executed, and one that is being
// written is not executed.
func TestWhatWasReadIsNotWritten(t *testing.T) {
	p, _ := replaceable(t, "true")
	write := func() (*os.File, error) { return os.OpenFile(p.File, os.O_WRONLY|unix.O_NONBLOCK, 0) }
	f, err := write()
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	if _, _, err := p.find(); !errors.Is(err, errProgram) || !strings.Contains(err.Error(), "somebody is writing it") {
		t.Errorf("while it is written: %v", err)
	}
	_ = f.Close()
	program, _, err := p.find()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(program)
	if f, err := write(); !errors.Is(err, unix.EWOULDBLOCK) {
		_ = f.Close()
		t.Errorf("it is written after it was read: %v", err)
	}
}

// What is no regular file is not opened to be read.
func TestNothingElseIsRead(t *testing.T) {
	p, _ := replaceable(t, "true")
	if err := os.Remove(p.File); err != nil {
		t.Fatal(err)
	}
	for what, make := range map[string]func() error{
		"a pipe":   func() error { return unix.Mkfifo(p.File, 0o700) },
		"a folder": func() error { return os.Mkdir(p.File, 0o700) },
		"a link":   func() error { return os.Symlink("/bin/true", p.File) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.find(); !errors.Is(err, errProgram) {
			t.Errorf("%s: %v", what, err)
		}
		if err := os.Remove(p.File); err != nil {
			t.Fatal(err)
		}
	}
}
