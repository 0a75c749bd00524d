//go:build unix

package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	oNoFollow = syscall.O_NOFOLLOW
	oNonBlock = syscall.O_NONBLOCK
)

// isLink reports whether a file was not opened because it is a link.
func isLink(err error) bool { return errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) }

func owned(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if uid := os.Geteuid(); int(st.Uid) != uid && st.Uid != 0 {
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
	for {
		if err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("holding %s: %w", dir, err)
	}
	return func() { _ = d.Close() }, nil
}
