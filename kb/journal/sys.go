package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// writeZeros writes zeros, a buffer of them at a time, to f from from to to.
func writeZeros(f *os.File, zeros []byte, from, to int64) error {
	for from < to {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

// linkNew renames from to to, which must not exist, by way of a second link.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// lockWriter takes the writer's lock of a file that nobody else can know yet.
func lockWriter(f *os.File) error {
	ok, err := flock(f, unix.LOCK_EX)
	if err == nil && !ok {
		err = errors.New("someone has locked a file that was just made")
	}
	return err
}

// writerGone reports whether no writer holds f. Askers do not disturb each
// other, and once true it stays true. The answer is remembered in f as a
// shared lock until f is closed.
func writerGone(f *os.File) (bool, error) { return flock(f, unix.LOCK_SH) }

func flock(f *os.File, how int) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, unix.EINTR):
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

const (
	pageSize    = 1 << 16 // a multiple of the page size of every system that this runs on
	firstChunk  = 64 << 10
	maxChunk    = 4 << 20
	windowBytes = 64 << 20
	zeroChunk   = 256 << 10
)
