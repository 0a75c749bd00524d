package kb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/kb/journal"
)

const (
	maxValue = 1 << 20
	maxKey   = 1 << 10

	// What one transaction carries: badger takes 15 % of a table at once, 4.8 MiB.
	// The largest value changes with its index in one: 1 MiB, and for each of
	// words.MaxTerms words in two indexes a chunk of at most 361 bytes that it leaves
	// and one that it enters.
	memTable    = 32 << 20
	batchBytes  = 256 << 10 // of values, and one more value
	batchItems  = 128
	intakeBytes = 400 << 10 // of records, and one more record
	intakeItems = 1000
)

// databaseOptions is badger made small and strict. Every commit is synced, and
// a table whose bytes have changed keeps the database from opening: with the
// defaults one flipped bit gives other values or loses keys, without a word.
func databaseOptions(dir string) badger.Options {
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

// mostFlushes is how many failures of one table are waited for at the end.
const mostFlushes = 4

// openDatabase opens the database in dir. The caller holds the store's lock.
func openDatabase(dir string, l *listener) (*badger.DB, error) {
	// A process that died between making a file and giving it a length leaves an
	// empty one, on which badger's first opening fails, and clears it away.
	retry := leftEmpty(dir)
	if err := onlyFiles(dir); err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	tables, err := checkTables(dir)
	if err == nil {
		err = descriptorsLeft(tables + minDescriptors)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	db, err := badger.Open(databaseOptions(dir).WithLogger(l))
	if err != nil && retry {
		var again error
		if db, again = badger.Open(databaseOptions(dir).WithLogger(l)); again == nil {
			return db, nil
		}
		err = errors.Join(err, again)
	}
	if err != nil {
		if damaged := damagedFile(dir, err); damaged != nil {
			return nil, fmt.Errorf("opening the database: %w", damaged)
		}
		return nil, fmt.Errorf("opening the database %s: %w: %w", dir, ErrUnavailable, err)
	}
	return db, nil
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

func roomLeft(dir string) error {
	if err := descriptorsLeft(minDescriptors); err != nil {
		return err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if free := uint64(s.Bavail) * uint64(s.Bsize); free < minRoom { //nolint:unconvert // their types differ by system
		return &notFitError{dir, fmt.Sprintf("the disk has %d MiB left; the store needs %d", free>>20, minRoom>>20)}
	}
	return nil
}

// makeDir makes a directory for its owner alone; one that is there must give
// others none of the forbidden permissions.
func makeDir(dir string, forbidden fs.FileMode) error {
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
		return &notFitError{dir, "it is not a directory"}
	case info.Mode().Perm()&forbidden != 0:
		return &notFitError{dir, fmt.Sprintf("it is open to others (mode %#o); run chmod 700 on it", info.Mode().Perm())}
	}
	return nil
}

// get reads one key; absent is nil, nil.
func get(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	v, err := item.ValueCopy(nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if v == nil {
		v = []byte{}
	}
	return v, nil
}

// getNumber reads a counter; absent is 0.
func getNumber(txn *badger.Txn, key []byte) (uint64, error) {
	v, err := get(txn, key)
	if err != nil || v == nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: a counter of %d bytes", ErrDamaged, len(v))
	}
	return tailNumber(v), nil
}
