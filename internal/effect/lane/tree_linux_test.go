package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lanes runs a test with a control group, where one is to be had, and without.
func lanes(t *testing.T, test func(t *testing.T, n *native)) {
	for _, none := range []bool{false, true} {
		t.Run(fmt.Sprintf("group=%v", !none), func(t *testing.T) {
			test(t, newNative(t, func(c *Config) { c.noGroup = none }))
		})
	}
}

// escapes are processes that outlive a shell: in its group, out of it, and in
// nobody's sight. Each writes its number to the file named by its place.
const escapes = `
sh -c 'echo $$ >p1; exec sleep 1000' &
setsid sh -c 'echo $$ >p2; trap "" HUP TERM INT; exec sleep 1000' &
nohup setsid sh -c '(setsid sh -c "echo \$\$ >p3; exec sleep 1000" &) ; exit' >/dev/null 2>&1 &
(setsid sh -c '(while :; do sleep 1000; done & echo $! >p4)' >/dev/null </dev/null 2>&1 &)
for p in p1 p2 p3 p4; do until [ -s $p ]; do sleep 0.01; done; done
`

// escaped are the numbers in dir.
func escaped(t *testing.T, dir string) (pids []int) {
	t.Helper()
	for _, name := range []string{"p1", "p2", "p3", "p4"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func living(pids []int) (alive []int) {
	for _, pid := range pids {
		if unix.Kill(pid, 0) == nil {
			alive = append(alive, pid)
		}
	}
	return alive
}

// control runs script as os/exec does, in a group of its own that is killed.
func control(t *testing.T, script string) []int {
	t.Helper()
	if err := PrepareProcess(); err != nil { // so that what is left comes to us
		t.Fatal(err)
	}
	before, err := others()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // they are not of a lane, and no sweep is meant for them
		for left := true; left; pause() {
			list, err := Children()
			if err != nil {
				t.Fatal(err)
			}
			left = false
			for _, pid := range list {
				if !before[pid] {
					left = true
					_ = unix.Kill(pid, unix.SIGKILL)
					_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				}
			}
		}
	})
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir, cmd.SysProcAttr = t.TempDir(), &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	return escaped(t, cmd.Dir)
}

//rlp:holds R84 K42
func TestNothingOutlivesAProgram(t *testing.T) {
	if alive := living(control(t, escapes)); len(alive) < 3 {
		t.Fatalf("control: ending the group leaves only %v", alive)
	}
	lanes(t, func(t *testing.T, n *native) {
		mustRun(t, n, shell(t, escapes))
		if alive := living(escaped(t, n.cfg.Work)); len(alive) != 0 {
			t.Errorf("%v live on", alive)
		}
	})
}

//rlp:holds R84 K42
func TestTheDeadlineEndsTheTree(t *testing.T) {
	lanes(t, func(t *testing.T, n *native) {
		c := shell(t, escapes+"echo begun; exec sleep 1000")
		for c.Timeout = 700 * time.Millisecond; ; c.Timeout *= 8 {
			began := time.Now()
			r := mustRun(t, n, c)
			if len(r.Stdout.Data) == 0 && r.TimedOut && c.Timeout < 10*time.Second {
				continue // a slow machine has not begun by then
			}
			if !r.TimedOut || r.ExitCode != 128+9 || string(r.Stdout.Data) != "begun\n" {
				t.Errorf("%+v", r)
			}
			if took := time.Since(began); took < c.Timeout || took > c.Timeout+20*time.Second {
				t.Errorf("took %s", took)
			}
			break
		}
		if alive := living(escaped(t, n.cfg.Work)); len(alive) != 0 {
			t.Errorf("%v live on", alive)
		}
	})
}

func TestTheEndOfTheRunEndsTheTree(t *testing.T) {
	lanes(t, func(t *testing.T, n *native) {
		ctx, cancel := context.WithCancel(t.Context())
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		go func() { // the program says when it may be ended
			_, _ = os.ReadFile(fifo)
			cancel()
		}()
		_, err := n.Run(ctx, shell(t, escapes+"echo >"+fifo+"; exec sleep 1000"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if alive := living(escaped(t, n.cfg.Work)); len(alive) != 0 {
			t.Errorf("%v live on", alive)
		}
		if _, err := n.Run(ctx, shell(t, "touch started")); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
		if _, err := os.Stat(n.cfg.Work + "/started"); err == nil {
			t.Error("started after the end")
		}
		if r := mustRun(t, n, shell(t, "exit 4")); r.ExitCode != 4 {
			t.Errorf("the next one: %+v", r)
		}
	})
}

// A fork bomb that leaves every group and is in flight when its time is over.
func TestAForkBombEnds(t *testing.T) {
	lanes(t, func(t *testing.T, n *native) {
		c := shell(t, `b() { i=0; while [ $i -lt 40 ]; do setsid sh -c 'sleep 1000 & sleep 1000' & i=$((i+1)); done; }; b; sleep 1000`)
		c.Timeout = 300 * time.Millisecond
		mustRun(t, n, c)
		if left, err := Children(); err != nil || len(left) != 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

func TestChildrenOfOthersAreLeftAlone(t *testing.T) {
	lanes(t, func(t *testing.T, n *native) {
		cmd := exec.Command("/bin/sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		mustRun(t, n, shell(t, escapes))
		if alive := living(escaped(t, n.cfg.Work)); len(alive) != 0 {
			t.Errorf("%v live on", alive)
		}
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the other child: %v", err)
		}
		list, err := childrenOf(os.Getpid())
		if err != nil || len(list) != 1 || list[0] != cmd.Process.Pid {
			t.Errorf("children by their parents' numbers: %v, %v; want %d", list, err, cmd.Process.Pid)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// A child that another part of rlp starts while a program runs is not swept away.
func TestWhatOthersStartMeanwhileIsLeftAlone(t *testing.T) {
	lanes(t, func(t *testing.T, n *native) {
		mustRun(t, n, shell(t, "true"))
		fifo := filepath.Join(n.cfg.Work, "fifo")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sleep", "1000")
		started := make(chan error, 1)
		go func() {
			_, err := os.ReadFile(fifo) // the program runs
			if err == nil {
				err = cmd.Start()
			}
			started <- err
			_ = os.WriteFile(fifo, nil, 0o600)
		}()
		mustRun(t, n, shell(t, "echo >fifo; cat fifo; "+escapes))
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		if alive := living(escaped(t, n.cfg.Work)); len(alive) != 0 {
			t.Errorf("%v live on", alive)
		}
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the other child: %v", err)
		}
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("the other child: %v", err)
		}
	})
}
