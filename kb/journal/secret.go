package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"runloop.dev/rlp/internal/base/home"
)

// secretName is the file in a journal directory that holds its key.
const secretName = ".args_key"

// A secret keys the digests of arguments, so that they cannot be guessed from
// the log alone, and the sums of frames.
type secret [32]byte

// loadSecret reads the key of a journal directory, making one when there is none.
// Whoever comes first makes it, and all others see the whole of that one.
func loadSecret(dir string, disk Disk) (*secret, error) {
	path := filepath.Join(dir, secretName)
	s, err := readSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	f, err := os.CreateTemp(dir, ".args_key-*") // 0600
	if err != nil {
		return nil, fmt.Errorf("making the audit key: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var fresh secret
	rand.Read(fresh[:])
	if _, err := f.Write(fresh[:]); err != nil {
		return nil, fmt.Errorf("making the audit key: %w", err)
	}
	if err := disk.SyncFile(f); err != nil {
		return nil, fmt.Errorf("making the audit key: %w", err)
	}
	if err := renameNew(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the audit key: %w", err)
	}
	return readSecret(path)
}

func readSecret(path string) (*secret, error) {
	data, err := home.ReadPrivate(path, int64(len(secret{})))
	if err == nil && len(data) != len(secret{}) {
		err = &home.ModeError{Path: path, Why: fmt.Sprintf("must have %d bytes", len(secret{}))}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the audit key: %w", err)
	}
	return (*secret)(data), nil
}

// KeyID tells the key of a journal directory from others, and nothing else of it.
func KeyID(dir string) ([]byte, error) {
	s, err := readSecret(filepath.Join(dir, secretName))
	if err != nil {
		return nil, err
	}
	h := s.hasher()
	h.WriteString("journal key\x00")
	return h.Sum(nil), nil
}

// hasher returns a keyed BLAKE3.
func (s *secret) hasher() *blake3.Hasher {
	h, err := blake3.NewKeyed(s[:])
	if err != nil {
		panic(err) // the key has the one length that there is
	}
	return h
}

// seed is the sums' seed for one run.
func (s *secret) seed(run string) uint64 { return seedOf(s.hasher(), run) }

// seedOf is the sums' seed for one run, made by a keyed hasher.
func seedOf(h *blake3.Hasher, run string) uint64 {
	h.Reset()
	h.WriteString("journal sum\x00")
	h.WriteString(run)
	var out [32]byte
	return binary.LittleEndian.Uint64(h.Sum(out[:0]))
}

// resultKey is the key of the digests of results.
func (s *secret) resultKey() []byte {
	h := s.hasher()
	h.WriteString("journal result\x00")
	return h.Sum(nil)
}

// hashArgs returns the keyed digest of op and args, each length-prefixed.
func hashArgs(h *blake3.Hasher, op string, args ...[]byte) (out [32]byte) {
	h.Reset()
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(op)))
	h.Write(n[:])
	h.WriteString(op)
	for _, a := range args {
		binary.LittleEndian.PutUint64(n[:], uint64(len(a)))
		h.Write(n[:])
		h.Write(a)
	}
	h.Sum(out[:0])
	return out
}
