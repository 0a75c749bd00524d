package netns

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Sockets are what the process outside serves: they belong to the namespace that
// they were made in, whoever holds them.
type Sockets struct {
	// Redirected says that a connection's destination is asked of the kernel by
	// [Original], for the accepting socket does not have it.
	Redirected bool
	// Streams are listening TCP sockets, for every connection that a program makes.
	Streams []*os.File
	// Queries are UDP sockets, for queries to port 53 of any address, which comes with
	// each, and must be given back with the answer.
	Queries []*os.File
	// Strays are sockets that see the beginning of datagrams that go nowhere, as [Stray]
	// reads it.
	Strays []*os.File
	// Inward are TCP sockets of each family in turn that are not connected: whoever has
	// one connects it to a program that listens on a loopback address of the namespace.
	Inward []*os.File
	// IPv6 says that the namespace has it.
	IPv6 bool
}

// backlog is how many connections wait to be accepted.
const backlog = 4096

func (s *Sockets) listen(list []family, ports []uint16) error {
	for i := range list {
		f := &list[i]
		s.IPv6 = s.IPv6 || f.proto == unix.AF_INET6
		everywhere, loopback := f.any(), f.local()
		if err := s.stream(f, everywhere(interceptPort)); err != nil {
			return fmt.Errorf("listening for connections: %w", err)
		}
		if err := s.query(f, everywhere(queryPort)); err != nil {
			return fmt.Errorf("listening for queries: %w", err)
		}
		if err := s.stray(f); err != nil {
			return fmt.Errorf("looking for datagrams that go nowhere: %w", err)
		}
		for _, p := range ports {
			if p == interceptPort {
				continue // the first socket has it
			}
			if err := s.stream(f, loopback(p)); err != nil {
				return fmt.Errorf("listening on port %d of the loopback address: %w", p, err)
			}
		}
	}
	return nil
}

// MostInward is how many connections into a namespace there are at once, of each family.
const MostInward = 16

func (s *Sockets) inward(list []family) error {
	for range MostInward {
		for i := range list {
			fd, err := list[i].socket(unix.SOCK_STREAM)
			if err != nil {
				return fmt.Errorf("making a socket that connects to a program: %w", err)
			}
			s.Inward = append(s.Inward, os.NewFile(uintptr(fd), "inward"))
		}
	}
	return nil
}

func (f *family) any() func(port uint16) unix.Sockaddr {
	if f.proto == unix.AF_INET {
		return func(port uint16) unix.Sockaddr { return &unix.SockaddrInet4{Port: int(port)} }
	}
	return func(port uint16) unix.Sockaddr { return &unix.SockaddrInet6{Port: int(port)} }
}

func (f *family) local() func(port uint16) unix.Sockaddr {
	if f.proto == unix.AF_INET {
		return func(port uint16) unix.Sockaddr {
			return &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
		}
	}
	return func(port uint16) unix.Sockaddr { return &unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}} }
}

// stream makes a listening socket that accepts connections to addresses that no
// interface has.
func (s *Sockets) stream(f *family, at unix.Sockaddr) error {
	fd, err := f.socket(unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	s.Streams = append(s.Streams, os.NewFile(uintptr(fd), "connections"))
	if err := f.set(fd, unix.IP_TRANSPARENT, unix.IPV6_TRANSPARENT); err != nil {
		return err
	}
	if err := unix.Bind(fd, at); err != nil {
		return err
	}
	return unix.Listen(fd, backlog)
}

func (s *Sockets) query(f *family, at unix.Sockaddr) error {
	fd, err := f.socket(unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	s.Queries = append(s.Queries, os.NewFile(uintptr(fd), "queries"))
	if err := f.set(fd, unix.IP_PKTINFO, unix.IPV6_RECVPKTINFO); err != nil {
		return err
	}
	if err := f.set(fd, unix.IP_TRANSPARENT, unix.IPV6_TRANSPARENT); err != nil { // answers come from where was asked
		return err
	}
	return unix.Bind(fd, at)
}

func (f *family) socket(kind int) (int, error) {
	fd, err := unix.Socket(int(f.proto), kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil || f.proto == unix.AF_INET {
		return fd, err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (f *family) set(fd, option4, option6 int) error {
	if f.proto == unix.AF_INET {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, option4, 1)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, option6, 1)
}

// Close closes all of them.
func (s *Sockets) Close() {
	for _, f := range s.files() {
		_ = f.Close()
	}
}

func (s *Sockets) files() []*os.File {
	return slices.Concat(s.Streams, s.Queries, s.Strays, s.Inward)
}

// mostSockets is how many the kernel passes in one message.
const mostSockets = 253

// The message that carries them: a version, what is said of them, how many of
// them are streams, how many queries and how many strays.
const (
	messageVersion = 4
	messageSize    = 5

	saysRedirected = 1 << 0
	saysIPv6       = 1 << 1
)

var errMessage = errors.New("receiving the sockets of a network: it is no such message")

// Send hands s over the Unix socket fd.
func (s *Sockets) Send(fd int) error {
	files := s.files()
	if len(files) > mostSockets {
		return fmt.Errorf("handing over the sockets of a network: %d, and at most %d go at once", len(files), mostSockets)
	}
	said := byte(0)
	if s.Redirected {
		said |= saysRedirected
	}
	if s.IPv6 {
		said |= saysIPv6
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	message := []byte{messageVersion, said, byte(len(s.Streams)), byte(len(s.Queries)), byte(len(s.Strays))}
	err := unix.Sendmsg(fd, message, unix.UnixRights(fds...), nil, 0)
	if err != nil {
		return fmt.Errorf("handing over the sockets of a network: %w", err)
	}
	return nil
}

// Receive takes what Send hands over. It waits for it, unless fd does not block.
func Receive(fd int) (*Sockets, error) {
	b, oob := make([]byte, messageSize+1), make([]byte, unix.CmsgSpace(4*mostSockets))
	n, m, flags, _, err := unix.Recvmsg(fd, b, oob, unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		n, m, flags, _, err = unix.Recvmsg(fd, b, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("receiving the sockets of a network: %w", err)
	}
	fds := rights(oob[:m])
	s := &Sockets{}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		switch {
		case n == messageSize && i < int(b[2]):
			s.Streams = append(s.Streams, f)
		case n == messageSize && i < int(b[2])+int(b[3]):
			s.Queries = append(s.Queries, f)
		case n == messageSize && i < int(b[2])+int(b[3])+int(b[4]):
			s.Strays = append(s.Strays, f)
		default:
			s.Inward = append(s.Inward, f)
		}
	}
	if n != messageSize || b[0] != messageVersion || flags&unix.MSG_CTRUNC != 0 || len(s.Streams) == 0 ||
		len(s.Streams) != int(b[2]) || len(s.Queries) == 0 || len(s.Queries) != int(b[3]) || len(s.Strays) == 0 ||
		len(s.Strays) != int(b[4]) {
		s.Close()
		return nil, errMessage
	}
	s.Redirected, s.IPv6 = b[1]&saysRedirected != 0, b[1]&saysIPv6 != 0
	return s, nil
}

// rights are the descriptors that came with a message.
func rights(oob []byte) (fds []int) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range list {
		if got, err := unix.ParseUnixRights(&list[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}
