package lane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// stays is a program that has a child of its own session and an orphan, says so
// by the file begun, and ends well when it may and both still live.
const stays = `
setsid sh -c 'echo $$ >child; exec sleep 1000' &
(setsid sh -c 'echo $$ >orphan; exec sleep 1000' >/dev/null </dev/null 2>&1 &)
for p in child orphan; do until [ -s $p ]; do sleep 0.01; done; done
echo >begun
cat gate
kill -0 $(cat child) && kill -0 $(cat orphan)
`

// A resident is a program that runs until it is let go.
type resident struct {
	dir   string
	ended chan *Result
}

func reside(t *testing.T, l Lane, work string) *resident {
	t.Helper()
	r := &resident{dir: work, ended: make(chan *Result, 1)}
	go func() {
		result, err := l.Run(context.WithoutCancel(t.Context()), shell(t, "mkfifo gate; "+stays))
		if err != nil {
			t.Error(err)
		}
		r.ended <- result
	}()
	for until := time.Now().Add(time.Minute); !exists(filepath.Join(work, "begun")); pause() {
		if time.Now().After(until) {
			t.Fatal("it does not begin")
		}
	}
	return r
}

// leave lets the program go, and reports whether it and all of its own lived.
func (r *resident) leave(t *testing.T) bool {
	t.Helper()
	go func() { _ = os.WriteFile(filepath.Join(r.dir, "gate"), nil, 0o600) }() // stays in open, where nobody reads
	result := <-r.ended
	_ = os.Remove(filepath.Join(r.dir, "gate"))
	return result != nil && result.ExitCode == 0
}

// Two runs of one process have programs at the same time, and neither ends what
// is the other's.
//
//rlp:holds K42
func TestTwoRunsLeaveEachOtherAlone(t *testing.T) {
	if sandbox.Landlock() < sandbox.LandlockScope {
		t.Log("the programs of the lane native take turns here")
		return
	}
	lanes(t, func(t *testing.T, n *native) {
		stay := reside(t, n, n.cfg.Work)
		other := newNative(t, func(c *Config) { c.noGroup = n.cfg.noGroup })
		mustRun(t, other, shell(t, escapes))
		if alive := living(escaped(t, other.cfg.Work)); len(alive) != 0 {
			t.Errorf("%v live on", alive)
		}
		c := shell(t, escapes+"echo begun; sleep 1000")
		for c.Timeout = 700 * time.Millisecond; ; c.Timeout *= 8 {
			r := mustRun(t, other, c)
			if len(r.Stdout.Data) == 0 && r.TimedOut && c.Timeout < 10*time.Second {
				continue // a slow machine has not begun by then
			}
			if !r.TimedOut {
				t.Errorf("%+v", r)
			}
			break
		}
		if alive := living(escaped(t, other.cfg.Work)); len(alive) != 0 {
			t.Errorf("after its time: %v live on", alive)
		}
		if !stay.leave(t) {
			t.Error("the other run ended it, or what it had started")
		}
		// control: who ends every child that was not there before ends those of others
		before, err := others()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"begun", "child", "orphan"} {
			_ = os.Remove(filepath.Join(n.cfg.Work, name))
		}
		stay = reside(t, n, n.cfg.Work)
		list, err := Children()
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range list {
			if !before[pid] {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if stay.leave(t) {
			t.Error("control: nobody was ended")
		}
	})
}

// Where orphans cannot be told apart programs take turns, whatever their run, and
// who waits heeds the end of his.
func TestWhereOrphansAreAlikeProgramsTakeTurns(t *testing.T) {
	alike := func(c *Config) { c.noScope, c.noGroup = true, true }
	n, other := newNative(t, alike), newNative(t, alike)
	stay := reside(t, n, n.cfg.Work)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := other.Run(ctx, shell(t, "echo >"+n.cfg.Work+"/ran")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside another: %v", err)
	}
	if exists(filepath.Join(n.cfg.Work, "ran")) {
		t.Error("it ran beside another")
	}
	if !stay.leave(t) {
		t.Error("the other run ended it, or what it had started")
	}
	mustRun(t, other, shell(t, escapes))
	if alive := living(escaped(t, other.cfg.Work)); len(alive) != 0 {
		t.Errorf("%v live on", alive)
	}
}

// A program in a sandbox is nobody's orphan, and neither is what builds the sandbox.
func TestRoomsOutliveTheProgramsOfOthers(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		for _, alike := range []bool{false, true} {
			n := newNative(t, func(c *Config) { c.noScope, c.noGroup = alike, alike })
			l := newLane(t, name)
			dir := shared(t)
			if err := unix.Mkfifo(filepath.Join(dir, "gate"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := shell(t, "cd "+dir+"; echo >begun; cat gate; echo lived")
			c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
			ended := make(chan *Result, 1)
			began := func() bool { return exists(filepath.Join(dir, "begun")) }
			// The sandbox begins while a program of another run is there.
			r := mustRunWith(t, n, "until [ -e "+dir+"/begun ]; do sleep 0.01; done; "+escapes, func() {
				go func() {
					result, err := l.Run(context.WithoutCancel(t.Context()), c)
					if err != nil {
						t.Error(err)
					}
					ended <- result
				}()
			})
			if r.ExitCode != 0 || !began() {
				t.Errorf("%+v", r)
			}
			if alive := living(escaped(t, n.cfg.Work)); len(alive) != 0 {
				t.Errorf("%v live on", alive)
			}
			go func() { _ = os.WriteFile(filepath.Join(dir, "gate"), nil, 0o600) }()
			if r := <-ended; r == nil || r.ExitCode != 0 || !strings.Contains(string(r.Stdout.Data), "lived") {
				t.Errorf("alike=%v: the sandbox was ended: %+v", alike, r)
			}
			_ = os.Remove(filepath.Join(dir, "gate"))
		}
	})
}

// mustRunWith runs a script, and calls f when it has begun.
func mustRunWith(t *testing.T, n *native, script string, f func()) *Result {
	t.Helper()
	mustRun(t, n, shell(t, "mkfifo it"))
	go func() {
		_, _ = os.ReadFile(filepath.Join(n.cfg.Work, "it"))
		f()
	}()
	return mustRun(t, n, shell(t, "echo >it; "+script))
}
