package lane

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lanesOfProcesses are the lanes in which a program can be spoken with.
func lanesOfProcesses(t *testing.T, test func(t *testing.T, l Lane)) {
	eachSandbox(t, func(t *testing.T, name string) { test(t, newLane(t, name)) })
	t.Run("native", func(t *testing.T) { test(t, newNative(t)) })
}

func started(t *testing.T, ctx context.Context, l Lane, c *Command) *Process {
	t.Helper()
	p, err := Start(ctx, l, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.End() })
	return p
}

// Whatever a program does to live on, it and what it started end with
// [Process.End], and with the context that it was started in.
func TestAProcessEndsWithAllThatItStarted(t *testing.T) {
	lanesOfProcesses(t, func(t *testing.T, l Lane) {
		for _, how := range []string{"End", "context"} {
			dir := shared(t)
			c := shell(t, "cd "+dir+leaving+"\ntrap '' TERM HUP INT; sleep 1000")
			c.Folders, c.Timeout = []Folder{{Path: dir, Access: ReadWrite}}, time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			p := started(t, ctx, l, c)
			if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil || line != "begun\n" {
				t.Fatalf("%q %v", line, err)
			}
			if !locked(t, filepath.Join(dir, "l1")) || !locked(t, filepath.Join(dir, "l2")) {
				t.Error("control: nothing lives")
			}
			if how == "context" {
				cancel()
				<-p.Done()
			}
			if _, err := p.End(); err != nil {
				t.Error(how, err)
			}
			cancel()
			for _, lock := range []string{"l1", "l2", "l3"} {
				if locked(t, filepath.Join(dir, lock)) {
					t.Errorf("%s: %s lives", how, lock)
				}
			}
		}
	})
}

// What is no program, or cannot be started, shows as the end of its output.
func TestAProcessThatDoesNotBegin(t *testing.T) {
	lanesOfProcesses(t, func(t *testing.T, l Lane) {
		p := started(t, t.Context(), l, &Command{Program: "/nowhere/at/all", Argv: []string{"x"}, Timeout: time.Hour})
		if rest, err := io.ReadAll(p.Stdout); err != nil || len(rest) > 0 {
			t.Errorf("%q %v", rest, err)
		}
		if _, err := p.End(); !errors.Is(err, ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}

// Where programs of the lane native can be told apart by nothing, one that stays
// would keep all others from running.
func TestAProcessIsRefusedWhereProgramsTakeTurns(t *testing.T) {
	n := newNative(t, func(c *Config) { c.noScope = true })
	_, err := Start(t.Context(), n, shell(t, "cat"))
	var u *UnsupportedError
	if !errors.As(err, &u) || !strings.Contains(u.Text(), "one runs at a time") {
		t.Errorf("%v", err)
	}
	p := started(t, t.Context(), newNative(t), shell(t, "cat")) // control
	if _, err := p.End(); err != nil {
		t.Error(err)
	}
}
