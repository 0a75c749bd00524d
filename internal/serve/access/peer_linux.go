package access

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
	if errors.Is(err, errNoDiag) {
		found, err = procSocket(os.Open, remote, local)
	}
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
}

// believed is whose socket it is, if a process holds it, and it is connected as
// our end of it still is.
func (s socketInfo) believed(connected bool) (int, peerState) {
	if s.inode == 0 || s.state != tcpEstablished || !connected {
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
	return socketInfo{state: body[1], uid: native.Uint32(tail[12:]), inode: native.Uint32(tail[16:])}, nil
}

func endOf(port, addr []byte, family byte) netip.AddrPort {
	a := netip.AddrFrom16([16]byte(addr[:16])).Unmap()
	if family == unix.AF_INET {
		a = netip.AddrFrom4([4]byte(addr[:4]))
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(port))
}

// maxTable bounds what is read of a table of sockets.
const maxTable = 32 << 20

// procSocket looks the same up in the tables of /proc.
func procSocket(open func(string) (*os.File, error), local, remote netip.AddrPort) (socketInfo, error) {
	files := []string{"/proc/self/net/tcp6"}
	if local.Addr().Is4() { // a socket of either family may have the address
		files = append(files, "/proc/self/net/tcp")
	}
	for _, name := range files {
		f, err := open(name)
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(f, maxTable))
		_ = f.Close()
		if err != nil {
			continue
		}
		if found, ok := inTable(string(data), local, remote); ok {
			return found, nil
		}
	}
	return socketInfo{}, errNoSocket
}

// inTable finds the line of a socket in the form of /proc/net/tcp.
func inTable(table string, local, remote netip.AddrPort) (socketInfo, bool) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 || procEnd(f[1]) != local || procEnd(f[2]) != remote {
			continue
		}
		state, err1 := strconv.ParseUint(f[3], 16, 8)
		uid, err2 := strconv.ParseUint(f[7], 10, 32)
		inode, err3 := strconv.ParseUint(f[9], 10, 32)
		if errors.Join(err1, err2, err3) != nil {
			return socketInfo{}, false
		}
		return socketInfo{uint8(state), uint32(uid), uint32(inode)}, true
	}
	return socketInfo{}, false
}

// procEnd reads "0100007F:1F90": words of four bytes in the machine's order.
func procEnd(s string) netip.AddrPort {
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	a, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(n))
}
