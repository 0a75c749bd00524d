package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeLoaders covers the dynamic loader of each of these files, unless it is one of
// them, by a copy that the kernel loads for programs and that nobody executes: to
// execute a loader is to execute whatever file it is given. It returns their paths.
func closeLoaders(files []string) (loaders []string, err error) {
	var open []int
	defer func() {
		for _, fd := range open {
			_ = unix.Close(fd)
		}
	}()
	for _, file := range files {
		name := loaderOf(file)
		if name == "" {
			continue
		}
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			continue // nor does the kernel start such a program
		}
		is, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil || slices.Contains(loaders, is) || slices.Contains(files, is) {
			_ = unix.Close(fd)
			continue
		}
		open, loaders = append(open, fd), append(loaders, is)
	}
	if len(open) == 0 {
		return nil, nil
	}
	if err := cover(open, loaders); err != nil {
		return nil, fmt.Errorf("closing the dynamic loader: %w", err)
	}
	return loaders, nil
}

// cover puts copies over files. A mount is cloned where it is in this namespace
// alone, so that the copies lie in a folder of devices meanwhile.
func cover(files []int, paths []string) error {
	const dir = "/dev"
	mem, err := inMemory(loaderBytes, "755")
	if err != nil {
		return err
	}
	defer unix.Close(mem)
	if err := unix.MoveMount(mem, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("placing copies: %w", err)
	}
	for i, fd := range files {
		if err = coverOne(mem, fd, strconv.Itoa(i), paths[i]); err != nil {
			err = fmt.Errorf("%s: %w", paths[i], err)
			break
		}
	}
	return errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH))
}

// loaderBytes is more than loaders take: one that is a whole library of C has less
// than a megabyte.
const loaderBytes = "33554432"

func coverOne(dir, loader int, name, at string) error {
	var st unix.Stat_t
	if err := unix.Fstat(loader, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxLoader {
		return errNoLoader
	}
	data := make([]byte, st.Size, st.Size+8)
	if n, err := unix.Pread(loader, data, 0); err != nil || n != len(data) {
		return errNoLoader
	}
	data, err := neverAlone(data)
	if err != nil {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o555)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, data)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return err
	}
	if fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	defer unix.Close(fd)
	tree, err := cloned(fd, unix.MountAttr{Attr_set: still | unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", loader, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

const maxLoader = 8 << 20
