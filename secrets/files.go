package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A ModeError is a file or folder that somebody else could read or change, or
// that is not what it should be. Nothing is read from it.
type ModeError struct {
	Path string
	Why  string
}

func (e *ModeError) Error() string { return e.Path + " " + e.Why }

// private refuses what is not the caller's own alone.
func private(path string, info fs.FileInfo, dir bool) error {
	mode := info.Mode()
	switch {
	case dir && !mode.IsDir():
		return &ModeError{path, "is not a folder"}
	case !dir && !mode.IsRegular():
		return &ModeError{path, "is not a regular file"}
	case dir && mode.Perm()&0o077 != 0:
		return &ModeError{path, fmt.Sprintf("has mode %#o, so that others can look into it; run chmod 700 on it", mode.Perm())}
	case !dir && mode.Perm()&0o177 != 0:
		return &ModeError{path, fmt.Sprintf("has mode %#o, so that others can read it; run chmod 600 on it", mode.Perm())}
	}
	return owned(path, info)
}

// owned refuses what belongs to somebody else.
func owned(path string, info fs.FileInfo) error {
	if uid, known := ownerOf(info); known && uid != os.Geteuid() {
		return &ModeError{path, fmt.Sprintf("belongs to user %d, not to %d", uid, os.Geteuid())}
	}
	return nil
}

// privateDir checks the folder at path; create makes it when it is not there.
func privateDir(path string, create bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err = os.Lstat(path)
	}
	if err != nil {
		return err
	}
	return private(path, info, true)
}

// readPrivate reads a file of the caller's own, following no link; what is
// checked is what is read.
func readPrivate(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, &ModeError{path, "is a symbolic link"}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := private(path, info, false); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &ModeError{path, fmt.Sprintf("is longer than %d bytes", limit)}
	}
	return data, err
}

// writePrivate puts a file whole in the place of an earlier one: after a crash
// there is the one or the other.
func writePrivate(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, bytes.NewReader(data))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// locked runs do while no other process changes what lies in dir.
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
	if err := private(path, info, false); err != nil {
		return err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("locking %s: %w", path, err)
		}
	}
	return do() // closing the file ends the lock
}
