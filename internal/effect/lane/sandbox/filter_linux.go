package sandbox

import (
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// FilterCalls refuses system calls to this thread and to all that it starts:
// those that make sockets, and those that change how another process runs.
func FilterCalls() error {
	filter := callFilter(runtime.GOARCH, socketRules())
	if filter == nil {
		return nil
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&program)))
	if errors.Is(errno, unix.EINVAL) { // a kernel without filters
		return nil
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// Where the kernel puts what a filter looks at. The lower half of an argument
// comes first: both architectures are little-endian.
const (
	dataNumber    = 0
	dataArch      = 4
	dataArguments = 16
)

const (
	// socketTypes are the bits of a socket's type, without its flags.
	SocketTypes = 0xf
	// x32 is the first system call number of amd64's other interface.
	x32 = 0x40000000
	// Whom a priority is for, where that is every process of a user.
	prioUser   = 2 // PRIO_USER
	ioprioUser = 3 // IOPRIO_WHO_USER
)

// callFilter is the filter for an architecture, nil for one that it was not
// written for; sockets are its rules about these. System calls of another interface end the program: their
// numbers mean something else.
func callFilter(arch string, sockets []unix.SockFilter) []unix.SockFilter {
	var id uint32
	switch arch {
	case "amd64":
		id = unix.AUDIT_ARCH_X86_64
	case "arm64":
		id = unix.AUDIT_ARCH_AARCH64
	default:
		return nil
	}
	kill := give(unix.SECCOMP_RET_KILL_PROCESS)
	return slices.Concat(
		[]unix.SockFilter{
			load(dataArch), equal(id, 1, 0), kill, load(dataNumber),
			{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: x32, Jf: 1},
			kill,
		},
		sockets,
		processRules(),
		[]unix.SockFilter{allow()},
	)
}

// socketRules refuse to make sockets of any kind: the network, and the services
// of the machine that are reached through files. A pair of Unix sockets that are
// connected to each other for good can be made, for that leads nowhere; one of
// datagrams could be connected to somebody else's, and other families have code
// of their own in the kernel.
func socketRules() []unix.SockFilter {
	return slices.Concat(
		on(unix.SYS_SOCKET, refuse(unix.EACCES)),
		on(unix.SYS_IO_URING_SETUP, refuse(unix.ENOSYS)), // it makes sockets without the call
		on(unix.SYS_SOCKETPAIR,
			load(argument(0)), equal(unix.AF_UNIX, 1, 0), refuse(unix.EACCES),
			load(argument(1)),
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: SocketTypes},
			equal(unix.SOCK_STREAM, 1, 0), equal(unix.SOCK_SEQPACKET, 0, 1),
			allow(), refuse(unix.EACCES)),
	)
}

// processRules leave a program what changes itself, named by 0, and refuse what
// changes processes by their numbers: those of the same user take limits,
// priorities and places in memory from one another, and rlp is one of them. A
// program that gives its own number is refused as well; a filter cannot tell.
//
// The limit of core dumps stays what it is: the only one that programs could set
// is 0, by which dumps are piped again. They hear that it was set, as it has what
// they want of it.
func processRules() []unix.SockFilter {
	set := give(unix.SECCOMP_RET_ERRNO)
	rules := on(unix.SYS_PRLIMIT64,
		load(argument(2)), equal(0, 0, 3), load(argument(2)+4), equal(0, 0, 1), allow(), // no new limit: reading
		load(argument(0)), equal(0, 1, 0), refuse(unix.EPERM),
		load(argument(1)), equal(unix.RLIMIT_CORE, 0, 1), set, allow())
	rules = append(rules, on(unix.SYS_SETRLIMIT, load(argument(0)), equal(unix.RLIMIT_CORE, 0, 1), set, allow())...)
	for _, call := range []uint32{
		unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR,
		unix.SYS_SCHED_SETAFFINITY,
	} {
		rules = append(rules, on(call, zero(0)...)...)
	}
	own := zero(1) // the last of it refuses
	for _, c := range [][2]uint32{{unix.SYS_SETPRIORITY, prioUser}, {unix.SYS_IOPRIO_SET, ioprioUser}} {
		processes := []unix.SockFilter{load(argument(0)), equal(c[1], uint8(len(own)-1), 0)}
		rules = append(rules, on(c[0], append(processes, own...)...)...)
	}
	for _, call := range []uint32{unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE} {
		rules = append(rules, on(call, refuse(unix.EPERM))...)
	}
	return rules
}

// on is what to do about one system call. Every way through then ends with an
// answer, so that whoever comes after it still has the number.
func on(call uint32, then ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{equal(call, 0, uint8(len(then)))}, then...)
}

// zero allows a call whose argument n, an int, is 0, and refuses others.
func zero(n uint32) []unix.SockFilter {
	return []unix.SockFilter{load(argument(n)), equal(0, 0, 1), allow(), refuse(unix.EPERM)}
}

func argument(n uint32) uint32 { return dataArguments + 8*n }

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func equal(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func give(answer uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: answer}
}

func allow() unix.SockFilter { return give(unix.SECCOMP_RET_ALLOW) }

func refuse(errno unix.Errno) unix.SockFilter {
	return give(unix.SECCOMP_RET_ERRNO | uint32(errno))
}
