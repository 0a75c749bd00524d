//go:build linux || darwin

package jail

import (
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/wasi"
)

// A file is one open regular file or directory. Every operation but Close asks
// first whether the scope that it was opened under still holds. It belongs to
// one guest and is not for use from several goroutines.
type file struct {
	fd      int // -1 once closed
	dir     bool
	told    bool // the gate has been told that a scope is gone
	gate    Gate
	path    string
	permits [2]gate.Permit // for caps.Read and caps.Write; zero: not opened for it
	list    lister
}

var _ wasi.File = (*file)(nil)

// may reports whether f was opened for mode and its scope still holds.
func (f *file) may(op Op, mode caps.Mode) wasi.Errno {
	if f.fd < 0 || !f.permits[mode].OK() {
		return wasi.EBADF
	}
	if f.gate.Holds(f.permits[mode], mode) {
		return 0
	}
	if !f.told {
		f.told = true
		f.gate.Revoked(op, mode, f.path)
	}
	return wasi.EACCES
}

// mayAny is may for what neither reads nor writes content: any mode will do
// that f was opened for, read before write.
func (f *file) mayAny(op Op) wasi.Errno {
	if f.permits[caps.Read].OK() {
		return f.may(op, caps.Read)
	}
	return f.may(op, caps.Write)
}

// Stat is fd_filestat_get.
func (f *file) Stat() (st wasi.Stat, e wasi.Errno) {
	if e = f.mayAny(FdFilestatGet); e != 0 {
		return st, e
	}
	return st, errnoOf(statOf(f.fd, &st))
}

// Read reads at the offset. A directory is EISDIR.
func (f *file) Read(p []byte) (int, wasi.Errno) {
	if e := f.may(FdRead, caps.Read); e != 0 {
		return 0, e
	}
	if f.dir { // which not every file system says
		return 0, wasi.EISDIR
	}
	n, err := retry(func() (int, error) { return unix.Read(f.fd, p) })
	return max(n, 0), errnoOf(err)
}

// Pread reads at off.
func (f *file) Pread(p []byte, off int64) (int, wasi.Errno) {
	if e := f.may(FdPread, caps.Read); e != 0 {
		return 0, e
	}
	if f.dir { // which not every file system says
		return 0, wasi.EISDIR
	}
	n, err := retry(func() (int, error) { return unix.Pread(f.fd, p, off) })
	return max(n, 0), errnoOf(err)
}

// Write writes at the offset, or at the end of a file opened to append.
func (f *file) Write(p []byte) (int, wasi.Errno) {
	if e := f.may(FdWrite, caps.Write); e != 0 {
		return 0, e
	}
	n, err := retry(func() (int, error) { return unix.Write(f.fd, p) })
	return max(n, 0), errnoOf(err)
}

// Pwrite writes at off; Linux appends all the same where append is on.
func (f *file) Pwrite(p []byte, off int64) (int, wasi.Errno) {
	if e := f.may(FdPwrite, caps.Write); e != 0 {
		return 0, e
	}
	n, err := retry(func() (int, error) { return unix.Pwrite(f.fd, p, off) })
	return max(n, 0), errnoOf(err)
}

// Lseek moves the offset; whence is 0 from the start, 1 from here, 2 from the
// end. The offset of a directory is not the guest's to move: EBADF.
func (f *file) Lseek(off int64, whence int) (int64, wasi.Errno) {
	if e := f.mayAny(FdSeek); e != 0 {
		return 0, e
	}
	switch {
	case f.dir:
		return 0, wasi.EBADF
	case whence > 2: // which some systems know; what is below 0 none does
		return 0, wasi.EINVAL
	}
	n, err := unix.Seek(f.fd, off, whence)
	return max(n, 0), errnoOf(err)
}

// SetSize cuts the file or extends it by a hole.
func (f *file) SetSize(n int64) wasi.Errno {
	if e := f.may(FdFilestatSetSize, caps.Write); e != 0 {
		return e
	}
	_, err := retry(func() (int, error) { return 0, unix.Ftruncate(f.fd, n) })
	return errnoOf(err)
}

// Allocate makes room for the n bytes from off, where the system can.
func (f *file) Allocate(off, n int64) wasi.Errno {
	if e := f.may(FdAllocate, caps.Write); e != 0 {
		return e
	}
	_, err := retry(func() (int, error) { return 0, allocate(f.fd, off, n) })
	return errnoOf(err)
}

// SetTimes needs write. A file that was not opened for writing, as a directory
// never is, asks the gate each time.
func (f *file) SetTimes(t wasi.Times) wasi.Errno {
	if f.fd >= 0 && !f.permits[caps.Write].OK() {
		if !f.gate.Admit(FdFilestatSetTimes, caps.Write, f.path).OK() {
			return wasi.EACCES
		}
	} else if e := f.may(FdFilestatSetTimes, caps.Write); e != 0 {
		return e
	}
	return errnoOf(setTimesOf(f.fd, t))
}

// Sync waits until the content, and unless dataOnly the rest, is on the disk.
func (f *file) Sync(dataOnly bool) wasi.Errno {
	op, sync := FdSync, unix.Fsync
	if dataOnly {
		op, sync = FdDatasync, syncData
	}
	if e := f.mayAny(op); e != 0 {
		return e
	}
	_, err := retry(func() (int, error) { return 0, sync(f.fd) })
	return errnoOf(err)
}

// SetAppend turns appending on or off. It allows no write that was not allowed.
func (f *file) SetAppend(on bool) wasi.Errno {
	if e := f.mayAny(FdFdstatSetFlags); e != 0 {
		return e
	}
	flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFL, 0)
	if err != nil {
		return errnoOf(err)
	}
	flags &^= unix.O_APPEND
	if on {
		flags |= unix.O_APPEND
	}
	_, err = unix.FcntlInt(uintptr(f.fd), unix.F_SETFL, flags)
	return errnoOf(err)
}

// Readdir lists the directory; see [wasi.File]. A position stays the same
// entry while a guest reads on, whatever is added or removed meanwhile.
func (f *file) Readdir(cookie uint64, n int) ([]wasi.Dirent, wasi.Errno) {
	if e := f.may(FdReaddir, caps.Read); e != 0 {
		return nil, e
	}
	if !f.dir {
		return nil, wasi.ENOTDIR
	}
	entries, err := f.list.read(f.fd, cookie, max(n, 0))
	return entries, errnoOf(err)
}

// Close gives the descriptor back, whatever has been revoked.
func (f *file) Close() wasi.Errno {
	fd := f.fd
	f.fd = -1 // of which closing says EBADF
	err := unix.Close(fd)
	if err == unix.EINTR { // the descriptor is gone all the same
		err = nil
	}
	return errnoOf(err)
}
