package lane

import (
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A program takes a part of what the kernel counts for the operator's user, and leaves
// the rest. The control is this process, which is not bounded so.
func TestCountsAreLeftToTheOperator(t *testing.T) {
	most := quarters()[0]
	eachSandbox(t, func(t *testing.T, name string) {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Fatal(err)
		}
		c := shell(t, `python3 -c '
import ctypes
l, n = ctypes.CDLL(None), 0
while l.inotify_init1(0) >= 0: n += 1
print(n)'`)
		if got := string(run(t, newLane(t, name), c).Stdout.Data); got != fmt.Sprintln(most) {
			t.Errorf("it has %s, and should have %d", got, most)
		}
	})
	var list []int
	for range most + 1 {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fd)
	}
	for _, fd := range list {
		_ = unix.Close(fd)
	}
}
