package lane

import "golang.org/x/sys/unix"

// setID are the mode bits by which a file is executed as its owner or group.
const setID = unix.S_ISUID | unix.S_ISGID

// A modeCall is a system call that gives a file a mode; flags is the argument
// without whose making bits nobody looks at the mode, -1 where there is none.
type modeCall struct {
	name  string
	call  uint32
	mode  uint32
	flags int
}

// making are the bits of open by which a file is made.
const making = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// modeCalls are all there are: folders are made without these bits by any call,
// and openat2, whose mode lies in memory, where a filter cannot look, is none.
func modeCalls() []modeCall {
	return append([]modeCall{
		{"fchmod", unix.SYS_FCHMOD, 1, -1},
		{"fchmodat", unix.SYS_FCHMODAT, 2, -1},
		{"fchmodat2", unix.SYS_FCHMODAT2, 2, -1},
		{"mknodat", unix.SYS_MKNODAT, 2, -1},
		{"openat", unix.SYS_OPENAT, 3, 2},
	}, modeCallsOfArchitecture()...)
}

// setIDRules keep programs from files that run as their owner: out here that is
// the operator, whoever starts them, and mounts that say nosuid say it inside.
func setIDRules() []unix.SockFilter {
	set := func(bits uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: bits, Jt: yes, Jf: no}
	}
	rules := on(unix.SYS_OPENAT2, refuse(unix.ENOSYS))
	for _, c := range modeCalls() {
		judge := []unix.SockFilter{load(argument(c.mode)), set(setID, 0, 1), refuse(unix.EPERM), allow()}
		if c.flags >= 0 {
			judge = append([]unix.SockFilter{load(argument(uint32(c.flags))), set(making, 1, 0), allow()}, judge...)
		}
		rules = append(rules, on(c.call, judge...)...)
	}
	return rules
}
