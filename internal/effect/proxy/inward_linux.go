package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/netns"
)

// Published is the name of the place that a port of the host leads to: the program
// itself. Nothing that the program connects to is called so.
const Published = "publish.rlp"

// patience is how long a program may take to accept a connection, in milliseconds.
const patience = 10_000

// inward are the sockets of one network, by which its program is connected to, of IPv4
// and of IPv6. They were made in that network, which is why they are used again.
type inward [2]chan int

// take takes them.
func (in *inward) take(sockets *netns.Sockets) error {
	*in = inward{make(chan int, len(sockets.Inward)), make(chan int, len(sockets.Inward))}
	for _, f := range sockets.Inward {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("taking a socket: %w", err)
		}
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			return errors.Join(fmt.Errorf("taking a socket: %w", err), unix.Close(fd))
		}
		if domain == unix.AF_INET {
			in[0] <- fd
		} else {
			in[1] <- fd
		}
	}
	return nil
}

func (in *inward) close() {
	for _, pool := range in {
		for len(pool) > 0 {
			_ = unix.Close(<-pool)
		}
	}
}

var errFull = errors.New("as many connections to the program are open as there can be")

// connect connects to a port of the program. Whoever has the connection gives it back.
func (in *inward) connect(port int) (up net.Conn, giveBack func(), err error) {
	for i, at := range []unix.Sockaddr{
		&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}},
	} {
		var fd int
		select {
		case fd = <-in[i]:
		default:
			err = cmp.Or(err, errFull)
			continue
		}
		giveBack = func() {
			if netns.Disconnect(fd) != nil {
				_ = unix.Close(fd)
				return
			}
			in[i] <- fd
		}
		failed := connectTo(fd, at)
		if failed == nil {
			if up, failed = connOf(fd); failed == nil {
				return up, giveBack, nil
			}
		}
		giveBack()
		err = cmp.Or(err, failed)
	}
	return nil, nil, err
}

// connectTo connects fd, which does not block.
func connectTo(fd int, at unix.Sockaddr) error {
	err := unix.Connect(fd, at)
	if !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(ready, patience)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(ready, patience)
	}
	if err != nil || n == 0 {
		return cmp.Or(err, error(unix.ETIMEDOUT))
	}
	failed, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && failed != 0 {
		err = unix.Errno(failed)
	}
	return err
}

// connOf is the connection of fd, which stays open when that is closed.
func connOf(fd int) (net.Conn, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(own), "inward")
	defer f.Close()
	return net.FileConn(f)
}

// Listeners are ports of the host that lead to a program.
type Listeners []*net.TCPListener

// Listen listens at a port of the host's loopback addresses alone, and on both, so that
// nobody else is asked in the place of the program.
func Listen(port uint16) (list Listeners, err error) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(at), Port: int(port)})
		switch {
		case err == nil:
			list = append(list, l)
		case len(list) > 0 && (errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)): // no IPv6 here
		default:
			list.Close()
			return nil, err
		}
	}
	return list, nil
}

// Close closes them.
func (list Listeners) Close() {
	for _, l := range list {
		_ = l.Close()
	}
}

// enter serves a connection to a published port.
func (s *Server) enter(c *net.TCPConn) {
	stop := context.AfterFunc(s.ctx, func() { reset(c) })
	defer stop()
	defer reset(c) // which is nothing where it ended well
	k := &conn{s: s, c: c, began: s.cfg.Now()}
	port := c.LocalAddr().(*net.TCPAddr).Port
	k.host = Published + ":" + strconv.Itoa(port)
	t := Target{Way: Inward, Host: k.host}
	ctx, over := context.WithCancel(s.ctx)
	defer over()
	g, err := s.cfg.Policy.Decide(ctx, t)
	if err != nil {
		return
	}
	ctx, end := either(g.Context, ctx)
	defer end()
	up, giveBack, err := s.inward.connect(port)
	if err != nil {
		s.cfg.Policy.Done(t, g, k.end(err))
		return
	}
	defer giveBack()
	cut := context.AfterFunc(ctx, func() { reset(k.c); _ = up.Close() })
	defer cut()
	err = k.exchange(up, g.Spend)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	s.cfg.Policy.Done(t, g, k.end(err))
}
