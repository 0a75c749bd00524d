package daemon

import (
	"crypto/sha256"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// A program is a file that a process may be running, as it was.
type program struct {
	inode
	size              int64
	modified, changed unix.Timespec
}

func programAt(at int, path string) (program, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, path, &st, 0); err != nil {
		return program{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return program{inode{uint64(st.Dev), st.Ino}, st.Size, st.Mtim, st.Ctim}, nil
}

// programs are the files that clients may be running: those that this program is,
// and whatever has the same bytes.
type programs struct {
	mu    sync.Mutex
	known []program
	sums  [][sha256.Size]byte
}

// mostKnown bounds how many files are remembered.
const mostKnown = 16

// add takes a file to be this program.
func (p *programs) add(at int, path string) (program, error) {
	is, sum, err := summed(at, path)
	if err == nil {
		p.known, p.sums = append(p.known, is), append(p.sums, sum)
	}
	return is, err
}

// has reports whether the file of a process is this program. One that is not
// known is read, if it could be.
func (p *programs) has(at int, path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, err := programAt(at, path)
	if err != nil {
		return false
	}
	if slices.Contains(p.known, is) {
		return true
	}
	if !slices.ContainsFunc(p.known, func(k program) bool { return k.size == is.size }) {
		return false
	}
	is, sum, err := summed(at, path)
	if err != nil || !slices.Contains(p.sums, sum) {
		return false
	}
	if len(p.known) < mostKnown {
		p.known = append(p.known, is)
	}
	return true
}

// summed reads a file that does not change meanwhile.
func summed(at int, path string) (program, [sha256.Size]byte, error) {
	var sum [sha256.Size]byte
	fd, err := unix.Openat(at, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return program{}, sum, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	before, err := programAt(at, path)
	if err != nil {
		return before, sum, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return before, sum, err
	}
	h.Sum(sum[:0])
	after, err := programAt(at, path)
	if err == nil && before != after {
		err = &os.PathError{Op: "read", Path: path, Err: unix.EBUSY}
	}
	return after, sum, err
}
