package jail

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/wasi"
)

// What other systems name or number otherwise.
const (
	oDsync    = unix.O_DSYNC
	utimeNow  = unix.UTIME_NOW
	utimeOmit = unix.UTIME_OMIT
)

// allocate makes sure that the n bytes from off are there and have room.
func allocate(fd int, off, n int64) error { return unix.Fallocate(fd, 0, off, n) }

func syncData(fd int) error { return unix.Fdatasync(fd) }

// setTimesOf sets the times of the open fd: futimens, which is utimensat
// without a path.
func setTimesOf(fd int, t wasi.Times) error {
	ts := timespecs(t)
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
