package kb

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

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
		return "", nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	short = fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path))
	return short, func() { unix.Close(fd) }, nil
}

func listenUnix(path string) (*net.UnixListener, error) {
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

func dialUnix(ctx context.Context, path string) (*net.UnixConn, error) {
	short, release, err := shortSocket(path)
	if err != nil {
		return nil, err
	}
	defer release()
	d := net.Dialer{Timeout: greetWithin}
	c, err := d.DialContext(ctx, "unix", short)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// peerUID asks the kernel who is at the other end.
func peerUID(c *net.UnixConn) (int, error) {
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
		return 0, os.NewSyscallError("getsockopt", credErr)
	}
	return int(cred.Uid), nil
}

// networkFileSystem names the network file system that dir lies on, or "".
func networkFileSystem(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return networkName(uint32(s.Type)), nil //nolint:gosec // magic numbers have 32 bits
}

// networkName knows the magic numbers of file systems on which neither locks
// nor shared mappings mean what this package needs.
func networkName(magic uint32) string {
	return map[uint32]string{
		0x6969: "NFS", 0x517B: "SMB", 0xFE534D42: "SMB", 0xFF534D42: "CIFS", 0x01021997: "9P",
		0x5346414F: "AFS", 0x6B414653: "AFS", 0x73757245: "Coda", 0x00C36400: "Ceph", 0x564C: "NCP",
		0x013111A8: "IBRIX", 0x19830326: "BeeGFS", 0x0BD00BD0: "Lustre", 0x7461636F: "OCFS2", 0x01161970: "GFS2",
	}[magic]
}
