package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a terminal of the test's own: what is typed at the keyboard, and
// what a program reads.
func ownTerminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return keyboard, tty
}

func echoes(t *testing.T, tty *os.File) bool {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return s.Lflag&unix.ECHO != 0
}

// onScreen is what stands on the screen, up to a mark that the program prints now.
func onScreen(t *testing.T, keyboard, tty *os.File) string {
	t.Helper()
	const mark = "<end>"
	if _, err := tty.WriteString(mark); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for !strings.Contains(string(text), mark) {
		part := make([]byte, 100)
		n, err := keyboard.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part[:n]...)
	}
	return string(text)
}

func TestTypingIsHidden(t *testing.T) {
	keyboard, tty := ownTerminal(t)
	if !isTTY(tty) || !echoes(t, tty) {
		t.Fatal("control: a terminal shows what is typed")
	}
	if _, err := keyboard.WriteString("control\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := tty.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if got := onScreen(t, keyboard, tty); !strings.Contains(got, "control") {
		t.Fatalf("control: %q is shown", got)
	}
	type answer struct {
		line []byte
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		line, err := readHidden(t.Context(), tty)
		done <- answer{line, err}
	}()
	for echoes(t, tty) {
		runtime.Gosched()
	}
	if _, err := keyboard.WriteString("correct-horse\n"); err != nil {
		t.Fatal(err)
	}
	if a := <-done; string(a.line) != "correct-horse\n" || a.err != nil {
		t.Errorf("read %q, %v", a.line, a.err)
	}
	if got := onScreen(t, keyboard, tty); strings.Contains(got, "horse") {
		t.Errorf("%q is shown", got)
	}
	if !echoes(t, tty) {
		t.Error("the terminal stays hidden")
	}
}

func TestHiddenTypingEndsWithTheCommand(t *testing.T) {
	_, tty := ownTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := readHidden(ctx, tty); done <- err }()
	for echoes(t, tty) {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !echoes(t, tty) {
		t.Errorf("%v, shown again: %v", err, echoes(t, tty))
	}
}
