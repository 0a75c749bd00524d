package sandbox

import (
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

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
	filter := callFilter(runtime.GOARCH, socketRules())
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

func TestOtherArchitecturesHaveNoFilter(t *testing.T) {
	if callFilter("riscv64", socketRules()) != nil {
		t.Error("a filter for an architecture that it was not written for")
	}
	if len(callFilter("arm64", socketRules())) != len(callFilter("amd64", socketRules())) {
		t.Error("arm64 has another filter")
	}
}

// The stricter filter refuses what the other does, and more, and leaves what
// programs need.
func TestTheStricterFilter(t *testing.T) {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	filter := new(Plan).strictFilter(runtime.GOARCH)
	if len(filter) == 0 || len(filter) > 4096 || new(Plan).strictFilter("riscv64") != nil {
		t.Fatalf("%d instructions", len(filter))
	}
	for _, c := range []struct {
		call uint32
		want unix.Errno
		args []uint64
	}{
		{unix.SYS_READ, 0, nil},
		{unix.SYS_EXECVE, 0, nil},
		{unix.SYS_WAIT4, 0, nil},
		{unix.SYS_MMAP, 0, nil},
		{unix.SYS_CLONE, 0, []uint64{unix.CLONE_VM | unix.CLONE_VFORK | 17}},
		{unix.SYS_CLONE, unix.EPERM, []uint64{unix.CLONE_NEWUSER | 17}},
		{unix.SYS_CLONE, unix.EPERM, []uint64{unix.CLONE_NEWNET}},
		{unix.SYS_CLONE3, unix.ENOSYS, nil},
		{unix.SYS_UNSHARE, 0, []uint64{unix.CLONE_FS}},
		{unix.SYS_UNSHARE, unix.EPERM, []uint64{unix.CLONE_NEWUSER}},
		{unix.SYS_MOUNT, unix.EPERM, nil},
		{unix.SYS_PTRACE, unix.EPERM, nil},
		{unix.SYS_BPF, unix.EPERM, nil},
		{unix.SYS_KEYCTL, unix.EPERM, nil},
		{unix.SYS_OPEN_BY_HANDLE_AT, unix.EPERM, nil},
		{unix.SYS_SETNS, unix.EPERM, nil},
		{unix.SYS_SOCKET, unix.EACCES, nil},
		{unix.SYS_IO_URING_SETUP, unix.ENOSYS, nil},
		{unix.SYS_IO_URING_ENTER, unix.ENOSYS, nil},
		{unix.SYS_IOCTL, unix.EPERM, []uint64{0, unix.TIOCSTI}},
		{unix.SYS_IOCTL, unix.EPERM, []uint64{0, 1<<32 | unix.TIOCSTI}},
		{unix.SYS_IOCTL, 0, []uint64{0, unix.TCGETS}},
		{unix.SYS_PERSONALITY, 0, []uint64{0}},
		{unix.SYS_PERSONALITY, 0, []uint64{0xffffffff}},
		{unix.SYS_PERSONALITY, unix.EPERM, []uint64{0x40000}},
		{unix.SYS_FCHMOD, 0, []uint64{3, 0o1777}},
		{unix.SYS_FCHMOD, unix.EPERM, []uint64{3, 0o4755}},
		{unix.SYS_FCHMOD, unix.EPERM, []uint64{3, 0o2755}},
		{unix.SYS_FCHMODAT, unix.EPERM, []uint64{3, 0, 0o4755}},
		{unix.SYS_FCHMODAT2, unix.EPERM, []uint64{3, 0, 0o4755}},
		{unix.SYS_MKNODAT, unix.EPERM, []uint64{3, 0, unix.S_IFREG | 0o4755}},
		{unix.SYS_OPENAT, 0, []uint64{3, 0, unix.O_RDONLY, 0o4755}}, // nobody looks at it
		{unix.SYS_OPENAT, 0, []uint64{3, 0, unix.O_CREAT, 0o755}},
		{unix.SYS_OPENAT, unix.EPERM, []uint64{3, 0, unix.O_CREAT, 0o4755}},
		{unix.SYS_OPENAT, unix.EPERM, []uint64{3, 0, unix.O_TMPFILE, 0o4755}},
		{unix.SYS_OPENAT, 0, []uint64{3, 0, unix.O_DIRECTORY, 0o4755}},
		{unix.SYS_OPENAT2, unix.ENOSYS, nil},
	} {
		want := uint32(unix.SECCOMP_RET_ALLOW)
		if c.want != 0 {
			want = unix.SECCOMP_RET_ERRNO | uint32(c.want)
		}
		if got := answerOf(t, filter, arch, c.call, c.args...); got != want {
			t.Errorf("call %d %#x: %#x, want %#x", c.call, c.args, got, want)
		}
	}
}

// With a network of their own programs make sockets of TCP and UDP, ask for routes,
// and make no others.
func TestTheFilterOfANetwork(t *testing.T) {
	ids := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}
	id := ids[runtime.GOARCH]
	if id == 0 {
		return
	}
	filter, without := (&Plan{Network: true}).strictFilter(runtime.GOARCH), new(Plan).strictFilter(runtime.GOARCH)
	const inet, inet6, stream, dgram, raw = unix.AF_INET, unix.AF_INET6, unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW
	const cloexec = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	acces := refuse(unix.EACCES).K
	for _, c := range []struct {
		args [3]uint64
		ok   bool
	}{
		{[3]uint64{inet, stream | cloexec, 0}, true},
		{[3]uint64{inet6, stream, unix.IPPROTO_TCP}, true},
		{[3]uint64{1<<32 | inet, stream, 0}, true}, // an int
		{[3]uint64{inet, dgram | cloexec, unix.IPPROTO_UDP}, true},
		{[3]uint64{inet6, dgram, 0}, true},
		{[3]uint64{unix.AF_NETLINK, raw | cloexec, unix.NETLINK_ROUTE}, true},
		{[3]uint64{unix.AF_NETLINK, dgram, unix.NETLINK_ROUTE}, true},
		{[3]uint64{unix.AF_NETLINK, raw, unix.NETLINK_NETFILTER}, false},
		{[3]uint64{unix.AF_NETLINK, raw, unix.NETLINK_SOCK_DIAG}, false},
		{[3]uint64{inet, raw, unix.IPPROTO_TCP}, false},
		{[3]uint64{inet, raw, 0}, false},
		{[3]uint64{inet, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP}, false},
		{[3]uint64{inet, stream, unix.IPPROTO_MPTCP}, false},
		{[3]uint64{inet, stream, unix.IPPROTO_UDP}, false},
		{[3]uint64{inet, dgram, unix.IPPROTO_ICMP}, false},
		{[3]uint64{inet6, dgram, unix.IPPROTO_ICMPV6}, false},
		{[3]uint64{inet, dgram, unix.IPPROTO_UDPLITE}, false},
		{[3]uint64{unix.AF_UNIX, stream, 0}, false},
		{[3]uint64{unix.AF_UNIX, dgram, 0}, false},
		{[3]uint64{unix.AF_PACKET, raw, 0}, false},
		{[3]uint64{unix.AF_VSOCK, stream, 0}, false},
		{[3]uint64{unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, false},
		{[3]uint64{0, stream, 0}, false},
	} {
		want := acces
		if c.ok {
			want = unix.SECCOMP_RET_ALLOW
		}
		if got := answerOf(t, filter, id, unix.SYS_SOCKET, c.args[:]...); got != want {
			t.Errorf("socket %v: %#x, want %#x", c.args, got, want)
		}
		if got := answerOf(t, without, id, unix.SYS_SOCKET, c.args[:]...); got != acces {
			t.Errorf("without one, socket %v: %#x", c.args, got)
		}
	}
	for call, want := range map[uint32]uint32{
		unix.SYS_IO_URING_SETUP: refuse(unix.ENOSYS).K, unix.SYS_UNSHARE: unix.SECCOMP_RET_ALLOW,
		unix.SYS_SETNS: refuse(unix.EPERM).K, unix.SYS_PIDFD_GETFD: refuse(unix.EPERM).K,
	} {
		if got := answerOf(t, filter, id, call); got != want {
			t.Errorf("call %d: %#x, want %#x", call, got, want)
		}
	}
	const asks, allows = unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_RET_ALLOW
	own := []string{"/tmp"}
	for name, c := range map[string]struct {
		plan                 Plan
		stream, dgram, other uint32 // of sockets of Unix; and raw ones
	}{
		"own folders":         {Plan{Sockets: own}, allows, allows, acces},
		"beside others":       {Plan{Sockets: own, Dials: true}, allows, acces, acces},
		"told":                {Plan{Told: true}, asks, asks, asks},
		"own folders, told":   {Plan{Sockets: own, Told: true}, allows, allows, asks},
		"beside others, told": {Plan{Sockets: own, Dials: true, Told: true}, allows, asks, asks},
	} {
		filter := c.plan.networkRules()
		if c.plan.Told {
			filter = on(unix.SYS_SOCKET, c.plan.madeSockets(give(asks))...)
		}
		filter = slices.Concat([]unix.SockFilter{load(dataNumber)}, filter, []unix.SockFilter{allow()})
		for i, want := range []uint32{c.stream, c.dgram, c.other, unix.SECCOMP_RET_ALLOW} {
			args := [][]uint64{
				{unix.AF_UNIX, stream | cloexec, 0}, {unix.AF_UNIX, dgram | cloexec, 0}, {inet, raw, 1}, {inet, stream, 0},
			}[i]
			if got := answerOf(t, filter, id, unix.SYS_SOCKET, args...); got != want {
				t.Errorf("%s: socket %v: %#x, want %#x", name, args, got, want)
			}
		}
	}
	if got := answerOf(t, filter, id, unix.SYS_SOCKETPAIR, 1, stream); got != unix.SECCOMP_RET_ALLOW {
		t.Errorf("a pair: %#x", got)
	}
	if got := answerOf(t, filter, id, unix.SYS_SOCKETPAIR, 1, dgram); got != acces {
		t.Errorf("a pair of datagrams: %#x", got)
	}
}
