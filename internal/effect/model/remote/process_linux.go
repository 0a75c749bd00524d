package remote

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes end the child with its parent, and keep the signals of a terminal
// from it: who is interrupted tells it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// inheritNothing marks what this process itself inherited, so that no child
// gets it. What Go opens is marked from the start.
func inheritNothing() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
