package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Programs that are agents have terminals of their own: a file system of them that
// nobody else has, so that a program can make more for what it starts. No terminal of
// the machine is in it.
const (
	TerminalsAt   = "/dev/pts"
	mostTerminals = "64" // each takes memory, and counts for the machine
)

func terminalOptions() [][2]string {
	return [][2]string{{"ptmxmode", "0666"}, {"mode", "0600"}, {"max", mostTerminals}}
}

// terminals is that file system.
func terminals() (int, error) {
	fs, err := unix.Fsopen("devpts", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(fs)
	for _, option := range terminalOptions() {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("fsconfig %s: %w", option[0], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("making terminals: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, fmt.Errorf("mounting terminals: %w", err)
	}
	return fd, nil
}

// mountTerminals does the same where there is a folder for them.
func (p *Plan) mountTerminals() error {
	if !p.Live {
		return nil
	}
	options := ""
	for _, option := range terminalOptions() {
		options += "," + option[0] + "=" + option[1]
	}
	if err := unix.Mount("devpts", TerminalsAt, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, options[1:]); err != nil {
		return fmt.Errorf("mounting terminals: %w", err)
	}
	return nil
}

// terminal makes the one that the program shall have, hands over its other side, and
// waits until that is served.
func (p *Plan) terminal() error {
	if !p.Terminal {
		return nil
	}
	master, err := unix.Open(TerminalsAt+"/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a terminal: %w", err)
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return fmt.Errorf("making a terminal: %w", err)
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return fmt.Errorf("making a terminal: %w", errno)
	}
	p.tty = int(fd)
	if err := unix.Sendmsg(SocketFile, []byte{0}, unix.UnixRights(master, p.tty), nil, 0); err != nil {
		return fmt.Errorf("handing over a terminal: %w", err)
	}
	var served [1]byte
	if n, err := unix.Read(SocketFile, served[:]); err != nil || n != 1 {
		return fmt.Errorf("a terminal was handed over, and is not served: %w", err)
	}
	return nil
}

// ReceiveTerminal takes a terminal that is handed over: the side of rlp, and the
// program's.
func ReceiveTerminal(socket int) (ours, theirs int, err error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(2*4))
	_, n, _, _, err := unix.Recvmsg(socket, b[:], oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, -1, fmt.Errorf("taking a terminal: %w", err)
	}
	list, err := unix.ParseSocketControlMessage(oob[:n])
	if err == nil && len(list) == 1 {
		var fds []int
		if fds, err = unix.ParseUnixRights(&list[0]); err == nil && len(fds) == 2 {
			return fds[0], fds[1], nil
		}
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	return -1, -1, fmt.Errorf("taking a terminal: there is none: %w", err)
}
