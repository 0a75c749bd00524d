package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// cloned is a mount of what is open, with all that is mounted below it.
func cloned(fd int, attr unix.MountAttr) (int, error) {
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("open_tree: %w", err)
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return -1, errors.Join(fmt.Errorf("mount_setattr: %w", err), unix.Close(tree))
	}
	return tree, nil
}

// inMemory is a file system in memory, of this many bytes, that is mounted nowhere.
func inMemory(size, mode string) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(fs)
	for _, option := range [][2]string{{"size", size}, {"nr_inodes", mostFiles}, {"mode", mode}} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("fsconfig %s: %w", option[0], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("making a file system in memory: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, still)
	if err != nil {
		return -1, fmt.Errorf("mounting a file system in memory: %w", err)
	}
	return fd, nil
}

// mostFiles is how many files a file system in memory holds: each takes memory
// that no size bounds.
const mostFiles = "65536"
