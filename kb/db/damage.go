package db

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"

	"runloop.dev/rlp/kb/wire"
)

// A damagedFileError says which file of the database is not as it was written.
// It is [ErrDamaged], and [ErrUnavailable], because nothing can be read.
type damagedFileError struct{ path, how string }

func (e *damagedFileError) Error() string {
	return fmt.Sprintf("%v: %s is not as it was written (%s)", wire.ErrDamaged, e.path, e.how)
}

func (e *damagedFileError) Unwrap() []error { return []error{wire.ErrUnavailable, wire.ErrDamaged} }

// damagedFile finds in what badger says the file that it could not use, or nil.
// Badger wraps nothing: its text is all there is.
func damagedFile(dir string, err error) error {
	text := err.Error()
	if _, table, ok := strings.Cut(text, `Opening table: "`); ok {
		path, how, _ := strings.Cut(table, `"`)
		return &damagedFileError{path, strings.TrimPrefix(how, " err: ")}
	}
	for _, mark := range []string{"manifest has", "MANIFEST"} {
		if strings.Contains(text, mark) {
			return &damagedFileError{filepath.Join(dir, "MANIFEST"), text}
		}
	}
	return nil
}

// checkTables looks at the ends of the tables of the database in dir, by which
// badger finds the rest before it has checked them: a wrong one ends the whole
// process. A table that the manifest does not name was being written when its
// process died, and badger clears it away. It returns how many there are.
func checkTables(dir string) (tables int, err error) {
	manifest, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, checkNoTables(dir)
	}
	if err != nil {
		return 0, err
	}
	defer manifest.Close()
	opt := DatabaseOptions(dir)
	named, _, err := badger.ReplayManifestFile(manifest, opt.ExternalMagicVersion, opt)
	if err != nil {
		return 0, &damagedFileError{manifest.Name(), err.Error()}
	}
	for id, known := range named.Tables {
		path := table.NewFilename(id, dir)
		how, err := checkTableEnd(path)
		if errors.Is(err, fs.ErrNotExist) {
			how, err = "it is gone", nil
		}
		if err == nil && how == "" {
			how, err = tableOpens(path, table.Options{
				ChkMode: options.NoVerification, Compression: known.Compression,
				BlockSize: opt.BlockSize,
			})
		}
		if err != nil {
			return 0, err
		}
		if how != "" {
			return 0, &damagedFileError{path, how}
		}
	}
	return len(named.Tables), nil
}

// checkNoTables finds a database that has lost its manifest, which is made before
// any table: badger would begin a new one and clear every table away.
func checkNoTables(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, is := table.ParseFileID(e.Name()); is {
			return &damagedFileError{filepath.Join(dir, badger.ManifestFilename), "it is gone, and tables are there"}
		}
	}
	return nil // no database yet
}

// maxTableSum is more than the sum at a table's end takes.
const maxTableSum = 16

// checkTableEnd says what is wrong with a table's end, or "". It holds the index,
// its length, the sum of the index and its length.
func checkTableEnd(path string) (how string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	end := make([]byte, min(4+maxTableSum+4, info.Size()))
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if len(end) < 8 {
		return "it is cut", nil
	}
	sum := int64(binary.BigEndian.Uint32(end[len(end)-4:]))
	if sum > int64(len(end))-8 {
		return "its end makes no sense", nil
	}
	at := len(end) - 4 - int(sum)
	index := int64(binary.BigEndian.Uint32(end[at-4:]))
	// A sum begins with its field's number, as no other kind of sum is used.
	if index == 0 || index > info.Size()-8-sum || sum > 0 && end[at] != 0x10 {
		return "its end makes no sense", nil
	}
	return "", nil
}

// tableOpens says what badger finds wrong with a table whose end makes sense, or "":
// it reads the last entry before it looks at any sum, and what makes no sense there
// ends the process, since it reads its tables in goroutines of its own.
func tableOpens(path string, as table.Options) (how string, err error) {
	file, err := z.OpenMmapFile(path, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer func() {
		if recover() != nil {
			how = "its entries make no sense"
		}
		err = errors.Join(err, file.Close(-1))
	}()
	if _, err := table.OpenTable(file, as); err != nil {
		return err.Error(), nil
	}
	return "", nil
}
