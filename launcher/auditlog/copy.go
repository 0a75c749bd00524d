package auditlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/base/home"
)

// readOnly reports whether nothing can be written where a tenant's things are.
func readOnly(h home.Home) bool {
	err := unix.Access(h.Root(), unix.W_OK)
	return errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES)
}

// copyLog copies the store and the journals of a tenant into a home of their own,
// where the store can be opened, and returns what removes it again.
func copyLog(h home.Home) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "rlp-audit-*")
	if err != nil {
		return "", nil, fmt.Errorf("the home cannot be written, so that its log is copied: %w", err)
	}
	remove = func() error { return os.RemoveAll(dir) }
	rel, err := filepath.Rel(h.Dir(), h.Root())
	for _, name := range []string{"kb", "journal"} {
		if err == nil {
			err = copyPrivate(filepath.Join(h.Root(), name), filepath.Join(dir, rel, name))
		}
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("the home cannot be written, so that its log is copied to %s (TMPDIR says "+
			"where): %w", dir, err), remove())
	}
	return dir, remove, nil
}

// copyPrivate copies the folders and regular files in a folder, for their owner
// alone. One that is not there is an empty one.
func copyPrivate(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		rel, relErr := filepath.Rel(from, path)
		if err = errors.Join(err, relErr); err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case d.Type().IsRegular():
			return copyFile(path, filepath.Join(to, rel))
		}
		return nil
	})
}

func copyFile(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
