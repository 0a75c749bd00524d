//go:build unix && !linux

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	oNoFollow = unix.O_NOFOLLOW
	oNonBlock = unix.O_NONBLOCK
)

func allocate(f *os.File, from, to int64) error {
	return writeZeros(f, make([]byte, zeroChunk), from, to)
}

func prefault([]byte) {}

func onePageAtATime([]byte) {}

func renameNew(from, to string) error { return linkNew(from, to) }

func syncData(f *os.File) error { return f.Sync() }
