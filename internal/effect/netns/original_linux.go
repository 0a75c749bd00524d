package netns

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Original is where the connection fd was to go before its destination was
// translated. It is an error that wraps ENOENT where that never happened.
func Original(fd int, v6 bool) (netip.AddrPort, error) {
	if v6 {
		var a unix.RawSockaddrInet6
		if err := original(fd, unix.IPPROTO_IPV6, unsafe.Pointer(&a), unsafe.Sizeof(a)); err != nil {
			return netip.AddrPort{}, err
		}
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), networkOrder(a.Port)), nil
	}
	var a unix.RawSockaddrInet4
	if err := original(fd, unix.IPPROTO_IP, unsafe.Pointer(&a), unsafe.Sizeof(a)); err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), networkOrder(a.Port)), nil
}

// networkOrder is a port as the kernel holds it, in ours.
func networkOrder(port uint16) uint16 {
	return binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, port))
}

func original(fd, level int, to unsafe.Pointer, size uintptr) error {
	n := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), unix.SO_ORIGINAL_DST,
		uintptr(to), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
