package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"runloop.dev/rlp/internal/base/home"
)

// home looks whether there is one yet, and who owns it.
func (c *checkup) home() (there, ours bool) {
	info, err := os.Lstat(c.Home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.found("home", "", "")
		return false, false
	case err != nil:
		c.found("home", err.Error(), "make "+c.Home+" reachable, or name another home with RUNLOOP_HOME")
		return false, false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != c.UID && st.Uid != 0 {
		c.found("home", fmt.Sprintf("%s belongs to user %d, and you are user %d", c.Home, st.Uid, c.UID),
			fmt.Sprintf("sudo chown -R %d %s, or export RUNLOOP_HOME=DIR for a home of your own", c.UID, shell(c.Home)))
		return true, false
	}
	c.found("home", "", "")
	return true, true
}

// permissions looks for folders and files that somebody else could change.
func (c *checkup) permissions() {
	const check = "permissions"
	h := home.At(c.Home, c.Tenant)
	guarded := h.Guarded()
	slices.Sort(guarded)
	for _, path := range slices.Compact(guarded) {
		info, err := os.Lstat(path)
		if err != nil {
			continue // a launch makes it, or needs none
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		switch mode := info.Mode(); {
		case ok && int(st.Uid) != c.UID && st.Uid != 0:
			c.found(check, fmt.Sprintf("%s belongs to user %d, and you are user %d", path, st.Uid, c.UID),
				fmt.Sprintf("sudo chown -R %d %s", c.UID, shell(path)))
		case mode&fs.ModeSymlink != 0:
			c.found(check, path+" is a symbolic link", "replace it by what it leads to")
		default:
			if who, mend := h.Writers(path, info); who != "" {
				c.found(check, fmt.Sprintf("%s can be written by %s (mode %04o)", path, who, mode.Perm()),
					"chmod "+mend+" "+shell(path))
			}
		}
	}
	c.fine(check)
}

// leastFree is how much room a launch, its record and a compiled module need.
const leastFree = 256 << 20

// freeBytes are those that this user may write in the file system of dir.
func freeBytes(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil //nolint:unconvert // they differ by system
}

// disk looks for room where the home is, or will be.
func (c *checkup) disk() {
	const check = "disk"
	dir := c.Home
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := c.Free(dir)
	switch {
	case err != nil:
		c.found(check, fmt.Sprintf("the free space of %s cannot be told: %v", dir, err), "df "+shell(dir))
	case free < leastFree:
		c.found(check, fmt.Sprintf("%s has %d MiB left, and launches need %d", dir, free>>20, leastFree>>20),
			"rlp audit prune --keep 30d, or free some space: du -sh "+shell(c.Home)+"/*")
	default:
		c.found(check, "", "")
	}
}

// skew is how far ahead a file's time may be: file systems round.
const skew = 2 * time.Minute

// clock looks for times of the home that have not come yet: the clock was ahead
// when they were written, or is behind now. Ages, leases and tokens follow it.
func (c *checkup) clock() {
	const check = "clock"
	h := home.At(c.Home, c.Tenant)
	for _, dir := range []string{c.Home, h.Log(), h.Journal(), filepath.Join(h.Root(), "kb")} {
		entries, _ := os.ReadDir(dir) // none is nothing
		for _, e := range entries {
			info, err := e.Info()
			if err == nil && info.ModTime().Sub(c.Now) > skew {
				c.found(check, fmt.Sprintf("%s was written at %s, which is in the future", filepath.Join(dir, e.Name()),
					info.ModTime().UTC().Format(time.RFC3339)), "set the clock of this machine: timedatectl set-ntp true")
				return
			}
		}
	}
	c.found(check, "", "")
}

// locks looks for sockets that nobody answers, and for who holds a lock and does
// not go on.
func (c *checkup) locks() {
	const check = "locks"
	dir := filepath.Join(c.Home, "run")
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(path, ".lock") {
			if pid := holder(path); pid != 0 && stopped(pid) {
				c.found(check, fmt.Sprintf("process %d holds %s and is stopped", pid, path), fmt.Sprintf("kill -CONT %d", pid))
			}
			continue
		}
		if e.Type()&fs.ModeSocket == 0 {
			continue
		}
		conn, err := net.DialTimeout("unix", path, time.Second)
		switch {
		case err == nil:
			_ = conn.Close()
		case errors.Is(err, syscall.ECONNREFUSED):
			c.found(check, path+" is the socket of a process that is gone", "rm "+shell(path))
		}
	}
	c.fine(check)
}

// holder is the process that holds a lock of a file; 0: none, or it cannot be told.
func holder(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	table, err := os.ReadFile("/proc/locks")
	if err != nil || !ok {
		return 0
	}
	inode := fmt.Sprintf(":%d", st.Ino)
	for _, line := range strings.Split(string(table), "\n") {
		f := strings.Fields(line) // 1: FLOCK ADVISORY WRITE 4711 fd:00:1234 0 EOF
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		pid := 0
		if _, err := fmt.Sscan(f[4], &pid); err == nil {
			return pid
		}
	}
	return 0
}

// stopped reports whether a process is stopped, by a signal or a debugger.
func stopped(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "t")
}

// shell is a path as a shell reads it.
func shell(path string) string {
	if strings.ContainsAny(path, " \t\n'\"$`\\*?[]{}()<>|&;#~!") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
