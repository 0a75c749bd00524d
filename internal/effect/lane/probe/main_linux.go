package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/base/strictjson"
)

// targets are what the attempts are made at.
type targets struct {
	Outside, Home, ReadOnly, Writable, Denied string // files, files, folders, a file
	Replaced, Protected, Later, Pipe          string // files of [Bait.tend], and one that was there
	TCP, UDP, Unix, Abstract                  string
	PID, FD, Key                              int
	Command                                   string // of PID
}

// marker is what is in every file that no program shall read.
const marker = "nobody but the operator reads this\n"

// Main is the program inside a lane. Its arguments follow [Name].
func Main(args []string, out io.Writer) int {
	switch {
	case len(args) == 2 && args[0] == "try":
		var t targets
		if err := strictjson.Unmarshal([]byte(args[1]), &t); err != nil {
			fmt.Fprintln(out, err)
			return 2
		}
		t.tryAll(out)
		return 0
	case len(args) == 2 && args[0] == "linger":
		linger(args[1])
	case len(args) == 1 && args[0] == "sleep":
		time.Sleep(time.Minute)
	case len(args) == 1 && args[0] == "flood":
		_, _ = out.Write(make([]byte, 1<<16))
	}
	return 0
}

func (t *targets) tryAll(out io.Writer) {
	t.await()
	tries := map[string]func() error{
		"file_read": t.reads(t.Outside), "home_read": t.reads(t.Home), "denied_read": t.reads(t.Denied),
		"denied_replaced": t.reads(t.Replaced), "protected_replaced": t.changes(t.Protected),
		"denied_later": t.reads(t.Later), "denied_pipe": t.pipe,
		"file_write": t.writes(t.Outside + ".new"), "readonly_write": t.writes(filepath.Join(t.ReadOnly, "new")),
		"link_make": func() error { return t.tried(os.Symlink(t.Outside, t.in("made"))) },
		"link_move": func() error { return t.tried(os.Rename(t.in("link"), t.in("moved"))) }, "granted_move": t.granted,
		"tcp": dials("tcp", t.TCP), "udp": dials("udp", t.UDP), "unix_path": dials("unix", t.Unix),
		"unix_abstract": dials("unix", t.Abstract),
		"netlink":       netlink, "socket_pair": socketPair, "core_limit": coreLimit, "io_uring": ioUring, "bpf": bpf,
		"keyring": keyring, "user_namespace": userNamespace,
		"ptrace": t.ptrace, "signal": func() error { return unix.Kill(t.PID, 0) }, "see_processes": t.see,
		"shared_memory": t.sharedMemory,
		"descriptor":    t.descriptor, "mount": t.mount, "kernel_setting": kernelSetting, "survivor": t.survivor,
	}
	for _, a := range Attempts() {
		said := "through"
		if err := tries[a.Name](); err != nil {
			said = "refused " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Fprintf(out, "%s %s\n", a.Name, said)
	}
}

func (t *targets) reads(path string) func() error {
	return func() error {
		text, err := os.ReadFile(path)
		if err == nil && string(text) != marker {
			return errors.New("it is another file")
		}
		return err
	}
}

func (t *targets) writes(path string) func() error {
	return func() error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(path))
	}
}

func (t *targets) in(name string) string { return filepath.Join(t.Writable, name) }

// tried takes back what was done to links.
func (t *targets) tried(err error) error {
	if err != nil {
		return err
	}
	_ = os.Rename(t.in("moved"), t.in("link"))
	return os.RemoveAll(t.in("made"))
}

// granted moves a folder, and back.
func (t *targets) granted() error {
	if err := os.Rename(t.in("granted"), t.in("made")); err != nil {
		return err
	}
	return os.Rename(t.in("made"), t.in("granted"))
}

// begun and tended are files by which the program and whoever laid the bait tell
// each other how far they are.
const begun, tended = "begun", "tended"

// await says that the program runs, and waits for what comes to be meanwhile.
// Who may not say so has nothing to wait for.
func (t *targets) await() {
	if os.WriteFile(filepath.Join(t.Writable, begun), nil, 0o600) != nil {
		return
	}
	for until := time.Now().Add(tendTime); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(t.Writable, tended)); err == nil {
			return
		}
	}
}

const tendTime = 10 * time.Second

func (t *targets) changes(path string) func() error {
	return func() error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
}

func (t *targets) pipe() error {
	fd, err := unix.Open(t.Pipe, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// socketPair asks for one of a family that has no pairs: the kernel has made both
// sockets when it says so.
func socketPair() error {
	p, err := unix.Socketpair(unix.AF_INET, unix.SOCK_STREAM, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err == nil {
		err = errors.Join(unix.Close(p[0]), unix.Close(p[1]))
	}
	return err
}

func coreLimit() error {
	had := unix.Rlimit{}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &had); err != nil {
		return err
	}
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &had); err != nil {
		return err
	}
	if had.Cur != 0 {
		return fmt.Errorf("it stays %d", had.Cur)
	}
	return nil
}

func dials(network, at string) func() error {
	return func() error {
		c, err := net.DialTimeout(network, at, 5*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("x"))
		return err
	}
}

func netlink() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func ioUring() error {
	var params [120]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func bpf() error {
	attr := struct{ kind, key, value, most uint32 }{2, 4, 4, 1} // an array
	fd, _, errno := unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func keyring() error {
	_, err := unix.AddKey("user", "rlp-probe", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	return err
}

// userNamespace starts a process that does nothing, for it has no task.
func userNamespace() error {
	c := exec.Command("/proc/self/exe", Name)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return c.Run()
}

// seize begins to trace a process without stopping it.
const seize = 0x4206

func (t *targets) ptrace() error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, seize, uintptr(t.PID), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (t *targets) see() error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", t.PID))
	if err == nil && string(text) != t.Command {
		return errors.New("it is another process")
	}
	return err
}

func (t *targets) sharedMemory() error {
	_, err := unix.SysvShmGet(t.Key, 0, 0)
	return err
}

func (t *targets) descriptor() error {
	buf := make([]byte, len(marker))
	n, err := unix.Pread(t.FD, buf, 0)
	if err == nil && !bytes.Equal(buf[:n], []byte(marker)) {
		return errors.New("it is another file")
	}
	return err
}

func (t *targets) mount() error {
	if err := unix.Mount("none", t.Writable, "tmpfs", 0, ""); err != nil {
		return err
	}
	return unix.Unmount(t.Writable, unix.MNT_DETACH)
}

func kernelSetting() error {
	f, err := os.OpenFile("/proc/sys/kernel/core_pattern", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// survivor starts a process that is nobody's child any more, and that holds a
// lock as long as it lives. Whether it outlives the lane is seen from outside.
func (t *targets) survivor() error {
	lock := filepath.Join(t.Writable, "lingering")
	c := exec.Command("/proc/self/exe", Name, "linger", lock)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if Locked(lock) {
			return nil
		}
	}
	return errors.New("it did not begin")
}

// linger holds a lock until it is told to stop, or for a minute.
func linger(path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX) != nil {
		return
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path + ".stop"); err == nil {
			return
		}
	}
}

// Locked reports whether somebody lives who holds the lock of a file.
func Locked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
