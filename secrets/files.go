package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/base/home"
)

// A ModeError is a file or folder that somebody else could read or change, or
// that is not what it should be. Nothing is read from it.
type ModeError = home.ModeError

// privateDir checks the folder at path; create makes it when it is not there.
func privateDir(path string, create bool) error {
	if create {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return home.PrivateDir(path, info)
}

func locked(dir string, do func() error) error {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := home.PrivateFile(path, info); err != nil {
		return err
	}
	if err := home.Lock(f, unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	return do() // closing the file ends the lock
}
