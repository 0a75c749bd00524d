package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/base/owner"
	"runloop.dev/rlp/kb/journal"
	"runloop.dev/rlp/kb/wire"
)

// memTable is badger's table in memory: one transaction carries 15 % of it, 4.8 MiB.
const memTable = 32 << 20

// DatabaseOptions is badger made small and strict. Every commit is synced, and
// a table whose bytes have changed keeps the database from opening: with the
// defaults one flipped bit gives other values or loses keys, without a word.
func DatabaseOptions(dir string) badger.Options {
	return badger.DefaultOptions(dir).
		WithLogger(nil).
		WithMetricsEnabled(false).
		WithSyncWrites(true).
		WithVerifyValueChecksum(true).
		WithChecksumVerificationMode(options.OnTableRead).
		WithDetectConflicts(false). // one goroutine writes each part of the key space
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithMemTableSize(memTable).
		WithNumMemtables(1).
		WithNumCompactors(2).
		WithNumGoroutines(2).
		WithValueLogFileSize(8 << 20)
}

// MostFlushes is how many failures of one table are waited for at the end.
const MostFlushes = 4

// OpenDatabase opens the database in dir. The caller holds the store's lock.
func OpenDatabase(dir string, l *Listener) (*Database, error) {
	// A process that died between making a file and giving it a length leaves an
	// empty one, on which badger's first opening fails, and clears it away.
	retry := leftEmpty(dir)
	if err := onlyFiles(dir); err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	tables, err := checkTables(dir)
	if err == nil {
		err = DescriptorsLeft(tables + heldDescriptors + MinDescriptors)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	db, err := badger.Open(DatabaseOptions(dir).WithLogger(l))
	if err != nil && retry {
		var again error
		if db, again = badger.Open(DatabaseOptions(dir).WithLogger(l)); again == nil {
			return newDatabase(db, dir), nil
		}
		err = errors.Join(err, again)
	}
	if err != nil {
		if damaged := damagedFile(dir, err); damaged != nil {
			return nil, fmt.Errorf("opening the database: %w", damaged)
		}
		return nil, fmt.Errorf("opening the database %s: %w: %w", dir, wire.ErrUnavailable, err)
	}
	return newDatabase(db, dir), nil
}

// onlyFiles refuses what badger would wait for, as a FIFO, or be led away by.
func onlyFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() && !e.IsDir() {
			return &damagedFileError{filepath.Join(dir, e.Name()), "it is no regular file"}
		}
	}
	return nil
}

// leftEmpty reports whether there is a memtable or value log of no length.
func leftEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".mem" && ext != ".vlog" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Size() == 0 {
			return true
		}
	}
	return false
}

// minRoom is what must be free where the database is. Badger maps files that
// are not allocated, and a process that touches one on a full disk dies.
const minRoom = 48 << 20

// RoomLeft is why nothing may be written to dir now.
func RoomLeft(dir string) error {
	if err := DescriptorsLeft(MinDescriptors); err != nil {
		return err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if free := uint64(s.Bavail) * uint64(s.Bsize); free < minRoom { //nolint:unconvert // their types differ by system
		return &NotFitError{dir, fmt.Sprintf("the disk has %d MiB left; the store needs %d", free>>20, minRoom>>20)}
	}
	return nil
}

// MakeDir makes a directory for its owner alone; in one that is there others
// must have no permission, or none to write where it is looked into.
func MakeDir(dir string, lookedInto bool) error {
	_, missing := os.Lstat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	if errors.Is(missing, fs.ErrNotExist) {
		if err := journal.KeepName(dir); err != nil {
			return fmt.Errorf("making %s: %w", dir, err)
		}
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("making %s: %w", dir, err)
	case !info.IsDir():
		return &NotFitError{dir, "it is not a directory"}
	case !lookedInto && info.Mode().Perm()&0o077 != 0:
		return &NotFitError{dir, fmt.Sprintf("it is open to others (mode %#o); run chmod 700 on it", info.Mode().Perm())}
	case lookedInto:
		if who, _ := owner.WritersAt(dir, info); who != "" {
			return &NotFitError{dir, fmt.Sprintf("it is open to %s (mode %#o); run chmod 700 on it", who, info.Mode().Perm())}
		}
	}
	return nil
}

// A Database is badger's, and why nothing may be written to it now.
type Database struct {
	*badger.DB
	Room func() error
}

func newDatabase(db *badger.DB, dir string) *Database {
	return &Database{db, func() error { return errors.Join(RoomLeft(dir), stillThere(dir)) }}
}

// ErrRemoved says that the files of a database that is open were removed: what is
// written into it is gone when the process ends.
var ErrRemoved = fmt.Errorf("%w: its files were removed while it is open", wire.ErrDamaged)

// stillThere reports whether the manifest, which a database has from its beginning,
// still has its name.
func stillThere(dir string) error {
	path := filepath.Join(dir, badger.ManifestFilename)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (%s is gone)", ErrRemoved, path)
	}
	return nil
}

// Update is a change of the database, if it can be made now.
func (d *Database) Update(do func(txn *badger.Txn) error) error {
	if err := d.Room(); err != nil {
		return err
	}
	return d.DB.Update(do)
}

// Get reads one key; absent is nil, nil.
func Get(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	v, err := item.ValueCopy(nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
	}
	if v == nil {
		v = []byte{}
	}
	return v, nil
}

// GetNumber reads a counter; absent is 0.
func GetNumber(txn *badger.Txn, key []byte) (uint64, error) {
	v, err := Get(txn, key)
	if err != nil || v == nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: a counter of %d bytes", wire.ErrDamaged, len(v))
	}
	return TailNumber(v), nil
}

// A NotFitError says which rule of the home's place is broken.
type NotFitError struct{ What, Why string }

func (e *NotFitError) Error() string { return fmt.Sprintf("%s: %s", e.What, e.Why) }
func (e *NotFitError) Unwrap() error { return wire.ErrUnavailable }
