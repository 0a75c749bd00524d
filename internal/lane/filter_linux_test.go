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
				Program: self(t), Argv: append([]string{"lane.test"}, args...), Env: atOnce, Timeout: time.Minute, MaxOutput: 1 << 10,
			})
			if !strings.HasPrefix(string(r.Stdout.Data), want) {
				t.Errorf("%s of %s: %s%s", what, at, r.Stdout.Data, r.Stderr.Data)
			}
		}
	}
	script := "expr $(nice -n 5 nice) - $(nice); ulimit -n 64; ulimit -n; echo abc | grep -c b; (sleep 0 & wait); echo a | sort | tr a z"
	if r := mustRun(t, n, shell(t, script)); string(r.Stdout.Data) != "5\n64\n1\nz\n" {
		t.Errorf("what programs do to themselves: %s%s", r.Stdout.Data, r.Stderr.Data)
	}
}

// answerOf is what the filter says of a call, as the kernel works it out.
func answerOf(t *testing.T, filter []unix.SockFilter, arch, call uint32, args ...uint64) uint32 {
	t.Helper()
	data := map[uint32]uint32{dataNumber: call, dataArch: arch}
	for i := range uint32(6) {
		data[argument(i)], data[argument(i)+4] = 0, 0
	}
	for i, a := range args {
		data[argument(uint32(i))], data[argument(uint32(i))+4] = uint32(a), uint32(a>>32)
	}
	var a uint32
	for at := 0; at < len(filter); at++ {
		f, yes := filter[at], false
		switch f.Code {
		case unix.BPF_RET | unix.BPF_K:
			return f.K
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			var ok bool
			if a, ok = data[f.K]; !ok {
				t.Fatalf("instruction %d loads %d", at, f.K)
			}
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= f.K
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = a == f.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			yes = a >= f.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			yes = a&f.K != 0
		default:
			t.Fatalf("instruction %d: %+v", at, f)
		}
		if yes {
			at += int(f.Jt)
		} else {
			at += int(f.Jf)
		}
	}
	t.Fatal("the filter ends without an answer")
	return 0
}

func TestTheFilterAnswersEveryCall(t *testing.T) {
	ids := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}
	id := ids[runtime.GOARCH]
	filter := callFilter(runtime.GOARCH)
	if filter == nil {
		if id != 0 {
			t.Fatal("no filter")
		}
		return
	}
	const ok, kill = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS
	acces, perm, set := refuse(unix.EACCES).K, refuse(unix.EPERM).K, refuse(0).K
	for _, c := range []struct {
		call uint32
		args []uint64
		want uint32
	}{
		{unix.SYS_READ, nil, ok},
		{unix.SYS_EXECVE, nil, ok},
		{x32, nil, kill},
		{x32 | unix.SYS_PRLIMIT64, nil, kill},
		{unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, acces},
		{unix.SYS_IO_URING_SETUP, nil, refuse(unix.ENOSYS).K},
		{unix.SYS_SOCKETPAIR, []uint64{1, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, ok},
		{unix.SYS_SOCKETPAIR, []uint64{1, unix.SOCK_SEQPACKET}, ok},
		{unix.SYS_SOCKETPAIR, []uint64{1, unix.SOCK_DGRAM}, acces},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_INET, unix.SOCK_STREAM}, acces},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_SEQPACKET}, acces},
		{unix.SYS_SOCKETPAIR, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, acces},
		{unix.SYS_SOCKETPAIR, []uint64{1<<32 | unix.AF_UNIX, unix.SOCK_STREAM}, ok}, // an int: the kernel sees the lower half
		{unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_CORE, 1}, set},
		{unix.SYS_SETRLIMIT, []uint64{1<<32 | unix.RLIMIT_CORE, 1}, set},
		{unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_NOFILE, 1}, ok},
		{unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 1}, set},
		{unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, 0, 1}, ok},
		{unix.SYS_PRLIMIT64, []uint64{7, unix.RLIMIT_CORE, 1}, perm},
		{unix.SYS_PRLIMIT64, []uint64{0, 7, 0x7fff0000}, ok},
		{unix.SYS_PRLIMIT64, []uint64{1 << 32, 7, 0x7fff0000}, ok}, // a pid is its lower half
		{unix.SYS_PRLIMIT64, []uint64{9, 7, 0, 0x7fff0000}, ok},
		{unix.SYS_PRLIMIT64, []uint64{9, 7, 0x7fff0000}, perm},
		{unix.SYS_PRLIMIT64, []uint64{9, 7, 5 << 32}, perm},
		{unix.SYS_SCHED_SETPARAM, []uint64{9}, perm},
		{unix.SYS_SCHED_SETSCHEDULER, []uint64{9}, perm},
		{unix.SYS_SCHED_SETATTR, []uint64{9}, perm},
		{unix.SYS_SCHED_SETAFFINITY, []uint64{9}, perm},
		{unix.SYS_SCHED_SETAFFINITY, nil, ok},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0, 5}, ok},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PGRP, 0, 5}, ok},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 9, 5}, perm},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PGRP, 9, 5}, perm},
		{unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0, 5}, perm},
		{unix.SYS_IOPRIO_SET, []uint64{1, 0}, ok},
		{unix.SYS_IOPRIO_SET, []uint64{1, 9}, perm},
		{unix.SYS_IOPRIO_SET, []uint64{3, 0}, perm},
		{unix.SYS_MIGRATE_PAGES, nil, perm},
		{unix.SYS_MOVE_PAGES, nil, perm},
		{unix.SYS_KCMP, nil, perm},
		{unix.SYS_PROCESS_MADVISE, nil, perm},
	} {
		if got := answerOf(t, filter, id, c.call, c.args...); got != c.want {
			t.Errorf("call %d of %v: %#x, want %#x", c.call, c.args, got, c.want)
		}
		if got := answerOf(t, filter, id+1, c.call, c.args...); got != kill {
			t.Errorf("call %d of another architecture: %#x", c.call, got)
		}
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
	for _, line := range []string{none, "CapPrm:\t0000000000000000\n", "CapInh:\t0000000000000000\n", "CapAmb:\t0000000000000000\n"} {
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
