package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"runloop.dev/rlp/internal/engine/guest/hostiletest"
)

// compilers are the processes that compile for a home: their folders in /proc.
func compilers(t *testing.T, home string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range all {
		line, err := os.ReadFile(p + "/cmdline")
		if err == nil && bytes.HasPrefix(line, []byte("rlp\x00compile-guest\x00"+home)) {
			list = append(list, p)
		}
	}
	return list
}

// soon waits until something is so.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Whoever ends rlp while it compiles ends the compiler too, which has no
// variable of the operator's and no file of rlp's.
//
//rlp:holds K73
func TestTheCompilerEndsWithRlp(t *testing.T) {
	bundle := bundleOf(t, hostiletest.Nested("loops_left", 9000))
	for name, c := range map[string]struct {
		signal syscall.Signal
		code   int
	}{"interrupted": {syscall.SIGINT, 130}, "killed": {syscall.SIGKILL, -1}} {
		home := t.TempDir()
		cmd := self(t, home, "launch", bundle)
		inherited, err := os.Open(bundle)
		if err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{inherited}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var pids []string
		soon(t, "a compiler", func() bool { pids = compilers(t, home); return len(pids) == 1 })
		if env, err := os.ReadFile(pids[0] + "/environ"); err != nil || len(env) != 0 &&
			!bytes.HasPrefix(env, []byte("GORACE=")) {
			t.Errorf("its environment: %q, %v", env, err)
		}
		files, err := filepath.Glob(pids[0] + "/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if to, err := os.Readlink(f); err == nil && (strings.HasPrefix(to, home) || to == bundle) {
				t.Errorf("it has %s", to)
			}
		}
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%s: exit %d", name, code)
		}
		soon(t, "the compiler's end", func() bool { return len(compilers(t, home)) == 0 })
		left, err := filepath.Glob(filepath.Join(home, ".runloop/cache/*/*"))
		if err != nil || name == "interrupted" && len(left) != 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
		_ = inherited.Close()
	}
}

// A module that is too much is refused alike by a launch, which has compiled
// nothing then, and by what only looks at it.
func TestTooMuchIsRefusedEverywhere(t *testing.T) {
	bundle, home := bundleOf(t, hostiletest.Nested("blocks", 60_000)), t.TempDir()
	const want = "more than 10000 blocks within each other"
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"launch", bundle}, 65},
		{[]string{"launch", bundle, "--dry-run"}, 65},
		{[]string{"caps", "lint", bundle}, 1},
		{[]string{"agent", "inspect", bundle}, 0},
	} {
		cmd := self(t, home, c.args...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); !strings.Contains(string(out), want) || code != c.code {
			t.Errorf("%s: exit %d: %s", strings.Join(c.args, " "), code, out)
		}
	}
}
