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

	// strayBytes hold the longest of them.
	strayBytes = 60 + udpHead
)

// stray makes a socket that sees datagrams to others than the namespace itself. No
// address of it has anybody who takes them: the kernel refuses them, and tells the
// program at once, but for those to groups, which are lost.
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
// neither loopback nor a resolver.
func strays4() []unix.SockFilter {
	const loopback = 127
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP, Jf: 8},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 6},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: 0x1fff, Jt: 6},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 16},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: loopback, Jt: 4},
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: queryPort, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: strayBytes},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// strays6 is the same for IPv6; what has further headers does not pass.
func strays6() []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 6},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_UDP, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: head6 + 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: queryPort, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: strayBytes},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// Stray is where a datagram was sent to, by its beginning.
func Stray(packet []byte) (to netip.AddrPort, ok bool) {
	if len(packet) == 0 {
		return to, false
	}
	switch version := packet[0] >> 4; version {
	case 4:
		size := int(packet[0]&0xf) * 4
		if size < head4 || len(packet) < size+udpHead || packet[9] != unix.IPPROTO_UDP {
			return to, false
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(packet[16:])), binary.BigEndian.Uint16(packet[size+2:])), true
	case 6:
		if len(packet) < head6+udpHead || packet[6] != unix.IPPROTO_UDP {
			return to, false
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(packet[24:])), binary.BigEndian.Uint16(packet[head6+2:])), true
	}
	return to, false
}
