package sandbox

import "golang.org/x/sys/unix"

const (
	sysMkdir     = unix.SYS_MKDIR
	sysFutimesat = unix.SYS_FUTIMESAT
)

// movingCallsOfArchitecture are the older names of the same calls.
func movingCallsOfArchitecture() []brokeredCall {
	return []brokeredCall{
		{call: unix.SYS_SYMLINK, do: makes(cwd, 1, makeLink)},
		{call: unix.SYS_RMDIR, do: makes(cwd, 0, func(b *broker, _ *notice, at end) error {
			return b.remove(at, unix.AT_REMOVEDIR)
		})},
		{call: unix.SYS_RENAME, do: moves([4]int{cwd, 0, cwd, 1}, nofollow, renames)},
		{call: unix.SYS_RENAMEAT, do: moves([4]int{0, 1, 2, 3}, nofollow, renames)},
		{call: unix.SYS_LINK, do: moves([4]int{cwd, 0, cwd, 1}, nofollow, hardLink)},
	}
}

// changingCallsOfArchitecture are the older names of the same calls.
func changingCallsOfArchitecture() []brokeredCall {
	return []brokeredCall{
		{call: unix.SYS_OPEN, filter: opening(1), do: opens(cwd, 0, func(n *notice) (uint64, uint64) {
			return n.args[1],
				n.args[2]
		})},
		{call: unix.SYS_CREAT, do: opens(cwd, 0, func(n *notice) (uint64, uint64) {
			return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, n.args[1]
		})},
		{call: unix.SYS_MKDIR, do: makes(cwd, 0, func(_ *broker, n *notice, at end) error {
			return unix.Mkdirat(at.fd, at.last(), masked(n, n.args[1]))
		})},
		{call: unix.SYS_MKNOD, do: makes(cwd, 0, func(_ *broker, n *notice, at end) error {
			return makeNode(n, at, n.args[1])
		})},
		{call: unix.SYS_UNLINK, do: makes(cwd, 0, func(b *broker, _ *notice, at end) error { return b.remove(at, 0) })},
		{call: unix.SYS_CHMOD, do: alters(cwd, 0, follow, func(_ *broker, n *notice, file string) error {
			return unix.Chmod(file, uint32(n.args[1]))
		})},
		{call: unix.SYS_CHOWN, do: alters(cwd, 0, follow, chowns(1))},
		{call: unix.SYS_LCHOWN, do: alters(cwd, 0, nofollow, chowns(1))},
		{call: unix.SYS_ACCESS, filter: writingAccess(1), do: alters(cwd, 0, follow, accesses(1))},
		{call: unix.SYS_UTIME, do: alters(cwd, 0, follow, func(_ *broker, n *notice, file string) error {
			return setTime(n, file)
		})},
		{call: unix.SYS_UTIMES, do: alters(cwd, 0, follow, func(_ *broker, n *notice, file string) error {
			return setTimes(n, file, 1000)
		})},
		{call: unix.SYS_FUTIMESAT, do: alters(0, 1, follow, func(_ *broker, n *notice, file string) error {
			return setTimes(n, file, 1000)
		})},
	}
}

func setTime(n *notice, file string) error {
	var raw [2]int64
	if n.args[1] == 0 {
		return setTimes(n, file, 1000)
	}
	if err := readNumbers(n, n.args[1], raw[:]); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, file, []unix.Timespec{{Sec: raw[0]}, {Sec: raw[1]}}, 0)
}
