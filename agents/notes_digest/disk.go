package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// noteMax is the size of a note beyond which it is not read, in bytes.
const noteMax = 1 << 20

var errTooLarge = errors.New("larger than 1 MiB")

// A disk is what the agent needs of files. Errors are those of package os.
type disk interface {
	ReadDir(dir string) ([]fs.DirEntry, error)   // sorted by name
	ReadFile(path string) ([]byte, error)        // at most noteMax bytes, else errTooLarge
	WriteFile(path string, content []byte) error // makes the folder if it is not there
}

// osDisk is the disk that the host shows.
type osDisk struct{}

func (osDisk) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }

func (osDisk) ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, noteMax+1))
	if err == nil && len(content) > noteMax {
		err = &fs.PathError{Op: "read", Path: path, Err: errTooLarge}
	}
	return content, err
}

func (osDisk) WriteFile(path string, content []byte) error {
	err := os.WriteFile(path, content, 0o644)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
