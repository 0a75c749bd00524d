package journal

import (
	"errors"
	"fmt"
	"path/filepath"
)

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
