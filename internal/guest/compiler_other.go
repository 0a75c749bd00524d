//go:build !linux

package guest

import "syscall"

// childAttributes keep the signals of a terminal from the compiler.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func inheritNothing() {}

// limitProcess does nothing: here the deadline holds, and memory is bounded by
// the collector's limit alone, which is best effort.
func limitProcess(Bound) error { return nil }
