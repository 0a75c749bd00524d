//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

func ignoreFileSizeSignal() { signal.Ignore(syscall.SIGXFSZ) }
