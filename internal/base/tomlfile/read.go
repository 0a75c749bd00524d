package tomlfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrFile is wrapped by every error of [ReadFile] that is about what kind of
// file it is and who may write it, rather than about reading it.
var ErrFile = errors.New("not a file of the operator's")

// A FileError is a file that [ReadFile] refuses to take for the operator's.
type FileError struct {
	Path string
	Msg  string
	Hint string
}

// Error returns "path: message (hint)".
func (e *FileError) Error() string {
	s := e.Path + ": " + e.Msg
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap returns [ErrFile].
func (e *FileError) Unwrap() error { return ErrFile }

// Names are the names of what lies in a folder, sorted.
func Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// ReadFile reads a file whose word restricts agents: regular, not a symbolic
// link, at most max bytes ([DefaultMax] if max is 0), owned by the operator or
// root and writable by nobody else ([owner.Writers]), in a folder in which nobody
// else can put another in its place. It is opened once, judged and read through that one
// descriptor.
//
// The error wraps [io/fs.ErrNotExist] only if the folder is there and has no
// file of that name. A folder that is missing, a link that leads nowhere, a
// file that may not be read are errors of other kinds, so that a caller which
// takes "not there" for "no restriction" never takes trouble for it.
func ReadFile(path string, max int64) ([]byte, error) { return readFile(path, max, false) }

// ReadOfNoGroup is [ReadFile] for keys and what says who is trusted: not even the
// owner's private group may write the file.
func ReadOfNoGroup(path string, max int64) ([]byte, error) { return readFile(path, max, true) }

func readFile(path string, max int64, noGroup bool) ([]byte, error) {
	if max <= 0 {
		max = DefaultMax
	}
	f, err := openStrict(path)
	if err != nil {
		return nil, once(path, err)
	}
	defer f.Close()
	if err := checkFile(path, f, max, noGroup); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, withoutNotExist(err))
	}
	if int64(len(data)) > max {
		return nil, tooLarge(path, max)
	}
	return data, nil
}

// once is an error of reading path that names it once.
func once(path string, err error) error {
	var at *fs.PathError
	switch {
	case errors.Is(err, ErrFile):
		return err // it begins with the path
	case errors.As(err, &at) && at == err && at.Path == path:
		err = at.Err
	}
	return fmt.Errorf("reading %s: %w", path, err)
}

func checkFile(path string, f *os.File, max int64, noGroup bool) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, withoutNotExist(err))
	}
	if !info.Mode().IsRegular() {
		return &FileError{Path: path, Msg: "is " + kindOf(info.Mode()) + ", not a regular file"}
	}
	if err := checkOwner(path, f, info, noGroup); err != nil {
		return err
	}
	if info.Size() > max {
		return tooLarge(path, max)
	}
	return nil
}

func tooLarge(path string, max int64) error {
	return &FileError{Path: path, Msg: fmt.Sprintf("is larger than %d bytes", max)}
}

func kindOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&os.ModeNamedPipe != 0:
		return "a pipe"
	case m&os.ModeSocket != 0:
		return "a socket"
	case m&os.ModeDevice != 0:
		return "a device"
	case m&os.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "of an unknown kind"
}

// withoutNotExist keeps the text of an error and drops its identity, where "not
// there" would be taken for "the final name is not there".
func withoutNotExist(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return errors.New(err.Error())
	}
	return err
}
