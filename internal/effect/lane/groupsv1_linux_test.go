package lane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// enforced reports whether this machine bounds memory, and processes, by a group.
func enforced() (memory, pids bool) {
	m, p := BoundLabels()
	return m.Level == Enforced, p.Level == Enforced
}

// boundedLane is the lane with bounds, at the operator's word.
func boundedLane(t *testing.T, b Bounds, noGroup bool) *native {
	t.Helper()
	n := newNative(t, func(c *Config) { c.noGroup = noGroup })
	n.cfg.Bounds = b
	return n
}

// A program that takes more memory than it gets is ended, and so is one whose
// children together do; rlp goes on. The control gets enough.
//
//rlp:holds K45
func TestMemoryOfAllProcessesIsBounded(t *testing.T) {
	const take = `x=$(head -c 50000000 /dev/zero | tr '\0' x); echo ${#x}`
	const two = "(" + take + ") & (" + take + "); wait"
	free := mustRun(t, newNative(t), shell(t, take))
	if string(free.Stdout.Data) != "50000000\n" || free.OutOfMemory {
		t.Fatalf("control: %+v\n%s%s", free, free.Stdout.Data, free.Stderr.Data)
	}
	byGroup, _ := enforced()
	small := boundedLane(t, Bounds{Memory: 32 << 20}, false)
	for _, script := range []string{take, two} {
		r := mustRun(t, small, shell(t, script))
		if strings.Contains(string(r.Stdout.Data), "50000000") {
			t.Errorf("%s: took more than there is: %s", script, r.Stdout.Data)
		}
		if r.OutOfMemory != byGroup {
			t.Errorf("%s: out of memory is told as %v: %+v", script, r.OutOfMemory, r)
		}
	}
	r := mustRun(t, small, shell(t, `x=0123456789abcdef; i=0; while [ $i -lt 24 ]; do x=$x$x; i=$((i+1)); done`))
	if byGroup && (r.ExitCode != 137 || !r.OutOfMemory || r.TimedOut) {
		t.Errorf("one process: %+v", r)
	}
	if r := mustRun(t, small, shell(t, "echo again")); string(r.Stdout.Data) != "again\n" || r.OutOfMemory {
		t.Errorf("the next program: %+v", r)
	}
}

// Where no group can bound all, each process is bounded, and this is not called enforced.
//
//rlp:holds K45
func TestWithoutGroupsEachProcessIsBounded(t *testing.T) {
	n := boundedLane(t, Bounds{Memory: 32 << 20}, true)
	// the bound comes a moment after the program has begun
	r := mustRun(t, n, shell(t, `until [ "$(ulimit -d)" != unlimited ]; do :; done; x=$(head -c 50000000 /dev/zero | tr '\0' x); echo ${#x}`))
	if strings.Contains(string(r.Stdout.Data), "50000000") || r.OutOfMemory || n.boundsMemory() || n.boundsPids() {
		t.Errorf("%+v %s", r, r.Stdout.Data)
	}
}

//rlp:holds K45
func TestProcessesAreBounded(t *testing.T) {
	const script = `i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done; echo all`
	if r := mustRun(t, newNative(t), shell(t, script)); string(r.Stdout.Data) != "all\n" {
		t.Fatalf("control: %s%s", r.Stdout.Data, r.Stderr.Data)
	}
	_, byGroup := enforced()
	n := boundedLane(t, Bounds{Pids: 20}, false)
	r := mustRun(t, n, shell(t, script))
	if bounded := !strings.Contains(string(r.Stdout.Data), "all"); bounded != byGroup || bounded != n.boundsPids() {
		t.Errorf("bounded: %v\n%s%s", bounded, r.Stdout.Data, r.Stderr.Data)
	}
}

// groupsOf are the groups that a process made, in every hierarchy.
func groupsOf(pid int) (list []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), groupPrefix+strconv.Itoa(pid)+"-") {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// A killed rlp leaves groups. At the next start they are taken away, and what
// lives in them is ended.
func TestWhatAKilledRlpLeftIsTakenAway(t *testing.T) {
	cmd := exec.Command(self(t), "leave-groups", t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var orphan, parent int
	if _, err := fmt.Fscan(bufio.NewReader(out), &orphan, &parent); err != nil {
		t.Fatal(err)
	}
	left := groupsOf(cmd.Process.Pid)
	if _, byGroup := enforced(); byGroup && len(left) == 0 {
		t.Error("control: the process made no groups")
	}
	n := newNative(t)
	mustRun(t, n, shell(t, "true"))
	if got := groupsOf(cmd.Process.Pid); len(got) != len(left) {
		t.Errorf("the groups of a living rlp were taken away: %v of %v", got, left)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_, _ = unix.Wait4(parent, nil, 0, nil) // it died with its rlp, and came to us
	if len(left) > 0 && unix.Kill(orphan, 0) != nil {
		t.Error("control: nothing was left behind")
	}
	BoundLabels() // makes groups, as each start does
	if got := groupsOf(cmd.Process.Pid); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if len(left) == 0 {
		_ = unix.Kill(orphan, unix.SIGKILL)
	}
	if _, err := unix.Wait4(orphan, nil, 0, nil); err != nil { // it ends, or this does not
		t.Errorf("waiting for what was left: %v", err)
	}
	if got := groupsOf(os.Getpid()); len(got) != 0 {
		t.Errorf("our own are left: %v", got)
	}
}

// leaveGroups is an rlp that is killed while something runs that has left its session.
func leaveGroups(dir string) error {
	l, err := Native(Config{Work: filepath.Join(dir, "agent", "run"), ID: "left"})
	if err != nil {
		return err
	}
	fd := filepath.Join(dir, "pid")
	go func() {
		for {
			if text, err := os.ReadFile(fd); err == nil && strings.HasSuffix(string(text), "\n") {
				fmt.Print(string(text))
				return
			}
			pause()
		}
	}()
	sh, err := Resolve("/bin/sh")
	if err != nil {
		return err
	}
	_, err = l.Run(context.Background(), &Command{
		Program: sh.File, Argv: []string{"sh", "-c", "setsid sh -c 'echo $$ $PPID >" + fd + "; exec sleep 1000' & wait"},
		Env: []string{"PATH=/usr/bin:/bin"}, Timeout: time.Hour, MaxOutput: 1,
	})
	return err
}

// Hierarchies are found by what the kernel says, wherever they are mounted.
func TestOldGroups(t *testing.T) {
	const mounts = `22 1 0:5 / /proc rw - proc proc rw
30 22 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
31 22 0:27 /docker/ab /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory
32 22 0:28 / /cg/cpu,pids rw - cgroup none rw,cpu,pids
`
	const own = "4:memory:/docker/ab/c d\n3:cpu,pids:/x\n0::/y\n"
	for controller, want := range map[string]string{
		"memory": "/sys/fs/cgroup/memory/c d", "pids": "/cg/cpu,pids/x",
		"blkio": "",
	} {
		if got := oldGroup(mounts, own, controller); got != want {
			t.Errorf("%s: %q, want %q", controller, got, want)
		}
	}
	if got := oldGroup(mounts, "4:memory:/elsewhere\n", "memory"); got != "" {
		t.Errorf("a group that is not to be seen: %q", got)
	}
}

// leave is how a program gets out of its groups, where it can.
const leave = `for f in $(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs 2>/dev/null); do echo $$ >$f; done 2>/dev/null; cat /proc/self/cgroup; `

// A program in a sandbox cannot leave what bounds it. One that runs as the
// operator can, where he may make groups: its lane does not promise more.
//
//rlp:holds K45
func TestRoomsBoundMemoryAndProcesses(t *testing.T) {
	byMemory, byPids := enforced()
	n := newNative(t)
	r := mustRun(t, n, shell(t, leave))
	left := !strings.Contains(string(r.Stdout.Data), groupPrefix)
	c := n.Controls()
	if byMemory && os.Getuid() == 0 && !left || c[Memory].Level == Enforced || c[Pids].Level == Enforced ||
		c[Memory].Why == "" {
		t.Errorf("native: %+v %+v, left: %v\n%s", c[Memory], c[Pids], left, r.Stdout.Data)
	}
	eachSandbox(t, func(t *testing.T, name string) {
		if !byMemory || !byPids {
			var u *UnsupportedError
			if _, err := Open(t.Context(), name, Config{
				Self:   []string{self(t), "rlp", sandbox.ConfineName},
				Bounds: Bounds{Memory: 1 << 30},
			}); !errors.As(err, &u) {
				t.Errorf("a bound that is asked for and not kept: %v", err)
			}
			return
		}
		l := newLane(t, name, func(c *Config) { c.Bounds = Bounds{Memory: 48 << 20, Pids: 30} })
		r := run(t, l, shell(t, leave+
			`x=$(head -c 100000000 /dev/zero | tr '\0' x); echo ${#x}; i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; echo all`))
		if out := string(r.Stdout.Data); strings.Contains(out, "100000000") || strings.Contains(out, "all") ||
			!r.OutOfMemory {
			t.Errorf("%+v %s%s", r, out, r.Stderr.Data)
		}
		if r := run(t, l, shell(t, "echo again")); string(r.Stdout.Data) != "again\n" || r.OutOfMemory {
			t.Errorf("the next program: %+v", r)
		}
	})
}

// A bound that was asked for is not lost between the try and the start.
//
//rlp:holds K45 K52
func TestABoundThatIsGoneStartsNothing(t *testing.T) {
	if m, p := enforced(); !m || !p {
		return // such a lane is not opened: TestRoomsBoundMemoryAndProcesses
	}
	l := newLane(t, "ns", func(c *Config) { c.Bounds = Bounds{Memory: 64 << 20} })
	if r := run(t, l, shell(t, "echo in")); string(r.Stdout.Data) != "in\n" {
		t.Fatalf("control: %+v", r)
	}
	n := l.(*ns).native
	kept := *n.groupsV1
	if n.groupsV1.memory = ""; n.group != nil {
		n.group.memory = false
	}
	var u *UnsupportedError
	if r, err := l.Run(t.Context(), shell(t, "echo out")); !errors.As(err, &u) {
		t.Errorf("%+v, %v", r, err)
	}
	*n.groupsV1 = kept
}

// A group beside our own is made only where ours is not bounded itself.
func TestBoundedGroupsAreNotLeft(t *testing.T) {
	dir := t.TempDir()
	if !unbounded(dir) {
		t.Error("no controllers")
	}
	for name, text := range map[string]string{"memory.max": "max\n", "pids.max": "max\n", "cpu.max": "max 100000\n"} {
		put(t, filepath.Join(dir, name), text)
	}
	if !unbounded(dir) {
		t.Error("controllers without bounds")
	}
	put(t, filepath.Join(dir, "pids.max"), "5\n")
	if unbounded(dir) || makeGroupBeside(dir, filepath.Dir(dir), "x", Bounds{}) != nil {
		t.Error("a bound is left behind")
	}
}

// A bound so low that rlp could not start a program is refused before the run.
//
//rlp:holds K52
func TestTooFewProcessesAreRefused(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		cfg := Config{Self: []string{self(t), "rlp", sandbox.ConfineName}, Bounds: Bounds{Pids: ownThreads - 1}}
		var u *UnsupportedError
		if l, err := Open(t.Context(), name, cfg); !errors.As(err, &u) || !strings.Contains(u.Text(), "pids = 16 or more") {
			t.Errorf("%v, %v", l, err)
		}
		if _, pids := enforced(); !pids {
			return
		}
		l := newLane(t, name, func(c *Config) { c.Bounds.Pids = ownThreads })
		if r := run(t, l, shell(t, "echo begun")); string(r.Stdout.Data) != "begun\n" {
			t.Errorf("%+v", r)
		}
	})
}
