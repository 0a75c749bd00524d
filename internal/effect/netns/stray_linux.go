package netns

import (
	"encoding/binary"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Headers, as far as they are read.
const (
	head4   = 20
	head6   = 40
	udpHead = 8
	tcpHead = 20

	// strayBytes hold the longest of them.
	strayBytes = 60 + tcpHead
)

// stray makes a socket that sees datagrams to others than the namespace itself, and
// how the kernel refuses connections to its loopback addresses where nobody listens. No
// address of it has anybody who takes such datagrams: the kernel refuses them, and tells
// the program at once, but for those to groups, which are lost.
func (s *Sockets) stray(f *family) error {
	protocol, filter := unix.ETH_P_IP, strays4()
	if f.proto == unix.AF_INET6 {
		protocol, filter = unix.ETH_P_IPV6, strays6()
	}
	// It hears nothing before it is bound.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	s.Strays = append(s.Strays, os.NewFile(uintptr(fd), "strays"))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return err
	}
	order := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, uint16(protocol)))
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: order, Ifindex: loopbackIndex})
}

// strays4 lets the beginning of datagrams of IPv4 pass that are no later fragments, for
// neither loopback nor a resolver, and of what refuses a connection to loopback: a
// reset with the sequence number 0 answers the first packet of one.
func strays4() []unix.SockFilter {
	const loopback = 127
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 6},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: 0x1fff, Jt: 16},
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_TCP, Jt: 6},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP, Jf: 12},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 16},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: loopback, Jt: 10},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: queryPort, Jt: 8},
		{Code: unix.BPF_RET | unix.BPF_K, K: strayBytes},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 12},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: loopback, Jf: 5},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: 13},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: tcpReset, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_IND, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: strayBytes},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// tcpReset is the flag of a packet that refuses or ends a connection.
const tcpReset = 4

// strays6 is the same for IPv6; what has further headers does not pass. Whose reset it
// is, loopback's or the namespace's own, [Stray] looks at.
func strays6() []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 6},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_TCP, Jt: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP, Jf: 8},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: head6 + 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: queryPort, Jt: 6},
		{Code: unix.BPF_RET | unix.BPF_K, K: strayBytes},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: head6 + 13},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: tcpReset, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: head6 + 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: strayBytes},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// Stray is where a datagram was sent to, by its beginning, or with refused which place on
// loopback a connection was refused to.
func Stray(packet []byte) (at netip.AddrPort, refused, ok bool) {
	if len(packet) == 0 {
		return at, false, false
	}
	switch version := packet[0] >> 4; version {
	case 4:
		size := int(packet[0]&0xf) * 4
		if size < head4 || len(packet) < size {
			return at, false, false
		}
		return stray(packet[9], packet[12:16], packet[16:20], packet[size:])
	case 6:
		if len(packet) < head6 {
			return at, false, false
		}
		return stray(packet[6], packet[8:24], packet[24:40], packet[head6:])
	}
	return at, false, false
}

// stray reads what a protocol's own header says, behind the addresses.
func stray(protocol byte, from, to, head []byte) (at netip.AddrPort, refused, ok bool) {
	place := func(address, port []byte) netip.AddrPort {
		a, _ := netip.AddrFromSlice(address)
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(port))
	}
	switch {
	case protocol == unix.IPPROTO_UDP && len(head) >= udpHead:
		return place(to, head[2:]), false, true
	case protocol == unix.IPPROTO_TCP && len(head) >= tcpHead && head[13]&tcpReset != 0:
		at = place(from, head)
		return at, true, at.Addr().IsLoopback()
	}
	return at, false, false
}
