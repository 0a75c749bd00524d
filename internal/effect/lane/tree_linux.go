package lane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweep ends what a program left behind: whoever is in the control group, and
// whoever has come to rlp as the next living ancestor. A process leaves its group
// and its session at will, but not the place where it was born.
func (n *native) sweep(before map[int]bool) error {
	var err error
	if n.group != nil {
		var used bool
		if used, err = n.group.empty(); used {
			err = errors.Join(err, n.group.close())
			n.newGroup()
		}
	}
	return errors.Join(err, n.endOrphans(before))
}

func (n *native) newGroup() {
	n.groups++
	n.group = makeGroup(n.cfg.ID+"-"+strconv.Itoa(n.groups), n.cfg.Bounds.OrDefault())
}

// hasChildren reports whether this process has any child at all, ended or not.
func hasChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	return !errors.Is(err, unix.ECHILD)
}

// endOrphans ends every child of this process that end wants to, until there is
// none: who ends leaves us his own children.
func endOrphans(end func(pid int) bool) error {
	for until := time.Now().Add(killTime); hasChildren(); {
		list, err := Children()
		if err != nil {
			return err
		}
		found := false
		for _, pid := range list {
			if end(pid) {
				found = true
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil)
			}
		}
		if !found {
			return nil
		}
		if time.Now().After(until) {
			return ErrStray
		}
		pause()
	}
	return nil
}

// Children are the processes that this one is the parent of, as far as they can be listed.
func Children() ([]int, error) {
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 { // a kernel that does not list them
		return childrenOf(unix.Getpid())
	}
	var list []int
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended, and another has its children
		}
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list, nil
}

func childrenOf(parent int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, fmt.Errorf("listing processes: /proc is not there")
	}
	var list []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state ppid ...; a name may hold anything, ")" too
		_, rest, _ := strings.Cut(string(text[max(0, strings.LastIndexByte(string(text), ')')):]), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			list = append(list, pid)
		}
	}
	return list, nil
}
