package lane

import "golang.org/x/sys/unix"

const (
	sysMkdir     = unix.SYS_MKDIR
	sysFutimesat = unix.SYS_FUTIMESAT
)

// brokeredCallsOfArchitecture are the older names of the same calls.
func brokeredCallsOfArchitecture() []brokeredCall {
	return []brokeredCall{
		{unix.SYS_OPEN, opening(1), opens(cwd, 0, func(n *notice) (uint64, uint64) { return n.args[1], n.args[2] })},
		{unix.SYS_CREAT, nil, opens(cwd, 0, func(n *notice) (uint64, uint64) { return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, n.args[1] })},
		{unix.SYS_MKDIR, nil, makes(cwd, 0, func(_ *broker, n *notice, dir int, name string) error {
			return unix.Mkdirat(dir, name, masked(n, n.args[1]))
		})},
		{unix.SYS_MKNOD, nil, makes(cwd, 0, func(_ *broker, n *notice, dir int, name string) error { return makeNode(n, dir, name, n.args[1]) })},
		{unix.SYS_SYMLINK, nil, makes(cwd, 1, func(b *broker, n *notice, dir int, name string) error { return b.link(n, dir, name) })},
		{unix.SYS_UNLINK, nil, makes(cwd, 0, func(_ *broker, _ *notice, dir int, name string) error { return unix.Unlinkat(dir, name, 0) })},
		{unix.SYS_RMDIR, nil, makes(cwd, 0, func(_ *broker, _ *notice, dir int, name string) error {
			return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		})},
		{unix.SYS_RENAME, nil, moves([4]int{cwd, 0, cwd, 1}, nofollow, renames)},
		{unix.SYS_RENAMEAT, nil, moves([4]int{0, 1, 2, 3}, nofollow, renames)},
		{unix.SYS_LINK, nil, moves([4]int{cwd, 0, cwd, 1}, nofollow, links)},
		{unix.SYS_CHMOD, nil, alters(cwd, 0, follow, func(_ *broker, n *notice, file string) error { return unix.Chmod(file, uint32(n.args[1])) })},
		{unix.SYS_CHOWN, nil, alters(cwd, 0, follow, chowns(1))},
		{unix.SYS_LCHOWN, nil, alters(cwd, 0, nofollow, chowns(1))},
		{unix.SYS_ACCESS, writingAccess(1), alters(cwd, 0, follow, accesses(1))},
		{unix.SYS_UTIME, nil, alters(cwd, 0, follow, func(_ *broker, n *notice, file string) error { return setTime(n, file) })},
		{unix.SYS_UTIMES, nil, alters(cwd, 0, follow, func(_ *broker, n *notice, file string) error { return setTimes(n, file, 1000) })},
		{unix.SYS_FUTIMESAT, nil, alters(0, 1, follow, func(_ *broker, n *notice, file string) error { return setTimes(n, file, 1000) })},
	}
}

func renames(_ *notice, from int, name string, to int, other string) error {
	return unix.Renameat2(from, name, to, other, 0)
}

// setTime sets times in seconds.
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
