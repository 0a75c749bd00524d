package lane

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deep is a program that works in folders whose path is longer than the kernel takes,
// and says what came of each call. It is given how long the name of each is, and
// where they are.
func deep(at string) string {
	length, dir, _ := strings.Cut(at, ":")
	each, err := strconv.Atoi(length)
	if err != nil || each < 1 {
		return "the length of a name, and a folder: " + at
	}
	if err := os.Chdir(dir); err != nil {
		return err.Error()
	}
	levels, name := unix.PathMax/(each+1)+10, strings.Repeat("d", each)
	var said strings.Builder
	say := func(what string, err error) { fmt.Fprintf(&said, "%s: %v\n", what, err) }
	made := 0
	for ; made < levels; made++ {
		if err := unix.Mkdir(name, 0o700); err != nil {
			say("mkdir at "+strconv.Itoa(made), err)
			break
		}
		if err := unix.Chdir(name); err != nil {
			say("chdir", err)
			break
		}
	}
	open := func(p string, flags int) error {
		fd, err := unix.Open(p, flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
	say("create", open("f", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY))
	say("write", open("f", unix.O_WRONLY|unix.O_TRUNC))
	say("read", open("f", unix.O_RDONLY))
	say("rename", unix.Rename("f", "g"))
	say("link", unix.Link("g", "h"))
	say("mkdir", unix.Mkdir("e", 0o700))
	say("move", unix.Rename("g", "e/g"))
	say("move a folder", unix.Rename("e", "e2"))
	say("chmod", unix.Chmod("e2/g", 0o644))
	say("truncate", unix.Truncate("h", 3))
	for _, p := range []string{"e2/g", "h"} {
		say("unlink", unix.Unlink(p))
	}
	say("rmdir", unix.Rmdir("e2"))
	for range made {
		if err := unix.Chdir(".."); err != nil {
			say("up", err)
			break
		}
		if err := unix.Rmdir(name); err != nil {
			say("rmdir on the way up", err)
			break
		}
	}
	long := "./" + strings.Repeat("x/", unix.PathMax/2)
	say("too long", unix.Mkdir(long, 0o700))
	say("too long", open(long, unix.O_CREAT|unix.O_WRONLY))
	say("too long", unix.Rmdir(long))
	say("too long", unix.Symlink(long, "t"))
	return said.String()
}

// What lies deeper than a path can say is the program's as all else is.
func TestProgramsWorkDeeperThanAPathIsLong(t *testing.T) {
	long := "20:"        // 205 folders
	if testing.Short() { // the broker asks for each of them, twenty times slower under the race detector
		long = "250:"
	}
	free, err := exec.Command(self(t), "reach-deep", long+shared(t)).Output()
	if err != nil || strings.Count(string(free), "<nil>") != 13 || strings.Count(string(free), "too long") != 8 {
		t.Fatalf("control: without a lane: %v\n%s", err, free)
	}
	eachSandbox(t, func(t *testing.T, name string) {
		for what, more := range map[string][]Folder{
			"free": nil, "guarded": {{Path: "config", Access: ReadOnly}}, "denied": {{Path: ".env", Access: Hidden}},
		} {
			dir := shared(t)
			c := &Command{
				Program: self(t), Argv: []string{"lane.test", "reach-deep", long + dir}, Timeout: time.Minute, MaxOutput: 1 << 16,
				Folders: []Folder{{Path: dir, Access: ReadWrite}},
			}
			for _, f := range more {
				put(t, dir+"/"+f.Path, "kept\n")
				c.Folders = append(c.Folders, Folder{Path: dir + "/" + f.Path, Access: f.Access})
			}
			if r := run(t, newLane(t, name), c); string(r.Stdout.Data) != string(free) {
				t.Errorf("%s: %+v\n%s%s", what, r, r.Stdout.Data, r.Stderr.Data)
			}
		}
	})
}

// signalled is a program whose thread gets signals all the time, which its handler
// does not have calls made again for. It says where a call was made that says it was
// interrupted, or was not made that says it was, and then how many were interrupted.
func signalled(dir string) string {
	if err := os.Chdir(dir); err != nil {
		return err.Error()
	}
	runtime.LockOSThread()
	signal.Notify(make(chan os.Signal, 1), unix.SIGUSR1)
	if err := interrupting(unix.SIGUSR1); err != nil {
		return err.Error()
	}
	pid, tid := unix.Getpid(), unix.Gettid()
	stop := make(chan struct{})
	var sends sync.WaitGroup
	sends.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Tgkill(pid, tid, unix.SIGUSR1)
				runtime.Gosched()
			}
		}
	})
	is := func(p string) bool {
		var st unix.Stat_t
		return unix.Lstat(p, &st) == nil
	}
	var wrong []string
	interrupted := 0
	for n := 0; n < 60 || interrupted == 0 && n < 10_000; n++ { // who sends may get no turn on a busy machine
		for _, c := range []struct {
			name string
			do   func() error
			done func() bool
		}{
			{"mkdir", func() error { return unix.Mkdir("d", 0o700) }, func() bool { return is("d") }},
			{"rename", func() error { return unix.Rename("d", "e") }, func() bool { return is("e") && !is("d") }},
			{"rmdir", func() error { return unix.Rmdir("e") }, func() bool { return !is("e") }},
			{"symlink", func() error { return unix.Symlink("x", "l") }, func() bool { return is("l") }},
			{"unlink", func() error { return unix.Unlink("l") }, func() bool { return !is("l") }},
		} {
			for {
				err := c.do()
				if done := c.done(); err != nil && (err != unix.EINTR || done) || err == nil && !done {
					wrong = append(wrong, fmt.Sprintf("%s: %v, and it was done: %v", c.name, err, done))
				}
				if err != unix.EINTR {
					break
				}
				interrupted++
			}
		}
	}
	close(stop)
	sends.Wait()
	return fmt.Sprintf("%s\n%d interrupted", strings.Join(wrong, "\n"), interrupted)
}

// interrupting takes from the handler of a signal that calls are made again.
func interrupting(sig unix.Signal) error {
	const restart = 0x10000000
	var act [4]uint64 // the handler, flags, the way back, the mask
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&act)), 8, 0, 0)
	if errno == 0 {
		act[1] &^= restart
		_, _, errno = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// A call that a signal interrupts was not made, and one that was made is answered so:
// the broker's answer reaches who asked, whatever signals come meanwhile.
func TestCallsThatSignalsInterruptAreMadeOnceOrNotAtAll(t *testing.T) {
	eachSandbox(t, func(t *testing.T, name string) {
		for _, more := range [][]Folder{nil, {{Path: "config", Access: ReadOnly}}} {
			dir := shared(t)
			c := &Command{
				Program: self(t), Argv: []string{"lane.test", "reach-signalled", dir}, Timeout: time.Minute,
				MaxOutput: 1 << 16, Folders: []Folder{{Path: dir, Access: ReadWrite}},
			}
			for _, f := range more {
				put(t, dir+"/"+f.Path, "kept\n")
				c.Folders = append(c.Folders, Folder{Path: dir + "/" + f.Path, Access: f.Access})
			}
			r := run(t, newLane(t, name), c)
			wrong, count, _ := strings.Cut(string(r.Stdout.Data), "\n")
			if wrong != "" || strings.HasPrefix(count, "0 ") || !strings.HasSuffix(count, " interrupted\n") {
				t.Errorf("%v: %+v\n%s%s", more, r, r.Stdout.Data, r.Stderr.Data)
			}
			t.Logf("%s, %v: %s", name, more, count)
		}
	})
}
