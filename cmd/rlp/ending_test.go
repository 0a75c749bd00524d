package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runloop.dev/rlp/launcher"
)

// unread is standard output that takes nothing, and why.
type unread struct{ err error }

func (u unread) Write([]byte) (int, error) { return 0, u.err }

// traps is a module whose first instruction is a trap.
const traps = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x05\x01\x03\x00\x00\x0b"

// prints is a module that prints a line.
const prints = "\x00asm\x01\x00\x00\x00\x01\x0c\x02`\x04\x7f\x7f\x7f\x7f\x01\x7f`\x00\x00\x02#\x01\x16wasi_snapshot_preview1\x08fd_write\x00\x00\x03\x02\x01\x01\x05\x03\x01\x00\x01\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01\x0a\x0f\x01\x0d\x00A\x01A\x00A\x01A\x10\x10\x00\x1a\x0b\x0b\x11\x01\x00A\x00\x0b\x0b\x08\x00\x00\x00\x03\x00\x00\x00hi\x0a"

// Nobody who stops reading makes a success of a run that went wrong, and no
// full disk makes another end of it than the marker says.
//
//rlp:holds K36
func TestTheStatusIsTheRunsWhoeverReads(t *testing.T) {
	bundle, home := bundleOf(t, []byte(traps)), t.TempDir()
	broken := bundleOf(t, []byte("no module"))
	for _, c := range []struct {
		args   []string
		status int
	}{
		{[]string{"launch", bundle, "--limit", "cpu_fuel=0"}, launcher.StatusFuel},
		{[]string{"launch", bundle}, launcher.StatusFinding},
		{[]string{"launch", bundle, "--limit", "cpu_fuel=-1"}, launcher.StatusUsage},
		{[]string{"launch", bundle, "--deny", "fs:*:*", "--dry-run"}, launcher.StatusOK}, // control: nothing is wrong
		{[]string{"launch", broken, "--dry-run"}, launcher.StatusInput},
		{[]string{"launch", filepath.Join(home, "none")}, launcher.StatusInput},
		{[]string{"caps", "lint", filepath.Join(home, "none")}, launcher.StatusInput},
	} {
		for _, why := range []error{nil, syscall.EPIPE, syscall.ENOSPC} {
			want := c.status
			if want == launcher.StatusOK && why == syscall.ENOSPC {
				want = launcher.StatusFinding // what was to be printed is lost
			}
			var said strings.Builder
			env := environment{args: append([]string{"--home", home, "--json"}, c.args...), stdout: unread{why}, stderr: &said}
			if why == nil {
				env.stdout = io.Discard
			}
			if got := invoke(t.Context(), env); got != want {
				t.Errorf("%v, stdout %v: exit %d, want %d\n%s", c.args, why, got, want, said.String())
			}
		}
	}
}

// What an agent printed and nobody could write is no success; that nobody wanted
// it is.
func TestOutputThatIsLostIsTold(t *testing.T) {
	bundle := bundleOf(t, []byte(prints))
	for why, want := range map[error]int{
		nil: launcher.StatusOK, syscall.EPIPE: launcher.StatusOK,
		syscall.ENOSPC: launcher.StatusFinding,
	} {
		var said strings.Builder
		env := environment{args: []string{"launch", bundle, "--home", t.TempDir()}, stdout: unread{why}, stderr: &said}
		status := invoke(t.Context(), env)
		if told := strings.Contains(said.String(), "rlp: writing the agent's stdout: no space left on device"); status != want || told != (want != 0) {
			t.Errorf("%v: exit %d: %s", why, status, said.String())
		}
	}
}

// silent is input that never comes: it tells who reads.
type silent struct{ read func() }

func (s silent) Read([]byte) (int, error) {
	s.read()
	select {}
}

// Who waits for input that does not come is interrupted by the first signal.
func TestWaitingForInputIsInterrupted(t *testing.T) {
	bundle := bundleOf(t, []byte(traps))
	ctx, interrupt := context.WithCancel(t.Context())
	var report, said strings.Builder
	status := invoke(ctx, environment{
		args:  []string{"launch", bundle, "--home", t.TempDir(), "--input", "-", "--json"},
		stdin: silent{interrupt}, stdout: &report, stderr: &said,
	})
	if status != launcher.StatusCancelled || !strings.Contains(report.String(), `"outcome": "cancelled"`) {
		t.Errorf("exit %d: %s%s", status, said.String(), report.String())
	}
}

// What is interrupted while it waits says that, and nothing of what it waited for.
func TestWhatIsInterruptedSaysSo(t *testing.T) {
	over, interrupt := context.WithCancel(t.Context())
	interrupt()
	waited := &statusError{Status: launcher.StatusUnavailable, Err: fmt.Errorf("opening the store: %w",
		errors.Join(context.Canceled, io.EOF))}
	for _, c := range []struct {
		ctx    context.Context
		err    error
		status int
	}{
		{over, waited, launcher.StatusCancelled},
		{t.Context(), waited, launcher.StatusUnavailable}, // somebody else gave up
		{over, inputErr(io.EOF), launcher.StatusInput},
		{over, exitWith(launcher.StatusTimeout), launcher.StatusTimeout},
		{over, nil, launcher.StatusOK},
	} {
		var said strings.Builder
		a := &app{environment: environment{stdout: io.Discard, stderr: &said}}
		status := a.finish(interrupted(c.ctx, c.err))
		if told := said.String() == "rlp: interrupted by the operator\n"; status != c.status ||
			told != (status == launcher.StatusCancelled) {
			t.Errorf("%v: exit %d: %s", c.err, status, said.String())
		}
	}
}
