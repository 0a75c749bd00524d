//go:build linux || darwin

package jail

import (
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/wasi"
)

// errnoOf is the guest's number for a system error; what has none is EIO, so
// that a guest learns nothing that WASI has no word for.
func errnoOf(err error) wasi.Errno {
	if err == nil {
		return 0
	}
	sys, _ := err.(unix.Errno) // what this package calls wraps nothing; no number is EIO
	switch sys {
	case unix.EACCES:
		return wasi.EACCES
	case unix.EPERM:
		return wasi.EPERM
	case unix.ENOENT:
		return wasi.ENOENT
	case unix.EEXIST:
		return wasi.EEXIST
	case unix.ENOTDIR:
		return wasi.ENOTDIR
	case unix.EISDIR:
		return wasi.EISDIR
	case unix.EINVAL:
		return wasi.EINVAL
	case unix.ELOOP:
		return wasi.ELOOP
	case unix.ENOTEMPTY:
		return wasi.ENOTEMPTY
	case unix.EXDEV:
		return wasi.EXDEV
	}
	return rareErrno(sys)
}

// rareErrno is the rest of errnoOf: what a healthy file system seldom says.
func rareErrno(sys unix.Errno) wasi.Errno {
	switch sys {
	case unix.EAGAIN:
		return wasi.EAGAIN
	case unix.EBADF:
		return wasi.EBADF
	case unix.EBUSY:
		return wasi.EBUSY
	case unix.EDQUOT:
		return wasi.EDQUOT
	case unix.EFBIG:
		return wasi.EFBIG
	case unix.EINTR:
		return wasi.EINTR
	case unix.EMFILE:
		return wasi.EMFILE
	case unix.EMLINK:
		return wasi.EMLINK
	case unix.ENAMETOOLONG:
		return wasi.ENAMETOOLONG
	case unix.ENFILE:
		return wasi.ENFILE
	case unix.ENOMEM:
		return wasi.ENOMEM
	case unix.ENOSPC:
		return wasi.ENOSPC
	case unix.EOVERFLOW:
		return wasi.EOVERFLOW
	case unix.EROFS:
		return wasi.EROFS
	case unix.ESPIPE:
		return wasi.ESPIPE
	case unix.ETXTBSY:
		return wasi.ETXTBSY
	case unix.ENXIO, unix.ENODEV:
		return wasi.EACCES // a FIFO without a reader, a device without a driver: never opened
	}
	if sys == unix.ENOSYS || sys == unix.ENOTSUP || sys == unix.EOPNOTSUPP { // two names of one number on Linux
		return wasi.ENOTSUP
	}
	return wasi.EIO
}
