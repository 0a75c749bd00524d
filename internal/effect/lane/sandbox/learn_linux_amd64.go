package sandbox

import "golang.org/x/sys/unix"

// learntCallsOfArchitecture are the older names of the same calls.
func learntCallsOfArchitecture(calls map[uint32]learntCall, in func(how byte) learntCall) {
	for _, call := range []uint32{unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_READLINK} {
		calls[call] = in(Looks)
	}
	for _, call := range []uint32{unix.SYS_MKDIR, unix.SYS_MKNOD, unix.SYS_UNLINK, unix.SYS_RMDIR} {
		calls[call] = in(Makes)
	}
	for _, call := range []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES} {
		calls[call] = in(Writes)
	}
	calls[unix.SYS_OPEN], calls[unix.SYS_ACCESS] = openCall(here, 0), accessCall(here, 0)
	calls[unix.SYS_CREAT] = learntCall{[][2]int{{here, 0}}, always(Makes), true}
	calls[unix.SYS_NEWFSTATAT] = learntCall{paths: [][2]int{{0, 1}}, how: always(Looks)}
	calls[unix.SYS_FUTIMESAT] = learntCall{paths: [][2]int{{0, 1}}, how: always(Writes)}
	calls[unix.SYS_SYMLINK] = learntCall{paths: [][2]int{{here, 1}}, how: always(Makes)}
	both := learntCall{paths: [][2]int{{here, 0}, {here, 1}}, how: always(Makes)}
	calls[unix.SYS_LINK], calls[unix.SYS_RENAME] = both, both
	calls[unix.SYS_RENAMEAT] = learntCall{paths: [][2]int{{0, 1}, {2, 3}}, how: always(Makes)}
}
