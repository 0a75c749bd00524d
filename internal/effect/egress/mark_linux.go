package egress

import (
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// marked marks a socket that is about to connect to an address of this host.
func marked(network, address string, c syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if to := at.Addr().Unmap(); err != nil || !to.IsLoopback() && !to.IsUnspecified() { // which leads to this host, too
		return err
	}
	level, option := unix.IPPROTO_IP, unix.IP_TOS
	if network == "tcp6" {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	set := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, AgentsMark) })
	if set != nil {
		return set
	}
	return err
}
