package bundles

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// replace puts the directory temp in the place of built, so that whoever opens
// built finds the old one or the new one whole. The old one ends up at temp.
func replace(temp, built string) error {
	if _, err := os.Lstat(built); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(temp, built)
	}
	err := unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, built, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return replaceByMoving(temp, built) // a file system that cannot exchange
	}
	return err
}
