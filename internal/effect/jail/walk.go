//go:build linux || darwin

package jail

import (
	"strings"

	"golang.org/x/sys/unix"
)

// anyDevice is the device number that lets walk cross mount points.
const anyDevice = ^uint64(0)

// walk opens rel beneath the directory at, one component at a time, none of
// them as a link: a link on the way, or at the end without O_NOFOLLOW, is
// ELOOP. A directory that is on another device than dev is EXDEV. rel has no
// ".." and is "." for at itself.
func walk(at int, dev uint64, rel string, flags int, perm uint32) (int, error) {
	dir := at
	for {
		name, rest, more := strings.Cut(rel, "/")
		step, mode := flags, perm
		if more {
			step, mode = searchFlags|unix.O_DIRECTORY, 0
		}
		fd, err := openStep(dir, name, step, mode)
		if dir != at {
			_ = unix.Close(dir)
		}
		if err == nil {
			err = sameDevice(fd, dev)
		}
		if err != nil || !more {
			return fd, err
		}
		dir, rel = fd, rest
	}
}

// walkFromTop opens the absolute path p as a handle, mount points and all.
func walkFromTop(p string) (int, error) {
	top, err := unix.Open("/", searchFlags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || p == "/" {
		return top, err
	}
	defer unix.Close(top)
	fd, err := walk(top, anyDevice, p[1:], searchFlags, 0)
	if err != nil {
		return -1, err
	}
	return notLink(fd)
}

// openStep opens name in dir and never follows it.
func openStep(dir int, name string, flags int, perm uint32) (int, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
	})
	if err == nil || err == unix.EEXIST || flags&unix.O_NOFOLLOW != 0 {
		return fd, err
	}
	// What a link is answered with differs (ELOOP, ENOTDIR, EMLINK): look.
	var st unix.Stat_t // nothing is no link
	if _ = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = unix.ELOOP
	}
	return -1, err
}

// notLink closes fd and answers ELOOP if it is the handle of a link itself.
func notLink(fd int) (int, error) {
	kind, err := kindOf(fd)
	if kind == unix.S_IFLNK {
		err = unix.ELOOP
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// sameDevice closes fd and answers EXDEV if it is a directory not on dev.
// Files are not looked at: what lies in a directory is on its device, though
// stacked file systems may number it otherwise.
func sameDevice(fd int, dev uint64) error {
	if dev == anyDevice {
		return nil
	}
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR && uint64(st.Dev) != dev {
		err = unix.EXDEV
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return err
}

func kindOf(fd int) (uint32, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return uint32(st.Mode) & unix.S_IFMT, err
}

func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}
