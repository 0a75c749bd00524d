//go:build unix && !linux

package wire

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const maxSocketPath = 103

func fits(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("%s: a socket's path has at most %d bytes here; choose a shorter home", path, maxSocketPath)
	}
	return nil
}

// ListenUnix listens at the path of a socket.
func ListenUnix(path string) (*net.UnixListener, error) {
	if err := fits(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}

// DialUnix connects to the socket at a path, within a time.
func DialUnix(ctx context.Context, path string, within time.Duration) (*net.UnixConn, error) {
	if err := fits(path); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: within}
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// PeerUID asks the kernel who is at the other end.
func PeerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid int
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if credErr = err; err == nil {
			uid = int(cred.Uid)
		}
	}); err != nil {
		return 0, err
	}
	return uid, credErr
}
