package journal

import (
	"errors"
	"fmt"
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

// Sync makes everything recorded so far survive the loss of power: the bytes,
// and at the first time the name that the journal has in its directory. When
// nothing was recorded since the last time there is nothing to do. Once the disk
// has failed nobody knows what is on it, and the journal is broken.
func (j *Journal) Sync() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if j.state == closed {
		return ErrEnded
	}
	if j.off == j.synced {
		return nil
	}
	err := j.syncNow()
	if err != nil {
		return fmt.Errorf("syncing the journal: %w", j.fail(err))
	}
	j.synced = j.off
	return nil
}

func (j *Journal) syncNow() error {
	if j.group == nil {
		return j.syncAlone()
	}
	return j.group.sync(j)
}

func (j *Journal) dir() string { return filepath.Dir(j.path) }

func (j *Journal) run() string { return filepath.Base(j.path) }

// syncAlone brings the journal's own file to the disk.
func (j *Journal) syncAlone() error {
	if j.named {
		return j.disk.SyncFile(j.file)
	}
	names := make(chan error, 1)
	go func() { names <- j.disk.SyncDir(j.dir()) }() // the disk flushes once for both
	if err := errors.Join(j.disk.SyncFile(j.file), <-names); err != nil {
		return err
	}
	j.named = true
	return nil
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
