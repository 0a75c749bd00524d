package access

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/egress"
)

// overflowUID is how the kernel writes users whom a container does not have,
// all of them alike.
const overflowUID = 65534

// known is a user of whom the kernel said the number.
func known(uid uint32) (int, peerState) {
	if uid == overflowUID {
		return 0, peerUnknown
	}
	return int(uid), peerKnown
}

// unixPeer is who connected to a Unix socket.
func unixPeer(c *net.UnixConn) (int, peerState) {
	uid, state := 0, peerUnknown
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, peerUnknown
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid, state = known(cred.Uid)
		}
	})
	return uid, state
}

// tcpPeer is whose socket is at the other end of a connection within this host.
//
// The kernel says a user of root for a socket that nobody holds any more, so
// that only one that is connected and held by a process counts. That our own end
// is connected still, once it was asked, means that the other one is the socket
// that was found, and not one which got its port since.
func tcpPeer(c *net.TCPConn, local, remote netip.AddrPort) (int, peerState) {
	found, err := diagSocket(remote, local)
	if err != nil {
		return 0, peerUnknown
	}
	return found.believed(established(c))
}

// tcpEstablished is the state of a socket that is connected both ways.
const tcpEstablished = 1

// A socketInfo is what the kernel says of a TCP socket.
type socketInfo struct {
	state      uint8
	uid, inode uint32
	// agents says that rlp made the connection for an agent: it is nobody's word but
	// that agent's.
	agents bool
}

// believed is whose socket it is, if a process holds it, and it is connected as
// our end of it still is.
func (s socketInfo) believed(connected bool) (int, peerState) {
	if s.agents || s.inode == 0 || s.state != tcpEstablished || !connected {
		return 0, peerUnknown
	}
	return known(s.uid)
}

var (
	// errNoDiag says that the kernel cannot be asked for one socket here.
	errNoDiag = errors.New("sockets cannot be asked for")
	// errNoSocket says that there is no such socket.
	errNoSocket = errors.New("no such socket")
)

func established(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		ok = err == nil && info.State == tcpEstablished
	})
	return err == nil && ok
}

// The layout of inet_diag's request and answer: headers, ports and addresses in
// network order, the rest in the machine's.
const (
	diagRequestLen = unix.SizeofNlMsghdr + 56
	diagAnswerLen  = unix.SizeofNlMsghdr + 72
	sockDiagByFam  = 20
	diagTOS        = 5 // attributes: the type of service, of IPv4 and of IPv6
	diagClass      = 6
)

// diagSocket asks for the one socket whose own end is local.
func diagSocket(local, remote netip.AddrPort) (socketInfo, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return socketInfo{}, errNoDiag
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	if err := unix.Sendto(fd, diagRequest(local, remote), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socketInfo{}, errNoDiag
	}
	answer := make([]byte, 4096)
	n, from, err := unix.Recvfrom(fd, answer, 0)
	if nl, ok := from.(*unix.SockaddrNetlink); err != nil || !ok || nl.Pid != 0 {
		return socketInfo{}, errNoDiag
	}
	return readDiag(answer[:n], local, remote)
}

func diagRequest(local, remote netip.AddrPort) []byte {
	b := make([]byte, diagRequestLen)
	native := binary.NativeEndian
	native.PutUint32(b[0:], uint32(len(b)))
	native.PutUint16(b[4:], sockDiagByFam)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST)
	body := b[unix.SizeofNlMsghdr:]
	body[0] = unix.AF_INET
	if local.Addr().Is6() {
		body[0] = unix.AF_INET6
	}
	body[1] = unix.IPPROTO_TCP
	body[2] = 1<<(diagTOS-1) | 1<<(diagClass-1)
	native.PutUint32(body[4:], 1<<tcpEstablished)
	putEnds(body[8:], local, remote)
	native.PutUint32(body[8+40:], ^uint32(0)) // no cookie: INET_DIAG_NOCOOKIE
	native.PutUint32(body[8+44:], ^uint32(0))
	return b
}

// putEnds writes the ports and addresses of a socket.
func putEnds(id []byte, local, remote netip.AddrPort) {
	binary.BigEndian.PutUint16(id[0:], local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	copy(id[4:20], local.Addr().AsSlice())
	copy(id[20:36], remote.Addr().AsSlice())
}

// readDiag reads the answer, which must be of the socket that was asked for: the
// kernel finds a listener, too, where nothing is connected.
func readDiag(b []byte, local, remote netip.AddrPort) (socketInfo, error) {
	native := binary.NativeEndian
	if len(b) < unix.SizeofNlMsghdr+4 {
		return socketInfo{}, errNoDiag
	}
	switch native.Uint16(b[4:]) {
	case unix.NLMSG_ERROR:
		if code := -int32(native.Uint32(b[unix.SizeofNlMsghdr:])); code == int32(unix.ENOENT) {
			return socketInfo{}, errNoSocket
		}
		return socketInfo{}, errNoDiag
	case sockDiagByFam:
	default:
		return socketInfo{}, errNoDiag
	}
	if len(b) < diagAnswerLen {
		return socketInfo{}, errNoDiag
	}
	body := b[unix.SizeofNlMsghdr:]
	id, tail := body[4:52], body[52:]
	if endOf(id[0:], id[4:20], body[0]) != local || endOf(id[2:], id[20:36], body[0]) != remote {
		return socketInfo{}, errNoSocket
	}
	return socketInfo{
		state: body[1], uid: native.Uint32(tail[12:]), inode: native.Uint32(tail[16:]), agents: isAgents(b[diagAnswerLen:]),
	}, nil
}

// isAgents reads among the attributes of an answer whether rlp marked the socket.
func isAgents(attributes []byte) bool {
	native := binary.NativeEndian
	for len(attributes) >= unix.SizeofNlAttr {
		n, kind := int(native.Uint16(attributes)), native.Uint16(attributes[2:])
		if n < unix.SizeofNlAttr || n > len(attributes) {
			return true // nothing that is known
		}
		value := attributes[unix.SizeofNlAttr:n]
		if (kind == diagTOS || kind == diagClass) && len(value) > 0 && value[0] == egress.AgentsMark {
			return true
		}
		attributes = attributes[min((n+3)&^3, len(attributes)):]
	}
	return false
}

func endOf(port, addr []byte, family byte) netip.AddrPort {
	a := netip.AddrFrom16([16]byte(addr[:16])).Unmap()
	if family == unix.AF_INET {
		a = netip.AddrFrom4([4]byte(addr[:4]))
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(port))
}
