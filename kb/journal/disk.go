package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Disk is what makes files survive the loss of power: what was not given to
// it may be gone. Tests put one in its place that loses power.
type Disk interface {
	// SyncFile keeps the bytes of f as they are now.
	SyncFile(f *os.File) error
	// SyncDir keeps the names in dir as they are now.
	SyncDir(dir string) error
}

// systemDisk is the real one.
type systemDisk struct{}

func (systemDisk) SyncFile(f *os.File) error { return syncData(f) }

func (systemDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		err = unix.Fsync(int(d.Fd()))
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL): // no names of this file system need it
			return nil
		default:
			return os.NewSyscallError("fsync", err)
		}
	}
}

// KeepName makes the name of a directory that was just made survive the loss of
// power, and those of the ones above it, which may be as new.
func KeepName(dir string) error { return keepName(systemDisk{}, dir) }

// keepName makes a directory that was just made survive the loss of power:
// its name, and those of the ones above it, as far as this user may open them.
func keepName(disk Disk, dir string) error {
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		err := disk.SyncDir(up)
		if errors.Is(err, fs.ErrPermission) {
			return nil // others made what lies above, long ago
		}
		if err != nil || up == filepath.Dir(up) {
			return err
		}
	}
}
