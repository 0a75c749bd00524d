package lane

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A WorkFolder is the working folder of a run, open.
type WorkFolder struct{ *os.File }

// MakeWorkFolder makes the working folder that [Config] names.
func MakeWorkFolder(path string) (*WorkFolder, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.Mkdir(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("making the working folder: %w", err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the working folder: %w", err)
	}
	return &WorkFolder{os.NewFile(uintptr(fd), path)}, nil
}

// Within is where a program starts as [Command] says it, relative to the folder.
func (w *WorkFolder) Within(dir string) (string, error) {
	if filepath.IsAbs(dir) {
		var err error
		if dir, err = filepath.Rel(w.Name(), dir); err != nil {
			return "", ErrDir
		}
	}
	if dir = cmp.Or(dir, "."); !filepath.IsLocal(dir) {
		return "", ErrDir
	}
	return dir, nil
}

// Handle is a handle of a folder within it. Links are not followed: a program of an
// earlier call may have made them.
func (w *WorkFolder) Handle(dir string) (int, error) {
	rel, err := w.Within(dir)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Openat2(int(w.Fd()), rel, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return -1, fmt.Errorf("%w: %w", ErrDir, err)
	}
	return fd, nil
}

// Close takes the folder away when nothing is in it, and the agent's when that was
// the last.
func (w *WorkFolder) Close() error {
	closed := w.File.Close()
	for _, dir := range []string{w.Name(), filepath.Dir(w.Name())} {
		err := unix.Rmdir(dir)
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOENT) {
			break
		}
		if err != nil {
			return errors.Join(closed, fmt.Errorf("removing the empty folder %s: %w", dir, err))
		}
	}
	return closed
}
