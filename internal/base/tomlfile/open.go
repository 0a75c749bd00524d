package tomlfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/base/owner"
)

// openStrict opens the folder first and the name in it second, so that ENOENT
// of the second step means that name and nothing on the way to it. A name that
// is a link, whatever it leads to, is refused by the open itself.
func openStrict(path string) (*os.File, error) {
	dir, name := filepath.Split(filepath.Clean(path))
	if name == "" || name == "." || name == ".." {
		return nil, &FileError{Path: path, Msg: "names a folder, not a file"}
	}
	if dir == "" {
		dir = "."
	}
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, withoutNotExist(err)
	}
	defer d.Close()
	// First the folder: where others can take the file away, its absence says
	// nothing either.
	if err := checkFolder(filepath.Clean(dir), d); err != nil {
		return nil, err
	}
	fd, err := openat(int(d.Fd()), name)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK):
		return nil, &FileError{Path: path, Msg: "is a symbolic link", Hint: "put the file itself there"}
	case errors.Is(err, unix.ENXIO):
		return nil, &FileError{Path: path, Msg: "is a socket or a device, not a regular file"}
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func openat(dir int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	for {
		fd, err := unix.Openat(dir, name, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// checkFolder refuses a folder in which others could replace the file: one that
// they may write to, unless its sticky bit keeps them from what is not theirs.
func checkFolder(dir string, d *os.File) error {
	info, err := d.Stat()
	if err != nil {
		return withoutNotExist(err)
	}
	if info.Mode()&os.ModeSticky != 0 {
		return nil
	}
	if who, mend := owner.Writers(d, info); who != "" {
		return &FileError{
			Path: dir, Msg: fmt.Sprintf("is a folder that %s may write to (mode %04o)", who, info.Mode().Perm()),
			Hint: "chmod " + mend + " " + dir,
		}
	}
	return nil
}

// checkOwner refuses a file that somebody else than the operator and root
// wrote, or may write; one of no group, what any group may write.
func checkOwner(path string, f *os.File, info os.FileInfo, noGroup bool) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return &FileError{Path: path, Msg: "has an owner that cannot be told"}
	}
	if uid := os.Geteuid(); st.Uid != 0 && int64(st.Uid) != int64(uid) {
		return &FileError{Path: path, Msg: fmt.Sprintf("belongs to user %d, not to you (%d) or root", st.Uid, uid)}
	}
	who, mend := owner.Strangers(info)
	if who != "" && !noGroup {
		who, mend = owner.Writers(f, info)
	}
	if who != "" {
		return &FileError{
			Path: path, Msg: fmt.Sprintf("may be written by %s (mode %04o)", who, info.Mode().Perm()),
			Hint: "chmod " + mend + " " + path,
		}
	}
	return nil
}
