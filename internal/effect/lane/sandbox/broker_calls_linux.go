package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/links"
)

// A brokeredCall is a system call that the kernel asks about, and what the broker
// does. filter is what narrows that down to the calls which may concern it; nil:
// it is asked about each.
type brokeredCall struct {
	call   uint32
	filter func(asking) []unix.SockFilter
	do     func(b *broker, n *notice) answer
	moves  bool // one of movingCalls
}

const sysUtimensat = unix.SYS_UTIMENSAT

func (a asking) calls() []brokeredCall {
	var list []brokeredCall
	if a.dials {
		list = append(list, brokeredCall{call: unix.SYS_CONNECT, do: connects})
	}
	if a.makes != nil {
		list = append(list, brokeredCall{
			call: unix.SYS_SOCKET, do: refusesSocket, filter: func(a asking) []unix.SockFilter { return a.makes },
		})
	}
	if a.executes {
		list = append(list, brokeredCall{call: unix.SYS_EXECVE, do: executes(cwd, 0)},
			brokeredCall{call: unix.SYS_EXECVEAT, do: executes(0, 1)})
	}
	if !a.guards {
		return list
	}
	for _, c := range append(movingCalls(), movingCallsOfArchitecture()...) {
		c.moves = true
		list = append(list, c)
	}
	if a.covers {
		list = append(append(list, changingCalls()...), changingCallsOfArchitecture()...)
	}
	return list
}

// movingCalls make links, and move or remove folders: what decides where a path
// leads. In folders where nothing covers what is in them they are the only ones
// that the kernel leaves to the broker.
func movingCalls() []brokeredCall {
	return []brokeredCall{
		{call: unix.SYS_SYMLINKAT, do: makes(1, 2, makeLink)},
		{call: unix.SYS_UNLINKAT, filter: removing(2), do: makes(0, 1, func(b *broker, n *notice, at end) error {
			return b.remove(at, int(int32(n.args[2])))
		})},
		{call: unix.SYS_RENAMEAT2, do: moves([4]int{0, 1, 2, 3}, nofollow, func(b *broker, n *notice, from, to end) error {
			return b.rename(from, to, uint(n.args[4]))
		})},
		{call: unix.SYS_LINKAT, do: moves([4]int{0, 1, 2, 3}, following(4, unix.AT_SYMLINK_FOLLOW), hardLink)},
	}
}

// changingCalls are all others that change what is in folders, open it, or say how
// it is. What acts on an open file that can be written needs no broker.
func changingCalls() []brokeredCall {
	return []brokeredCall{
		{call: unix.SYS_OPENAT, filter: opening(2), do: opens(0, 1, func(n *notice) (uint64, uint64) {
			return n.args[2],
				n.args[3]
		})},
		{call: unix.SYS_MKDIRAT, do: makes(0, 1, func(_ *broker, n *notice, at end) error {
			return unix.Mkdirat(at.fd, at.last(), masked(n, n.args[2]))
		})},
		{call: unix.SYS_MKNODAT, do: makes(0, 1, func(_ *broker, n *notice, at end) error {
			return makeNode(n, at, n.args[2])
		})},
		{call: unix.SYS_TRUNCATE, do: alters(cwd, 0, follow, func(_ *broker, n *notice, file string) error {
			return os.Truncate(file, int64(n.args[1]))
		})},
		{call: unix.SYS_FCHMOD, do: alters(0, cwd, follow, func(_ *broker, n *notice, file string) error {
			return unix.Chmod(file, uint32(n.args[1]))
		})},
		{call: unix.SYS_FCHMODAT, do: alters(0, 1, follow, chmods)},
		{call: unix.SYS_FCHMODAT2, do: alters(0, 1, notFollowing(3), chmods)},
		{call: unix.SYS_FCHOWN, do: alters(0, cwd, follow, chowns(1))},
		{call: unix.SYS_FCHOWNAT, do: alters(0, 1, notFollowing(4), chowns(2))},
		{call: unix.SYS_UTIMENSAT, do: alters(0, 1, notFollowing(3), func(_ *broker, n *notice, file string) error {
			return setTimes(n, file, 1)
		})},
		{call: unix.SYS_SETXATTR, do: alters(cwd, 0, follow, setsAttribute)},
		{call: unix.SYS_LSETXATTR, do: alters(cwd, 0, nofollow, setsAttribute)},
		{call: unix.SYS_REMOVEXATTR, do: alters(cwd, 0, follow, removesAttribute)},
		{call: unix.SYS_LREMOVEXATTR, do: alters(cwd, 0, nofollow, removesAttribute)},
		{call: unix.SYS_FACCESSAT, filter: writingAccess(2), do: alters(0, 1, follow, accesses(2))},
		{call: unix.SYS_FACCESSAT2, filter: writingAccess(2), do: alters(0, 1, notFollowing(3), accesses(2))},
	}
}

func follow(*notice) bool   { return true }
func nofollow(*notice) bool { return false }

func following(arg int, flag uint64) func(*notice) bool {
	return func(n *notice) bool { return n.args[arg]&flag != 0 }
}

func notFollowing(arg int) func(*notice) bool {
	return func(n *notice) bool { return n.args[arg]&unix.AT_SYMLINK_NOFOLLOW == 0 }
}

// An end is a place whose folder is open.
type end struct {
	place
	fd int // of the folder
}

func (e end) last() string {
	if e.slash {
		return e.name() + "/"
	}
	return e.name()
}

// makes is a call that makes an entry of a folder, or takes it away.
func makes(at, arg int, do func(b *broker, n *notice, at end) error) func(*broker, *notice) answer {
	return func(b *broker, n *notice) answer {
		p, err := b.find(n, at, arg, false)
		if err != nil || p.in == nil || p.unnamed {
			return goesOn()
		}
		made := n.call == unix.SYS_MKDIRAT || n.call == sysMkdir // a folder above what is kept can be made
		made = made && b.isAbove(p.path) && p.access == ReadWrite
		if errno := b.change(p, p.path); errno != 0 && !(made && errno == unix.EBUSY) {
			return failed(errno)
		}
		dir, err := p.in.parent(p)
		if err != nil {
			return answered(err)
		}
		defer unix.Close(dir)
		return answered(do(b, n, end{p, dir}))
	}
}

// moves is a call that has two paths: the arguments of the first, and of the
// second. Who has one end of it elsewhere hears what he would of two file systems.
func moves(paths [4]int, follows func(*notice) bool, do func(b *broker, n *notice, from, to end) error) func(*broker,
	*notice) answer {
	return func(b *broker, n *notice) answer {
		from, err1 := b.find(n, paths[0], paths[1], follows(n))
		to, err2 := b.find(n, paths[2], paths[3], false)
		switch {
		case from.in == nil && to.in == nil, isLost(err1), isLost(err2), from.unnamed, to.unnamed:
			return goesOn()
		case from.in != to.in && (from.covered() || to.covered()):
			return failed(unix.EXDEV)
		case from.in != to.in: // the kernel says the same, or links a file that has no name yet
			return goesOn()
		}
		for _, p := range []place{from, to} {
			if errno := b.change(p, from.path); errno != 0 {
				return failed(errno)
			}
		}
		if slices.ContainsFunc(b.leased, func(at string) bool { return links.Leaves(at, from.path, to.path) }) {
			return failed(unix.EACCES)
		}
		dir, err := from.in.parent(from)
		if err != nil {
			return answered(err)
		}
		defer unix.Close(dir)
		dir2, err := to.in.parent(to)
		if err != nil {
			return answered(err)
		}
		defer unix.Close(dir2)
		return answered(do(b, n, end{from, dir}, end{to, dir2}))
	}
}

// isLost reports whether a path leads nowhere: the kernel says how.
func isLost(err error) bool { return err != nil && !errors.Is(err, errElsewhere) }

// alters is a call about a file that is there, given by its path, or by a
// descriptor where arg is negative. Descriptors that can be written need no help.
func alters(at, arg int, follows func(*notice) bool, do func(b *broker, n *notice, file string) error) func(*broker,
	*notice) answer {
	return func(b *broker, n *notice) answer {
		p, err := b.find(n, at, arg, follows(n))
		if err != nil || p.in == nil {
			return goesOn()
		}
		if errno := p.alter(); errno != 0 {
			return failed(errno)
		}
		fd, err := p.in.open(p, unix.O_PATH)
		if errors.Is(err, unix.ENOENT) { // it was taken away, and somebody has it open
			return goesOn()
		}
		if err != nil {
			return answered(err)
		}
		defer unix.Close(fd)
		return answered(do(b, n, own(fd)))
	}
}

func (g *guardedDir) parent(p place) (int, error) {
	return g.inside(p.dir(), unix.O_PATH|unix.O_DIRECTORY)
}

func (g *guardedDir) inside(p string, flags uint64) (int, error) {
	return openBelow(g.dir, g.within(p), &unix.OpenHow{
		Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | keepLinks,
	})
}

func (g *guardedDir) open(p place, flags uint64) (int, error) {
	if p.path == g.path {
		return g.inside(p.path, flags)
	}
	dir, err := g.parent(p)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	return unix.Openat(dir, p.name(), int(flags)|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
}

func masked(n *notice, mode uint64) uint32 {
	fd, err := unix.Open("/proc/"+strconv.Itoa(int(n.pid))+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return uint32(mode) & 0o700
	}
	status := make([]byte, 128) // it is in the second line, and a name is short
	got, _ := unix.Read(fd, status)
	_ = unix.Close(fd)
	_, rest, _ := bytes.Cut(status[:max(got, 0)], []byte("\nUmask:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	umask, err := strconv.ParseUint(string(line), 8, 32)
	if err != nil {
		return uint32(mode) & 0o700
	}
	return uint32(mode) &^ uint32(umask)
}

func makeNode(n *notice, at end, mode uint64) error {
	switch mode & unix.S_IFMT {
	case 0, unix.S_IFREG, unix.S_IFIFO:
		return unix.Mknodat(at.fd, at.last(), masked(n, mode), 0)
	}
	return unix.EPERM
}

func chmods(_ *broker, n *notice, file string) error { return unix.Chmod(file, uint32(n.args[2])) }

func chowns(arg int) func(*broker, *notice, string) error {
	return func(_ *broker, n *notice, file string) error {
		return unix.Chown(file, int(int32(n.args[arg])), int(int32(n.args[arg+1])))
	}
}

func accesses(arg int) func(*broker, *notice, string) error {
	return func(_ *broker, n *notice, file string) error { return unix.Access(file, uint32(n.args[arg])) }
}

// setTimes sets the times of a file to what an argument points to: seconds, and
// parts of them that are so many nanoseconds each.
func setTimes(n *notice, file string, nanoseconds int64) error {
	arg := 2
	if nanoseconds > 1 && n.call != sysFutimesat {
		arg = 1
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	if n.args[arg] != 0 {
		var raw [4]int64
		if err := readNumbers(n, n.args[arg], raw[:]); err != nil {
			return err
		}
		times = []unix.Timespec{{Sec: raw[0], Nsec: raw[1] * nanoseconds}, {Sec: raw[2], Nsec: raw[3] * nanoseconds}}
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, file, times, 0)
}

// readNumbers reads as many of the program's.
func readNumbers(n *notice, at uint64, to []int64) error {
	memory := make([]byte, 8*len(to))
	if got, err := peek(n, at, memory); err != nil || got < len(memory) {
		return unix.EFAULT
	}
	for i := range to {
		to[i] = int64(binary.LittleEndian.Uint64(memory[8*i:]))
	}
	return nil
}

// attribute reads the name of one.
func (b *broker) attribute(n *notice) (string, error) { return b.text(n, n.args[1]) }

func setsAttribute(b *broker, n *notice, file string) error {
	const most = 64 << 10
	name, err := b.attribute(n)
	if err != nil {
		return err
	}
	if n.args[3] > most {
		return unix.E2BIG
	}
	value := make([]byte, n.args[3])
	if _, err := peek(n, n.args[2], value); err != nil {
		return unix.EFAULT
	}
	return unix.Setxattr(file, name, value, int(n.args[4]))
}

func removesAttribute(b *broker, n *notice, file string) error {
	name, err := b.attribute(n)
	if err != nil {
		return err
	}
	return unix.Removexattr(file, name)
}
