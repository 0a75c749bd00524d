package daemon

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A conn is a connection as the one that serves has it.
type conn struct {
	file *os.File
	raw  syscall.RawConn
}

func newConn(fd int) (*conn, error) {
	c := &conn{file: os.NewFile(uintptr(fd), "client")}
	var err error
	if c.raw, err = c.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, c.file.Close())
	}
	return c, nil
}

// close ends the connection for all who use it.
func (c *conn) close() {
	_ = c.control(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) })
	_ = c.file.Close()
}

// control does something with the descriptor, which is not closed meanwhile.
func (c *conn) control(f func(fd int) error) error {
	var err error
	if gone := c.raw.Control(func(fd uintptr) { err = f(int(fd)) }); gone != nil {
		return unix.ECANCELED
	}
	return err
}

// receive waits for one packet, and for the descriptors that came with it.
func (c *conn) receive(packet []byte, rights []byte) (n int, files []int, err error) {
	var flags, nrights int
	var failed error
	err = c.raw.Read(func(fd uintptr) bool {
		for {
			n, nrights, flags, _, failed = unix.Recvmsg(int(fd), packet, rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			if !errors.Is(failed, unix.EINTR) {
				return !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, nil, err
	}
	if nrights > 0 {
		files, err = received(rights[:nrights])
	}
	switch {
	case err != nil:
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		err = errRequest
	case n == 0:
		err = io.EOF
	}
	if err != nil {
		closeAll(files)
		return 0, nil, err
	}
	return n, files, nil
}

// received are the descriptors in control messages.
func received(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var all []int
	for i := range messages {
		if messages[i].Header.Level != unix.SOL_SOCKET || messages[i].Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, fds...)
	}
	return all, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// send sends one packet. A client that takes none in is given up.
func (c *conn) send(packet []byte) error {
	return c.control(func(fd int) error {
		for {
			_, err := unix.SendmsgN(fd, packet, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			if !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	})
}
