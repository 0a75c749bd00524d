package home

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A ModeError is a file or folder that somebody else could read or change, or
// that is not what it should be. Nothing is read from it.
type ModeError struct {
	Path string
	Why  string
}

func (e *ModeError) Error() string { return e.Path + " " + e.Why }

// ReadPrivate reads a small file of this user's alone: regular, no link, with no
// right for anybody else, at most limit bytes. It waits for nobody, and what is
// checked is what is read. What it refuses is a [*ModeError].
func ReadPrivate(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if isLink(err) {
		return nil, &ModeError{path, "is a symbolic link; put the file itself there"}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := PrivateFile(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &ModeError{path, fmt.Sprintf("is longer than %d bytes", limit)}
	}
	if err != nil {
		clear(data)
		return nil, err
	}
	return data, nil
}

// PrivateFile refuses what is not a regular file of this user's alone.
func PrivateFile(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return &ModeError{path, "is not a regular file"}
	case mode.Perm()&0o177 != 0:
		return &ModeError{path, fmt.Sprintf("has mode %#o, so that others can read it; run chmod 600 on it", mode.Perm())}
	}
	return mine(path, info)
}

// PrivateDir refuses what is not a folder of this user's alone.
func PrivateDir(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case !mode.IsDir():
		return &ModeError{path, "is not a folder"}
	case mode.Perm()&0o077 != 0:
		return &ModeError{path, fmt.Sprintf("has mode %#o, so that others can look into it; run chmod 700 on it",
			mode.Perm())}
	}
	return mine(path, info)
}

// WritePrivate puts a file whole in the place of an earlier one: after a crash
// there is the one or the other. Nobody else can read it.
func WritePrivate(path string, data []byte) error { return write(path, data, 0o600, os.Rename) }

// WriteNew is [WritePrivate] for a file that takes nobody's place: the error is
// [fs.ErrExist] where there is one, and of several writers all see the first one's.
func WriteNew(path string, data []byte, mode fs.FileMode) error {
	return write(path, data, mode, os.Link)
}

func write(path string, data []byte, mode fs.FileMode, place func(from, to string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// Replace puts text in the place of what was at path, whole and private, after it
// saved that beside it under a name that nothing reads; nil: nothing was there.
func Replace(path string, was, text []byte) (previous string, err error) {
	if was == nil {
		return "", WritePrivate(path, text)
	}
	if bytes.Equal(was, text) {
		return "", nil
	}
	ext, sum := filepath.Ext(path), sha256.Sum256(was)
	name := fmt.Sprintf(".%s.%x.previous", strings.TrimSuffix(filepath.Base(path), ext), sum[:6])
	previous = filepath.Join(filepath.Dir(path), name)
	if err := WritePrivate(previous, was); err != nil {
		return "", err
	}
	return previous, WritePrivate(path, text)
}

// SyncDir makes the names in dir survive the loss of power.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Tokens is where the tokens of the service lie, of every tenant.
func (h Home) Tokens() string { return filepath.Join(h.dir, tokens) }
