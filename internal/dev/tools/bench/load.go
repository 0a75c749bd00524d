package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A machine is what the figures were measured on.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	OS     string `json:"os"`
	Go     string `json:"go"`
	Load   string `json:"load_average,omitempty"`
	Others int    `json:"others_percent"` // of all processor time, taken by programs that are not part of this
}

// busy is the share of others from which absolute times mean little.
const busy = 10

func describe() machine {
	return machine{
		CPU: cpuName(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH + kernel(),
		Go: runtime.Version(), Load: loadAverage(),
	}
}

func cpuName() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func kernel() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return " " + strings.TrimSpace(string(data))
}

func loadAverage() string {
	data, _ := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(data))
	if len(f) < 3 {
		return ""
	}
	return strings.Join(f[:3], " ")
}

// A watch says how much of the machine others took since it was begun.
type watch struct {
	began        time.Time
	all, our     time.Duration
	cores        int
	unmeasurable bool
}

func newWatch() watch {
	all, err := allTime()
	return watch{time.Now(), all, ownTime(), runtime.NumCPU(), err != nil}
}

// others is in percent of all processor time.
func (w watch) others() int {
	all, err := allTime()
	if err != nil || w.unmeasurable {
		return 0
	}
	there := time.Since(w.began) * time.Duration(w.cores)
	return max(0, int(100*((all-w.all)-(ownTime()-w.our))/max(there, 1)))
}

// allTime is the processor time that anything has used since the machine began.
func allTime() (time.Duration, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	f := strings.Fields(line)
	if len(f) < 9 {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // not idle, nor waiting for a disk
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// ownTime is the processor time of this program and of what it has waited for.
func ownTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
