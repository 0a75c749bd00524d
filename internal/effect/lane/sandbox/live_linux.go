package sandbox

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// streams are the program's: those of this process, or such as pass through rlp.
func (p *Plan) streams() []uintptr {
	switch tty := uintptr(p.tty); {
	case p.Terminal && p.Apart:
		return []uintptr{tty, tty, LiveFile + 2}
	case p.Terminal:
		return []uintptr{tty, tty, tty}
	case p.Live:
		return []uintptr{LiveFile, LiveFile + 1, LiveFile + 2}
	}
	return []uintptr{0, 1, 2}
}

// signals passes the program what rlp got for it: as from a supervisor what asks a
// process to end, all else as from a terminal to the group that it began with. The
// number cannot be another's while it is used: when its owner is gone all others here
// are ended.
func signals(pid int) {
	runtime.LockOSThread()
	if DropCapabilities() != nil {
		return
	}
	var got [1]byte
	for {
		n, err := unix.Read(SocketFile, got[:])
		switch s := unix.Signal(got[0]); {
		case errors.Is(err, unix.EINTR):
		case err != nil || n == 0:
			return
		case s == unix.SIGTERM:
			_ = unix.Kill(pid, s)
		default:
			_ = unix.Kill(-pid, s)
		}
	}
}
