package lane

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// orderAbout gives process pid the limits, priority or processors that it has: who
// may do that may give it others.
func orderAbout(what string, pid int) error {
	id := uintptr(pid)
	var errno unix.Errno
	switch what {
	case "limit":
		var had unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &had); err != nil {
			return err
		}
		return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &had, nil)
	case "priority":
		had, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		if err != nil {
			return err
		}
		return unix.Setpriority(unix.PRIO_PROCESS, pid, 20-had)
	case "affinity":
		var had unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &had); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid, &had)
	case "scheduler":
		var param [2]int32
		_, _, errno = unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, id, unix.SCHED_NORMAL, uintptr(unsafe.Pointer(&param)))
	case "parameter":
		var param [2]int32
		_, _, errno = unix.Syscall(unix.SYS_SCHED_SETPARAM, id, uintptr(unsafe.Pointer(&param)), 0)
	case "attributes":
		had, err := unix.SchedGetAttr(pid, 0)
		if err != nil {
			return err
		}
		return unix.SchedSetAttr(pid, had, 0)
	case "io":
		_, _, errno = unix.Syscall(unix.SYS_IOPRIO_SET, 1, id, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// Programs of the same user would limit rlp's time, files and processors, and
// so end it or its records.
//
//rlp:holds K45
func TestProgramsDoNotChangeHowOthersRun(t *testing.T) {
	n := newNative(t)
	for _, what := range []string{"limit", "priority", "affinity", "scheduler", "parameter", "attributes", "io"} {
		for at, want := range map[string]string{strconv.Itoa(os.Getpid()): "refused: ", "0": "reached\n"} {
			args := []string{"reach-" + what, at}
			if out, err := exec.Command(self(t), args...).Output(); err != nil || string(out) != "reached\n" {
				t.Errorf("control: %s of %s: %v, %s", what, at, err, out)
			}
			r := mustRun(t, n, &Command{
				Program: self(t), Argv: append([]string{"lane.test"}, args...), Timeout: time.Minute,
				MaxOutput: 1 << 10,
			})
			if !strings.HasPrefix(string(r.Stdout.Data), want) {
				t.Errorf("%s of %s: %s%s", what, at, r.Stdout.Data, r.Stderr.Data)
			}
		}
	}
	script := "expr $(nice -n 5 nice) - $(nice); ulimit -n 64; ulimit -n; echo abc | grep -c b; (sleep 0 & wait); echo " +
		"a | sort | tr a z"
	if r := mustRun(t, n, shell(t, script)); string(r.Stdout.Data) != "5\n64\n1\nz\n" {
		t.Errorf("what programs do to themselves: %s%s", r.Stdout.Data, r.Stderr.Data)
	}
}

// Who is root and may not empty the bounding set gives programs nothing either.
//
//rlp:holds K45
func TestCapabilitiesAreTakenWithoutTheRightToTakeThem(t *testing.T) {
	out, err := exec.Command(self(t), "reach-bounded", realDir(t)+"/agent/run").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	own, program, _ := strings.Cut(string(out), "program:\n")
	const none = "CapEff:\t0000000000000000\n"
	if os.Getuid() == 0 && (strings.Contains(own, none) || !strings.Contains(own, "CapEff:")) {
		t.Errorf("control: without the lane there are none to take:\n%s", own)
	}
	for _, line := range []string{
		none, "CapPrm:\t0000000000000000\n", "CapInh:\t0000000000000000\n",
		"CapAmb:\t0000000000000000\n",
	} {
		if !strings.Contains(program, line) {
			t.Errorf("%q is missing:\n%s", line, program)
		}
	}
}

// bounded takes the right to take capabilities from itself, starts itself anew
// and there a program in the lane.
func bounded(work string) string {
	runtime.LockOSThread() // until the end: it is the thread that starts the other
	if os.Getuid() == 0 {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SETPCAP, 0, 0, 0); err != nil && err != unix.EPERM {
			return err.Error()
		}
	}
	out, err := exec.Command("/proc/self/exe", "reach-within", work).CombinedOutput()
	if err != nil {
		return err.Error() + string(out)
	}
	return string(out)
}

// within says which capabilities it has, and which a program of its lane.
func within(work string) string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	cat, err := Resolve("/bin/cat")
	if err != nil {
		return err.Error()
	}
	l, err := Open(context.Background(), "native", Config{Work: work, ID: "within-" + strconv.Itoa(os.Getpid())})
	if err != nil {
		return err.Error()
	}
	r, err := l.Run(context.Background(), &Command{
		Program: cat.File, Argv: []string{"cat", "/proc/self/status"}, Timeout: time.Minute, MaxOutput: 1 << 20,
	})
	if err != nil {
		return err.Error()
	}
	if err := l.Close(); err != nil {
		return err.Error()
	}
	return string(status) + "program:\n" + string(r.Stdout.Data)
}
