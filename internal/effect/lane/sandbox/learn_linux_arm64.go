package sandbox

import "golang.org/x/sys/unix"

// learntCallsOfArchitecture are those that have another name here.
func learntCallsOfArchitecture(calls map[uint32]learntCall, _ func(how byte) learntCall) {
	calls[unix.SYS_FSTATAT] = learntCall{paths: [][2]int{{0, 1}}, how: always(Looks)}
	calls[unix.SYS_RENAMEAT] = learntCall{paths: [][2]int{{0, 1}, {2, 3}}, how: always(Makes)}
}
