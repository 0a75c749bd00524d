package wire

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxSocketPath is what fits into a socket's address, with the NUL.
const maxSocketPath = 107

// shortSocket returns a path that fits for a socket whose own path does not:
// through a descriptor of its directory. release ends its validity.
func shortSocket(path string) (short string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &fs.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	short = fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path))
	return short, func() { unix.Close(fd) }, nil
}

// ListenUnix listens at the path of a socket, however long that is.
func ListenUnix(path string) (*net.UnixListener, error) {
	short, release, err := shortSocket(path)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the short path is not ours for long
	return l, nil
}

// DialUnix connects to the socket at a path, within a time.
func DialUnix(ctx context.Context, path string, within time.Duration) (*net.UnixConn, error) {
	short, release, err := shortSocket(path)
	if err != nil {
		return nil, err
	}
	defer release()
	d := net.Dialer{Timeout: within}
	c, err := d.DialContext(ctx, "unix", short)
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
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, fmt.Errorf("getsockopt: %w", credErr)
	}
	return int(cred.Uid), nil
}
