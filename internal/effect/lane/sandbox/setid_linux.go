package sandbox

import "golang.org/x/sys/unix"

// SetID are the mode bits by which a file is executed as its owner or group.
const SetID = unix.S_ISUID | unix.S_ISGID

// A modeCall is a system call that gives a file a mode; flags is the argument
// without whose making bits nobody looks at the mode, -1 where there is none.
type modeCall struct {
	Name  string
	call  uint32
	Mode  uint32
	Flags int
}

// Making are the bits of open by which a file is made.
const Making = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// ModeCalls are all there are: folders are made without these bits by any call,
// and openat2, whose mode lies in memory, where a filter cannot look, is none.
func ModeCalls() []modeCall {
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
	for _, c := range ModeCalls() {
		judge := []unix.SockFilter{load(argument(c.Mode)), set(SetID, 0, 1), refuse(unix.EPERM), allow()}
		if c.Flags >= 0 {
			judge = append([]unix.SockFilter{load(argument(uint32(c.Flags))), set(Making, 1, 0), allow()}, judge...)
		}
		rules = append(rules, on(c.call, judge...)...)
	}
	return rules
}
