package guest

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputMost bounds each file that the compiler writes.
const outputMost = 512 << 20

// childAttributes end the compiler with its parent, and keep the signals of a
// terminal from it: who is interrupted ends it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// inheritNothing marks what this process itself inherited, so that no child
// gets it. What Go opens is marked from the start.
func inheritNothing() { _ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// limitProcess bounds the memory of this process that can be written, its
// processor time, the files it writes, and takes core files from it. The bound
// on memory is above what the process has already, which is not the module's.
func limitProcess(b Bound) error {
	memory := (writable() + uint64(b.Memory)) * slack
	seconds := uint64(compileWorkers*b.Time/time.Second+5) * slack
	for _, l := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_CORE, 1}, // 0 does not stop a dump that is piped
		{unix.RLIMIT_CPU, seconds},
		{unix.RLIMIT_FSIZE, outputMost},
		{unix.RLIMIT_DATA, memory},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return err
		}
		most := min(l.most, now.Cur)
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return math.MaxInt64
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// writable is how much memory of its own this process can write, as the limit
// counts it.
func writable() uint64 {
	const data = 5 // field of statm: data and stack, in pages
	raw, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(raw)
	if err != nil || len(fields) <= data {
		return 0
	}
	pages, err := strconv.ParseUint(string(fields[data]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
