package lane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// makeGroup makes a group below our own, or nil where we may not, or where a
// group cannot be ended as one (before Linux 5.14).
func makeGroup(id string, b Bounds) *group {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(mount, &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		parent := filepath.Join(mount, ownGroup(string(own)))
		removeLeft(parent)
		g := makeGroupIn(parent, id, b)
		if g.bounds() {
			return g
		}
		if beside := makeGroupBeside(parent, mount, id, b); beside != nil {
			if g != nil {
				_ = g.close()
			}
			return beside
		}
		if g != nil {
			return g
		}
	}
	return nil
}

// makeGroupBeside makes a group beside our own that bounds, or none: a group in
// which processes are gives no controllers to groups below it, so that below our
// own they are rarely had. A group that is itself bounded is not left in this way.
func makeGroupBeside(own, mount, id string, b Bounds) *group {
	above := filepath.Dir(own)
	if own == mount || !unbounded(own) || unix.Access(filepath.Join(above, "cgroup.procs"), unix.W_OK) != nil {
		return nil
	}
	removeLeft(above)
	g := makeGroupIn(above, id, b)
	if g != nil && !g.bounds() {
		_ = g.close()
		return nil
	}
	return g
}

// unbounded reports whether nobody has bounded a group.
func unbounded(group string) bool {
	for _, name := range []string{"memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max"} {
		text, err := os.ReadFile(filepath.Join(group, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) || err == nil && !strings.HasPrefix(string(text), "max") {
			return false
		}
	}
	return true
}

func ownGroup(text string) string {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path
		}
	}
	return "/"
}

// groupPrefix begins the names of groups; then come the process that made the
// group, and the run.
const groupPrefix = "rlp-"

func groupName(id string) string { return groupPrefix + strconv.Itoa(unix.Getpid()) + "-" + id }

func makeGroupIn(parent, id string, b Bounds) *group {
	g := &group{path: filepath.Join(parent, groupName(id)), dir: -1, events: -1}
	if unix.Mkdir(g.path, 0o700) != nil {
		return nil
	}
	var err error
	if g.dir, err = lockGroup(g.path); err == nil {
		g.events, err = unix.Openat(g.dir, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		err = unix.Faccessat(g.dir, "cgroup.kill", unix.W_OK, 0)
	}
	if err != nil {
		_ = g.close()
		return nil
	}
	g.limit(b)
	return g
}

// lockGroup is a handle of a group that says that its maker lives: by a lock,
// for a number of a process is given again, and means nothing elsewhere.
func lockGroup(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening a control group: %w", err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("locking a control group: %w", err)
	}
	return fd, nil
}

// removeLeft ends and takes away what an rlp left that was killed: groups that
// nobody has locked and whose maker is gone.
func removeLeft(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		pid, err := strconv.Atoi(maker)
		if err != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if lock, err := lockGroup(path); err == nil {
			_ = endGroup(path)
			_ = unix.Close(lock)
		}
	}
}

// endGroup ends all that lives in a group of either version, and takes it away.
func endGroup(path string) error {
	err := removeGroup(path, 0)
	for until := time.Now().Add(killTime); errors.Is(err, unix.EBUSY) && time.Now().Before(until); err = removeGroup(path,
		0) {
		if writeNumber(filepath.Join(path, "cgroup.kill"), 1) != nil {
			killListed(path)
		}
		pause()
	}
	return err
}

// killListed ends who is in a group of the first version.
func killListed(path string) {
	text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 1 && pid != unix.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// limit bounds memory and processes where the group has the controllers.
func (g *group) limit(b Bounds) {
	g.memory = writeNumber(filepath.Join(g.path, "memory.max"), b.Memory) == nil
	if err := writeNumber(filepath.Join(g.path, "memory.swap.max"), 0); err != nil && !errors.Is(err, unix.ENOENT) {
		g.memory = false
	}
	g.pids = writeNumber(filepath.Join(g.path, "pids.max"), b.Pids) == nil
}

// bounds reports whether the group bounds both.
func (g *group) bounds() bool { return g != nil && g.memory && g.pids }

func (g *group) oomKills() int64 {
	if g == nil || !g.memory {
		return 0
	}
	return countIn(filepath.Join(g.path, "memory.events"), "oom_kill")
}

// populated reports whether anything lives in the group.
func (g *group) populated() (bool, error) {
	var buf [256]byte
	n, err := unix.Pread(g.events, buf[:], 0)
	if err != nil {
		return false, fmt.Errorf("looking at a control group: %w", err)
	}
	return !bytes.Contains(buf[:n], []byte("populated 0")), nil
}

// empty ends all that lives in the group and waits until it is gone. It reports
// whether there was anything: a group that was ended once is not used again, for
// kernels (6.18 among them) end at once what is started into one.
func (g *group) empty() (used bool, err error) {
	for until := time.Now().Add(killTime); ; used = true {
		living, err := g.populated()
		if err != nil || !living {
			return used, err
		}
		if time.Now().After(until) {
			return true, ErrStray
		}
		if err := g.kill(); err != nil {
			return true, err
		}
		pause()
	}
}

func (g *group) kill() error {
	fd, err := unix.Openat(g.dir, "cgroup.kill", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("ending a control group: %w", err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("1")); err != nil {
		return fmt.Errorf("ending a control group: %w", err)
	}
	return nil
}

// close ends what is in the group and takes it away, with the groups that a
// program made in it.
func (g *group) close() error {
	var err error
	if g.events >= 0 {
		_, err = g.empty()
		_ = unix.Close(g.events)
	}
	if g.dir >= 0 {
		_ = unix.Close(g.dir)
	}
	g.dir, g.events = -1, -1
	return errors.Join(err, removeGroup(g.path, 0))
}

// maxNested bounds how deep groups within the group are looked for.
const maxNested = 32

func removeGroup(path string, depth int) error {
	err := unix.Rmdir(path)
	if !errors.Is(err, unix.EBUSY) || depth > maxNested {
		return err
	}
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() {
			_ = removeGroup(filepath.Join(path, e.Name()), depth+1)
		}
	}
	return unix.Rmdir(path)
}
