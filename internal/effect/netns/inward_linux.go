package netns

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Disconnect ends the connection of one of [Sockets.Inward], whoever still holds it, and
// leaves a socket that can be connected again.
func Disconnect(fd int) error {
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{}); err != nil {
		return err
	}
	none := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)),
		unsafe.Sizeof(none)); errno != 0 {
		return errno
	}
	return nil
}
