package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	oNoFollow = unix.O_NOFOLLOW
	oNonBlock = unix.O_NONBLOCK
)

// allocate makes the bytes [from, to) of f exist, zeroed and with their blocks
// reserved, so that a later store into a mapping of them finds room.
func allocate(f *os.File, from, to int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, from, to-from)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return writeZeros(f, make([]byte, zeroChunk), from, to)
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}

// prefault makes the pages of p writable now, so that the writer does not pay for it.
func prefault(p []byte) {
	unix.Madvise(p, unix.MADV_POPULATE_WRITE) //nolint:errcheck // a hint: what is not faulted in now is later
}

// onePageAtATime keeps neighbours of a page that is touched out of it: they would
// be written with it.
func onePageAtATime(p []byte) {
	unix.Madvise(p, unix.MADV_RANDOM) //nolint:errcheck // a hint
}

// renameNew renames from to to, which must not exist.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNew(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// syncData makes what was written to f survive the loss of power.
func syncData(f *os.File) error { return os.NewSyscallError("fdatasync", unix.Fdatasync(int(f.Fd()))) }
