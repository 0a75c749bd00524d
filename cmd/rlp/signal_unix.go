//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// handleWriteSignals makes a reader that has gone, and a file that may not
// grow, errors of the write instead of ends of the process: a run is recorded
// to its end whoever stops reading. Being notified, and not ignoring, leaves
// the programs that rlp starts as they are.
func handleWriteSignals() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
}
