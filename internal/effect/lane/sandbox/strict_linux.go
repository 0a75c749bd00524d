package sandbox

import (
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filterStrictly is [filterCalls] for programs in a root of their own: what only
// widens what of the kernel they can attack is refused as well. Without a filter
// they are not started. With a network they may use the one that was made for them.
func (p *Plan) filterStrictly() error {
	filter := p.strictFilter(runtime.GOARCH)
	if filter == nil {
		return errors.New("no filter was written for " + runtime.GOARCH)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

func (p *Plan) strictFilter(arch string) []unix.SockFilter {
	sockets := socketRules
	if p.Network {
		sockets = p.networkRules
	}
	loose := callFilter(arch, sockets())
	if loose == nil {
		return nil
	}
	var files []unix.SockFilter
	if p.Executes != nil {
		files = unnamedRules()
	}
	return slices.Concat(loose[:len(loose)-1], files, kernelRules(), namespaceRules(), oddRules(), setIDRules(),
		loose[len(loose)-1:])
}

// NewNamespaces are the flags that make namespaces.
const NewNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS |
	unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// namespaceRules keep programs from namespaces of their own, in which they would
// have privileges. What clone3 is asked lies in memory, where a filter cannot
// look; without it libraries use clone.
func namespaceRules() []unix.SockFilter {
	none := []unix.SockFilter{
		load(argument(0)),
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: NewNamespaces, Jf: 1},
		refuse(unix.EPERM), allow(),
	}
	return slices.Concat(on(unix.SYS_CLONE3, refuse(unix.ENOSYS)), on(unix.SYS_CLONE, none...),
		on(unix.SYS_UNSHARE, none...))
}

// kernelRules refuse what no program has business with that transforms data.
func kernelRules() (rules []unix.SockFilter) {
	for _, call := range append([]uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN,
		unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
		unix.SYS_PERF_EVENT_OPEN,
		unix.SYS_BPF, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
		unix.SYS_SYSLOG,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_VHANGUP,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_LOOKUP_DCOOKIE,
	}, ofArchitecture()...) {
		rules = append(rules, on(call, refuse(unix.EPERM))...)
	}
	for _, call := range []uint32{unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
		rules = append(rules, on(call, refuse(unix.ENOSYS))...)
	}
	return rules
}

// unnamedRules refuse files in memory that could be executed: no path leads to them
// by which Landlock would know that they may not be. Programs do without, as on a
// kernel that has none.
func unnamedRules() []unix.SockFilter {
	return on(unix.SYS_MEMFD_CREATE, load(argument(1)),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.MFD_NOEXEC_SEAL, Jf: 1},
		allow(), refuse(unix.ENOSYS))
}

// tiocLinux is the ioctl by which a console pastes.
const tiocLinux = 0x541C

// Ways to run: the usual one, and that of 32 bits.
const (
	perLinux   = 0
	perLinux32 = 8
)

// oddRules refuse what types into a terminal, and ways to run as on another
// machine but for the usual one and that of 32 bits.
func oddRules() []unix.SockFilter {
	return slices.Concat(
		on(unix.SYS_IOCTL, load(argument(1)), equal(unix.TIOCSTI, 1, 0), equal(tiocLinux, 0, 1), refuse(unix.EPERM), allow()),
		on(unix.SYS_PERSONALITY, load(argument(0)), equal(perLinux, 2, 0), equal(perLinux32, 1, 0), equal(0xffffffff, 0, 1),
			allow(), refuse(unix.EPERM)),
	)
}
