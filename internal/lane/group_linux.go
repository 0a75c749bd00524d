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

// A group is a control group of its own for the programs of a run: what is
// started in it stays in it, whatever sessions it makes, and ends with it.
type group struct {
	path   string
	dir    int // a handle of it
	events int // cgroup.events
}

// unified are the usual places of the second version's hierarchy.
func unified() []string { return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} }

// makeGroup makes a group below our own, or nil where we may not, or where a
// group cannot be ended as one (before Linux 5.14).
func makeGroup(id string) *group {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for _, mount := range unified() {
		var fs unix.Statfs_t
		if unix.Statfs(mount, &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		parent := filepath.Join(mount, ownGroup(string(own)))
		if g := makeGroupIn(parent, id); g != nil {
			removeLeft(parent)
			return g
		}
	}
	return nil
}

// ownGroup is the path of the second version's group in /proc/self/cgroup.
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

func makeGroupIn(parent, id string) *group {
	name := groupPrefix + strconv.Itoa(unix.Getpid()) + "-" + id
	g := &group{path: filepath.Join(parent, name), dir: -1, events: -1}
	if unix.Mkdir(g.path, 0o700) != nil {
		return nil
	}
	var err error
	if g.dir, err = unix.Open(g.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		g.events, err = unix.Openat(g.dir, "cgroup.events", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		err = unix.Faccessat(g.dir, "cgroup.kill", unix.W_OK, 0)
	}
	if err != nil {
		_ = g.close()
		return nil
	}
	limitGroup(g.path)
	return g
}

// removeLeft takes away what an rlp left that was killed: groups whose maker is
// gone and in which nothing lives (the system refuses any other).
func removeLeft(parent string) {
	left, err := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		if pid, err := strconv.Atoi(maker); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = unix.Rmdir(path)
		}
	}
}

// limitGroup bounds memory and processes where the group has the controllers.
func limitGroup(dir string) {
	for name, value := range map[string]int{"memory.max": MaxData, "memory.swap.max": 0, "pids.max": MaxProcesses} {
		if fd, err := unix.Open(filepath.Join(dir, name), unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
			_, _ = unix.Write(fd, strconv.AppendInt(nil, int64(value), 10))
			_ = unix.Close(fd)
		}
	}
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
