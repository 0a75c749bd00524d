package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// isLink reports whether a file was not opened because it is a link.
func isLink(err error) bool { return errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) }

// Owned refuses what belongs to somebody else than this user and root.
func Owned(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if uid := os.Geteuid(); ok && int(st.Uid) != uid && st.Uid != 0 {
		return fmt.Errorf("%s belongs to user %d, not to %d or root", path, st.Uid, uid)
	}
	return nil
}

// mine refuses what belongs to somebody else, root included.
func mine(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if uid := os.Geteuid(); ok && int(st.Uid) != uid {
		return &ModeError{path, fmt.Sprintf("belongs to user %d, not to %d", st.Uid, uid)}
	}
	return nil
}

// HoldDir makes a folder of the home if there is none, and makes whoever else
// holds it wait until free is called.
func HoldDir(dir string) (free func(), err error) {
	if err := Make(dir); err != nil {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := Lock(d, syscall.LOCK_EX); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("holding %s: %w", dir, err)
	}
	return func() { _ = d.Close() }, nil
}

// Lock asks for a lock of an open file, as flock(2) does; closing the file ends it.
func Lock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("flock", err)
		}
	}
}
