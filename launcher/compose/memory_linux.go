package compose

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// MemoryForRuns is how much memory the runs of this process may have together: three
// quarters of the least that a control group above it allows, or of what the
// machine has; 0: that cannot be told.
func MemoryForRuns() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		groups = nil
	}
	return leastMemory("/sys/fs/cgroup", groups, int64(info.Totalram)*int64(info.Unit)) / 4 * 3
}

// leastMemory is the least of what the machine has and what the control groups
// below root allow: each line of groups is "number:controllers:path".
func leastMemory(root string, groups []byte, machine int64) int64 {
	least := machine
	for line := range bytes.Lines(groups) {
		part := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(part) < 3 || part[1] != "" && part[1] != "memory" {
			continue
		}
		base, file := root, "memory.max"
		if part[1] == "memory" {
			base, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		for at := filepath.Clean("/" + part[2]); ; at = filepath.Dir(at) {
			text, err := os.ReadFile(filepath.Join(base, at, file))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 {
				least = min(least, n)
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}
