package daemon

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A peer is who is at the other end of a connection.
type peer struct {
	pid, uid int
	pidfd    int // -1 where the kernel has none of peers
}

func peerOf(c *conn) (peer, error) {
	p := peer{pidfd: -1}
	err := c.control(func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return os.NewSyscallError("getsockopt", err)
		}
		p.pid, p.uid = int(cred.Pid), int(cred.Uid)
		if pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
			p.pidfd = pidfd
		}
		return nil
	})
	return p, err
}

// alive reports whether the process that connected is still there, so that what
// was read under its number was its own.
func (p peer) alive() bool {
	if p.pidfd < 0 {
		return unix.Kill(p.pid, 0) == nil
	}
	fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 0
}

func (p peer) close() {
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
	}
}

// identity is what the serving process knows of itself.
type identity struct {
	uid      int
	own      *attributes
	proof    [proofLen]byte
	programs *programs
}

var errOtherUser = errors.New("another user")

// anotherProgram is why a client of another build is declined.
const anotherProgram = "another program"

// why says why p's request is not done; "" if it is. With it comes the folder
// where p is.
func (id *identity) why(p peer, r *Request) (why string, dir *os.File) {
	if p.uid != id.uid {
		return errOtherUser.Error(), nil
	}
	if r.proof != id.proof {
		return "it may not look into this process", nil
	}
	proc, err := processes(p.pid)
	if err != nil {
		return "it cannot be seen", nil
	}
	defer unix.Close(proc)
	if !id.programs.has(proc, "exe") {
		return anotherProgram, nil
	}
	theirs, err := attributesOf(p.pid, proc)
	if err != nil {
		return "it cannot be seen", nil
	}
	if why := id.own.differs(theirs); why != "" {
		return why, nil
	}
	at, err := unix.Openat(proc, "cwd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "its folder cannot be seen", nil
	}
	dir = os.NewFile(uintptr(at), "cwd")
	if !p.alive() {
		_ = dir.Close()
		return "it is gone", nil
	}
	return "", dir
}
