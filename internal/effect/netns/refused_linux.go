package netns

import (
	"encoding/binary"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// What says that a datagram reaches nobody, in both families.
const (
	unreachable4 = 3 // ICMP_DEST_UNREACH
	unreachable6 = 1 // ICMPV6_DEST_UNREACH
	icmpHead     = 8
	udpHead      = 8
)

// Options of raw sockets, which x/sys has no names for.
const (
	solRaw       = 255
	icmpFilter   = 1
	icmpv6Filter = 1
)

// refusal makes a socket that hears which datagrams the kernel refuses: no address of
// the namespace has anybody who takes them, and the program is told so at once.
func (s *Sockets) refusal(f *family) error {
	fd, err := f.socket(unix.SOCK_RAW)
	if err != nil {
		return err
	}
	s.Refusals = append(s.Refusals, os.NewFile(uintptr(fd), "refusals"))
	if f.proto == unix.AF_INET {
		return unix.SetsockoptInt(fd, solRaw, icmpFilter, ^(1 << unreachable4)) // blocks what has its bit
	}
	blocks := [32]byte{}
	for i := range blocks {
		blocks[i] = 0xff
	}
	words := binary.NativeEndian.AppendUint32(nil, ^uint32(1<<unreachable6))
	copy(blocks[:], words)
	return unix.SetsockoptString(fd, unix.IPPROTO_ICMPV6, icmpv6Filter, string(blocks[:]))
}

// protocol is that of a socket of a kind; 0 is the usual one.
func (f *family) protocol(kind int) int {
	switch {
	case kind != unix.SOCK_RAW:
		return 0
	case f.proto == unix.AF_INET:
		return unix.IPPROTO_ICMP
	}
	return unix.IPPROTO_ICMPV6
}

// Refused is where a datagram was sent to that the kernel refused, by what it says of
// that: a message of ICMP, with the beginning of the datagram in it. In IPv4 such a
// message may have its own header before it.
func Refused(message []byte) (to netip.AddrPort, ok bool) {
	if len(message) > 0 && message[0]>>4 == 4 {
		message = message[min(len(message), int(message[0]&0xf)*4):]
	}
	if len(message) < icmpHead+1 {
		return to, false
	}
	kind, packet := message[0], message[icmpHead:]
	switch version := packet[0] >> 4; {
	case version == 4 && kind == unreachable4:
		size := int(packet[0]&0xf) * 4
		if size < 20 || len(packet) < size+udpHead || packet[9] != unix.IPPROTO_UDP {
			return to, false
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(packet[16:])), binary.BigEndian.Uint16(packet[size+2:])), true
	case version == 6 && kind == unreachable6:
		const size = 40
		if len(packet) < size+udpHead || packet[6] != unix.IPPROTO_UDP {
			return to, false
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(packet[24:])), binary.BigEndian.Uint16(packet[size+2:])), true
	}
	return to, false
}
