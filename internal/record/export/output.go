package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"runloop.dev/rlp/internal/base/home"
)

// An Output takes what was encoded.
type Output interface {
	// Put takes p as a whole.
	Put(ctx context.Context, p []byte) error
	// Mark returns when what was put cannot be lost any more, with the place where
	// it ended, nil where there is none to come back to.
	Mark() (*Place, error)
	// Empty reports whether nothing was put yet, by anybody.
	Empty() bool
	// Close ends the output: done says that it is complete.
	Close(done bool) error
}

// A Place is the end of a file at some time, and what stood before it, by which
// another file is told from it.
type Place struct {
	Bytes int64  `json:"bytes"`
	Tail  string `json:"tail"` // SHA-256 of the last 4096 bytes before, or of all
}

const tailBytes = 4096

// ErrOutput says that a file is not the one that an export has to go on in.
var ErrOutput = errors.New("not what this export wrote")

// A Stream is an output to somebody who reads along. Nobody can take back what
// was read: after a kill what came last may come again.
type Stream struct {
	w   io.Writer
	put bool
}

// NewStream writes to w, what was begun before where resumed.
func NewStream(w io.Writer, resumed bool) *Stream { return &Stream{w, resumed} }

// Put writes p.
func (s *Stream) Put(_ context.Context, p []byte) error {
	s.put = true
	_, err := s.w.Write(p)
	return err
}

// Mark has nothing to do.
func (s *Stream) Mark() (*Place, error) { return nil, nil } //nolint:nilnil // there is no place

// Empty reports whether nothing was written.
func (s *Stream) Empty() bool { return !s.put }

// Close leaves the writer open.
func (s *Stream) Close(bool) error { return nil }

// A File is an output that an export goes on in where its cursor says it was:
// what was written behind that place, before the process died, is taken away
// and written again, so that each record is in it once.
type File struct {
	f    *os.File
	size int64
	name string // it gets when it is complete; "": it has it
}

// NewFile makes a file that appears at path when it is complete, in the place of
// what was there.
func NewFile(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	return &File{f: f, name: path}, nil
}

// ResumeFile opens the file at path to go on at a place; nil: at its beginning,
// and then nothing may be in it.
func ResumeFile(path string, at *Place) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	o := &File{f: f}
	if err := o.resume(path, at); err != nil {
		f.Close()
		return nil, err
	}
	return o, nil
}

func (o *File) resume(path string, at *Place) error {
	info, err := o.f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{
			Op: "exporting to", Path: path,
			Err: errors.New("it is no regular file; --output - and a pipe reach those"),
		}
	}
	switch {
	case at == nil && info.Size() > 0:
		return fmt.Errorf("%s: %w: there is something in it already; move it away, or give the --cursor that it was "+
			"written with", path, ErrOutput)
	case at == nil, at.Bytes > 0 && info.Size() == 0: // a new one, or one that was taken away to be kept
		return nil
	case at.Bytes < 0 || info.Size() < at.Bytes:
		return fmt.Errorf("%s: %w: it has %d bytes, and the cursor says %d; move it away to go on in a new one", path,
			ErrOutput, info.Size(), at.Bytes)
	}
	o.size = at.Bytes
	is, err := o.place()
	if err != nil {
		return err
	}
	if *is != *at {
		o.size = 0
		return fmt.Errorf("%s: %w: the cursor was made for another file; move it away to go on in a new one", path, ErrOutput)
	}
	if err := o.f.Truncate(at.Bytes); err != nil {
		return err
	}
	_, err = o.f.Seek(at.Bytes, io.SeekStart)
	return err
}

func (o *File) place() (*Place, error) {
	n := min(o.size, tailBytes)
	p := make([]byte, n)
	if _, err := o.f.ReadAt(p, o.size-n); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(p)
	return &Place{o.size, hex.EncodeToString(sum[:])}, nil
}

// Put appends p.
func (o *File) Put(_ context.Context, p []byte) error {
	n, err := o.f.Write(p)
	o.size += int64(n)
	return err
}

// Mark brings the file to the disk.
func (o *File) Mark() (*Place, error) {
	if err := o.f.Sync(); err != nil {
		return nil, err
	}
	return o.place()
}

// Empty reports whether the file is.
func (o *File) Empty() bool { return o.size == 0 }

// Close gives a complete file its name, and takes one that is not away.
func (o *File) Close(done bool) error {
	switch {
	case o.name == "":
		return o.f.Close()
	case !done:
		return errors.Join(o.f.Close(), os.Remove(o.f.Name()))
	}
	err := errors.Join(o.f.Sync(), o.f.Close())
	if err == nil {
		err = os.Rename(o.f.Name(), o.name)
	}
	if err == nil {
		err = home.SyncDir(filepath.Dir(o.name))
	}
	return err
}
