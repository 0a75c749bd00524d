// Package companion keeps a second program at the end of a first one's file.
//
// Go initializes every package that is linked before main begins, used or not.
// The small program starts what needs little; it hands everything else to the
// whole one, which costs the launches that do not need it nothing but disk.
//
// A file is: the first program, the second, and a trailer of 64 bytes:
//
//	 0  16 bytes magic
//	16  u64 little endian: length of the second program
//	24  8 bytes zero
//	32  sha256 of the second program
package companion

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	magic      = "rlp companion 1\n"
	trailerLen = 64
	// maxLen bounds what a trailer may claim, in bytes.
	maxLen = 1 << 30
)

// ErrNone says that a program has no companion.
var ErrNone = errors.New("no companion")

// Pack writes first, second and the trailer to w.
func Pack(w io.Writer, first, second io.Reader) error {
	if _, err := io.Copy(w, first); err != nil {
		return fmt.Errorf("packing the first program: %w", err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), second)
	if err != nil {
		return fmt.Errorf("packing the second program: %w", err)
	}
	t := make([]byte, 32, trailerLen)
	copy(t, magic)
	binary.LittleEndian.PutUint64(t[16:], uint64(n))
	if _, err := w.Write(sum.Sum(t)); err != nil {
		return fmt.Errorf("packing the trailer: %w", err)
	}
	return nil
}

// A Companion is the second program in an open file.
type Companion struct {
	body *io.SectionReader
	sum  [32]byte
}

// Find looks for the companion at the end of f. Its error wraps [ErrNone] when
// there is none.
func Find(f *os.File) (*Companion, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("looking for a companion: %w", err)
	}
	if info.Size() < trailerLen {
		return nil, ErrNone
	}
	t := make([]byte, trailerLen)
	if _, err := f.ReadAt(t, info.Size()-trailerLen); err != nil {
		return nil, fmt.Errorf("looking for a companion: %w", err)
	}
	n := binary.LittleEndian.Uint64(t[16:])
	if string(t[:16]) != magic || n > maxLen || int64(n) > info.Size()-trailerLen {
		return nil, ErrNone
	}
	c := &Companion{body: io.NewSectionReader(f, info.Size()-trailerLen-int64(n), int64(n))}
	copy(c.sum[:], t[32:])
	return c, nil
}

// Extract puts the companion into dir, a folder of the caller's alone, unless
// it is there, and returns its path. Companions of other versions there are
// removed: a program that runs goes on without its name.
func (c *Companion) Extract(dir string) (string, error) {
	if err := makeOwn(dir); err != nil {
		return "", fmt.Errorf("extracting the companion: %w", err)
	}
	path := filepath.Join(dir, "rlp-"+hex.EncodeToString(c.sum[:16]))
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode() == programMode && info.Size() == c.body.Size() && ownFile(info):
		return path, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("looking for the companion: %w", err)
	}
	if err := c.write(dir, path); err != nil {
		return "", fmt.Errorf("extracting the companion: %w", err)
	}
	others, err := filepath.Glob(filepath.Join(dir, "rlp-*"))
	for _, other := range others {
		if other != path {
			err = errors.Join(err, os.Remove(other))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("removing companions of other versions: %w", err)
	}
	return path, nil
}

// makeOwn makes dir, and refuses one that is a link, or that anybody else can
// enter or owns.
func makeOwn(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err == nil && (!info.IsDir() || info.Mode().Perm()&0o077 != 0 || !ownFile(info)) {
		err = fmt.Errorf("%s must be a folder of its owner alone (mode 0700)", dir)
	}
	return err
}

const programMode = fs.FileMode(0o500)

// write makes the file appear under its name whole.
func (c *Companion) write(dir, path string) error {
	f, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return err
	}
	err = c.copyTo(f)
	if err == nil {
		err = f.Chmod(programMode)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// errDamaged refuses a companion that is not the one that was packed.
var errDamaged = errors.New("the program's file is damaged: install it again")

// copyTo writes the companion to w and checks that it is whole.
func (c *Companion) copyTo(w io.Writer) error {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), io.NewSectionReader(c.body, 0, c.body.Size())); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), c.sum[:]) {
		return errDamaged
	}
	return nil
}

// Is reports whether f has the companion's bytes and no others.
func (c *Companion) Is(f io.Reader) (bool, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return false, fmt.Errorf("comparing with the companion: %w", err)
	}
	return bytes.Equal(sum.Sum(nil), c.sum[:]), nil
}
