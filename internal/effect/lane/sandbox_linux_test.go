package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// shared is a folder that a program may write and the test looks into. It is not
// in /tmp, where each program has its own.
func shared(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "lane-sandbox")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// locked reports whether somebody holds the lock of a file.
func locked(t testing.TB, path string) bool {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// leaving starts processes that outlive a shell, and that hold a lock as long as
// they live: in its group, out of it, and in nobody's sight.
const leaving = `
flock l1 sleep 1000 &
setsid sh -c 'trap "" HUP TERM INT; exec flock l2 sleep 1000' &
nohup setsid sh -c '(setsid flock l3 sleep 1000 &) ; exit' >/dev/null 2>&1 &
for l in l1 l2 l3; do until [ -e $l ] && ! flock -n $l true; do sleep 0.01; done; done
echo begun
`

//rlp:holds K42 K74
func TestNothingOutlivesARoom(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		for end, want := range map[string]int{"exit 0": 0, "sleep 1000": 137} {
			dir := shared(t)
			l := newLane(t, name)
			c := shell(t, "cd "+dir+leaving+end)
			c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
			if want != 0 {
				c.Timeout = 2 * time.Second
			}
			began := time.Now()
			r := run(t, l, c)
			if r.TimedOut && len(r.Stdout.Data) == 0 { // a slow machine has not begun by then
				c.Timeout, began = 20*time.Second, time.Now()
				r = run(t, l, c)
			}
			if r.ExitCode != want || r.TimedOut != (want != 0) || string(r.Stdout.Data) != "begun\n" ||
				time.Since(began) > 30*time.Second {
				t.Errorf("%s: %+v after %v\n%s%s", end, r, time.Since(began), r.Stdout.Data, r.Stderr.Data)
			}
			for _, lock := range []string{"l1", "l2", "l3"} {
				if locked(t, filepath.Join(dir, lock)) {
					t.Errorf("%s: %s lives", end, lock)
				}
			}
		}
		// control: they live where nothing is done about it, here for a moment
		dir := shared(t)
		c := exec.Command("/bin/sh", "-c", "cd "+dir+strings.ReplaceAll(leaving, "1000", "20"))
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Run(); err != nil {
			t.Fatalf("control: %v", err)
		}
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		if !locked(t, filepath.Join(dir, "l3")) {
			t.Error("control: it was ended by the end of its group")
		}
		endAll(t)
	})
}

// endAll ends every child of this process: orphans come to it.
func endAll(t *testing.T) {
	t.Helper()
	for {
		list, err := Children()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return
		}
		for _, pid := range list {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil)
		}
		pause()
	}
}

// counts are what a lane could leave of itself.
func counts(t *testing.T) string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("rlp-%d-*", os.Getpid())
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + own)
	more, _ := filepath.Glob("/sys/fs/cgroup/" + own)
	list, err := Children()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d descriptors, groups %v %v, children %v", len(fds), groups, more, list)
}

// mountPoints are where something is mounted, as often as it is. Container
// engines that other processes run at the same time come and go: theirs are not
// among them.
func mountPoints(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	points := map[string]int{}
	for line := range strings.Lines(string(text)) {
		point := strings.Fields(line)[4]
		if !strings.Contains(point, "/overlay") && !strings.Contains(point, "/netns") &&
			!strings.Contains(point, "-containers/") {
			points[point]++
		}
	}
	return points
}

//rlp:holds K73
func TestARoomLeavesNothing(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		once := func() {
			dir := filepath.Join(shared(t), "a", "run")
			l, err := Open(t.Context(), name, Config{Work: dir, ID: "left-" + name, Self: []string{
				self(t), "rlp",
				sandbox.ConfineName,
			}})
			if err != nil {
				t.Fatal(err)
			}
			c := shell(t, "sleep 1000 & echo x >/tmp/x; head -c 100000 /dev/zero")
			run(t, l, c)
			ctx, cancel := context.WithCancel(t.Context())
			context.AfterFunc(ctx, func() {})
			cancel()
			if _, err := l.Run(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the working folder: %v", err)
			}
		}
		once() // what is opened once for the process is open now
		before, mounted := counts(t), mountPoints(t)
		for range 3 {
			once()
		}
		runtime.GC()
		for point, n := range mountPoints(t) {
			if n > mounted[point] {
				t.Errorf("left mounted: %s", point)
			}
		}
		if after := counts(t); after != before {
			t.Errorf("before: %s\nafter:  %s", before, after)
		}
	})
}

// Whatever a program sends to the first process of its sandbox, it goes on, once that
// has nothing open any more. (Before, the program may end both.)
func TestTheFirstProcessOfARoomIsDeaf(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		r := run(t, newLane(t, name), shell(t,
			`while ls /proc/1/fd | grep -q "^0$"; do :; done; for s in HUP INT QUIT ILL ABRT FPE KILL SEGV TERM STOP USR1; do kill -$s 1; done; echo on; kill -TERM $$; echo no`))
		if r.ExitCode != 143 || string(r.Stdout.Data) != "on\n" {
			t.Errorf("%+v\n%s%s", r, r.Stdout.Data, r.Stderr.Data)
		}
	})
}

//rlp:holds K23 K42
func TestTheEndOfARunEndsTheRoom(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		dir := shared(t)
		l := newLane(t, name)
		c := shell(t, "cd "+dir+leaving+"echo >all; sleep 1000")
		c.Folders = []Folder{{Path: dir, Access: ReadWrite}}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for {
				if _, err := os.Stat(filepath.Join(dir, "all")); err == nil {
					cancel()
					return
				}
				pause()
			}
		}()
		if r, err := l.Run(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", r, err)
		}
		for _, lock := range []string{"l1", "l2", "l3"} {
			if p := filepath.Join(dir, lock); locked(t, p) {
				t.Errorf("%s lives", lock)
			}
		}
	})
}

// Scripts are read by descriptor; a program outside of the system's folders is
// shown by itself, and what is not shown is not there for it.
func TestProgramsOfTheOperatorsOwn(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		dir := shared(t)
		write := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			return path
		}
		script, away := write("script", "#!/bin/sh -e\nls "+dir+"; echo $1"), write("away", "#!"+dir+"/nowhere\n")
		l := newLane(t, name)
		command := func(path string) *Command {
			return &Command{Program: path, Argv: []string{path, "one"}, Timeout: time.Minute, MaxOutput: 1 << 10}
		}
		if r := run(t, l, command(script)); string(r.Stdout.Data) != "script\none\n" {
			t.Errorf("%+v\n%s%s", r, r.Stdout.Data, r.Stderr.Data)
		}
		if r, err := l.Run(t.Context(), command(away)); !errors.Is(err, ErrNotProgram) {
			t.Errorf("an interpreter that is not there: %+v, %v", r, err)
		}
		if r, err := l.Run(t.Context(), command(write("text", "no program"))); !errors.Is(err, ErrNotProgram) {
			t.Errorf("no format: %+v, %v", r, err)
		}
		c := command(script)
		c.Argv = append(c.Argv, strings.Repeat("x", 3<<20))
		if r, err := l.Run(t.Context(), c); !errors.Is(err, ErrTooBig) {
			t.Errorf("too big: %+v, %v", r, err)
		}
	})
}

// What a lane cannot keep is known before a run begins, and said.
//
//rlp:holds K5 K52 K67 K72
func TestWhatCannotBeKeptIsRefused(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		dir := shared(t)
		cfg := Config{Work: filepath.Join(dir, "w", "run"), ID: "kept", Self: []string{self(t), "rlp", sandbox.ConfineName}}
		// nothing can be laid over a root
		cfg.Folders = []Folder{{Path: "/", Access: ReadWrite}, {Path: dir + "/later", Access: Hidden}}
		var e *UnsupportedError
		if l, err := Open(t.Context(), name, cfg); !errors.As(err, &e) || l != nil || !strings.Contains(e.Error(),
			dir+"/later") {
			t.Errorf("%v, %v", l, err)
		}
		c := shell(t, "true")
		c.Folders = cfg.Folders
		cfg.Folders = []Folder{{Path: dir, Access: ReadWrite}, {Path: dir + "/later", Access: Hidden}}
		l, err := Open(t.Context(), name, cfg) // control
		if err != nil {
			t.Fatal(err)
		}
		if r, err := l.Run(t.Context(), c); !errors.As(err, &e) {
			t.Errorf("it was granted meanwhile: %+v, %v", r, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		cfg.Self = []string{"/nowhere/rlp", "rlp", sandbox.ConfineName}
		if l, err := Open(t.Context(), name, cfg); err == nil {
			t.Errorf("no program that confines: %v", l)
		}
		cfg.Self, cfg.Folders = []string{file(t, "/bin/true"), "true"}, nil
		if l, err := Open(t.Context(), name, cfg); !errors.As(err, &e) || !strings.Contains(e.Error(),
			"did not come to start") {
			t.Errorf("a program that confines nothing: %v, %v", l, err)
		}
	})
}

// Who is not root has the same lanes.
func TestRoomsOfAnyUser(t *testing.T) {
	if os.Geteuid() != 0 { // every other test is of this
		eachSandbox(t, func(t *testing.T, name string) { run(t, newLane(t, name), shell(t, "true")) })
		return
	}
	dir := shared(t)
	own := filepath.Join(dir, "program")
	text, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(own, text, 0o600), os.Chmod(own, 0o755), os.Chmod(dir, 0o755),
		os.Mkdir(dir+"/w", 0o700), os.Chown(dir+"/w", 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/w/.env", "secret\n")
	if err := os.Chmod(dir+"/w/.env", 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t) })
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	c := exec.Command("/bin/sh", "-c", many)
	c.SysProcAttr = nobody
	if out, err := c.Output(); err != nil || string(out) != "unbounded\n" {
		t.Errorf("control: %v, %s", err, out)
	}
	eachSandbox(t, func(t *testing.T, name string) {
		c := exec.Command(own, "reach-sandbox", name+":"+dir+"/w")
		c.SysProcAttr = nobody
		c.Dir = "/"
		if out, err := c.CombinedOutput(); err != nil || !strings.HasPrefix(string(out),
			"65532\n0000000000000000\nwritten\n") || strings.Contains(string(out), "unbounded") ||
			!strings.Contains(string(out), "kept: Read-only file system") || strings.Contains(string(out), "secret") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// many are more processes than a program gets.
const many = `i=0; while [ $i -lt 400 ]; do sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; echo unbounded`

// inRoom is what such a user's program says.
func inRoom(at string) string {
	name, dir, _ := strings.Cut(at, ":")
	l, err := Open(context.Background(), name, Config{
		Work: dir + "/" + name + "/run", ID: "any",
		Self: []string{"/proc/self/exe", "rlp", sandbox.ConfineName},
	})
	if err != nil {
		return err.Error()
	}
	sh, err := Resolve("/bin/sh")
	if err != nil {
		return err.Error()
	}
	r, err := l.Run(context.Background(), &Command{
		Program: sh.File, Timeout: time.Minute, MaxOutput: 1 << 10,
		Argv: []string{"sh", "-c", "id -u; sed -n 's/CapBnd:.//p' /proc/self/status; echo written >" + dir +
			"/file; cat " + dir + "/file; cat /etc/shadow; echo >" + dir + "/kept; cat " + dir + "/.env; " + many},
		Folders: []Folder{
			{Path: dir, Access: ReadWrite},
			{Path: dir + "/kept", Access: ReadOnly},
			{Path: dir + "/.env", Access: Hidden},
		},
	})
	if err != nil {
		return err.Error()
	}
	return string(r.Stdout.Data) + string(r.Stderr.Data)
}
