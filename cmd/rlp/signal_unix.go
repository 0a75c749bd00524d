//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// ownSession has a process outlive the terminal that it was started at.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// handleWriteSignals makes a reader that has gone, and a file that may not
// grow, errors of the write instead of ends of the process: a run is recorded
// to its end whoever stops reading. Being notified, and not ignoring, leaves
// the programs that rlp starts as they are.
func handleWriteSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
}
