//go:build !linux

package guest

import (
	"math"
	"syscall"
	"time"
)

// childAttributes keep the signals of a terminal from the compiler.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func inheritNothing() {}

// processorTime is not known here: the clock alone counts.
func processorTime() time.Duration { return math.MaxInt64 }

// limitProcess does nothing: here the deadline holds, and memory is bounded by
// the collector's limit alone, which is best effort.
func limitProcess(Bound) error { return nil }
