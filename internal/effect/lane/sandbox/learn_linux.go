package sandbox

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// A learnt call names paths.
type learntCall struct {
	paths [][2]int // which arguments: the folder, negative for the current one, and the path
	how   func(args *[6]uint64) byte
	opens bool
}

// learner tells which paths a program uses, each use once.
type learner struct {
	calls map[uint32]learntCall
	told  map[string]bool
}

func newLearner() *learner { return &learner{calls: learntCalls(), told: map[string]bool{}} }

// mostUses bounds what is remembered, and so told.
const mostUses = 1 << 16

func (l *learner) tell(how byte, there bool, path string) {
	is := "-"
	if there {
		is = "+"
	}
	line := Using + string(how) + is + strconv.Quote(path) + "\n"
	if len(l.told) >= mostUses || l.told[line] {
		return
	}
	l.told[line] = true
	said(line)
}

func always(how byte) func(*[6]uint64) byte { return func(*[6]uint64) byte { return how } }

// opened says how a call that opens uses what it opens.
func opened(flags uint64) byte {
	switch {
	case flags&unix.O_PATH != 0:
		return Looks
	case flags&(unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY) != 0:
		return Makes
	case flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0:
		return Writes
	}
	return Reads
}

// checked says how a call uses a path that asks what may be done there.
func checked(mode uint64) byte {
	if mode&unix.W_OK != 0 {
		return Writes
	}
	return Looks
}

const here = -1

// openCall is a call that opens, whose flags follow the path.
func openCall(at, path int) learntCall {
	return learntCall{[][2]int{{at, path}}, func(args *[6]uint64) byte { return opened(args[path+1]) }, true}
}

// accessCall is a call that asks what may be done, which follows the path.
func accessCall(at, path int) learntCall {
	return learntCall{paths: [][2]int{{at, path}}, how: func(args *[6]uint64) byte { return checked(args[path+1]) }}
}

func learntCalls() map[uint32]learntCall {
	at := func(how byte) learntCall { return learntCall{paths: [][2]int{{0, 1}}, how: always(how)} }
	in := func(how byte) learntCall { return learntCall{paths: [][2]int{{here, 0}}, how: always(how)} }
	calls := map[uint32]learntCall{
		unix.SYS_OPENAT: openCall(0, 1),
		unix.SYS_STATX:  at(Looks), unix.SYS_READLINKAT: at(Looks), unix.SYS_STATFS: in(Looks),
		unix.SYS_FACCESSAT:  accessCall(0, 1),
		unix.SYS_FACCESSAT2: accessCall(0, 1),
		unix.SYS_GETXATTR:   in(Looks), unix.SYS_LGETXATTR: in(Looks), unix.SYS_LISTXATTR: in(Looks),
		unix.SYS_INOTIFY_ADD_WATCH: {paths: [][2]int{{here, 1}}, how: always(Looks)}, unix.SYS_EXECVE: in(Reads),
		unix.SYS_MKDIRAT: at(Makes), unix.SYS_MKNODAT: at(Makes), unix.SYS_UNLINKAT: at(Makes),
		unix.SYS_SYMLINKAT: {paths: [][2]int{{1, 2}}, how: always(Makes)},
		unix.SYS_LINKAT:    {paths: [][2]int{{0, 1}, {2, 3}}, how: always(Makes)},
		unix.SYS_RENAMEAT2: {paths: [][2]int{{0, 1}, {2, 3}}, how: always(Makes)},
		unix.SYS_TRUNCATE:  in(Writes), unix.SYS_FCHMODAT: at(Writes), unix.SYS_FCHMODAT2: at(Writes),
		unix.SYS_FCHOWNAT: at(Writes), unix.SYS_UTIMENSAT: at(Writes), unix.SYS_SETXATTR: in(Writes),
		unix.SYS_LSETXATTR: in(Writes), unix.SYS_REMOVEXATTR: in(Writes), unix.SYS_LREMOVEXATTR: in(Writes),
	}
	learntCallsOfArchitecture(calls, in)
	return calls
}

// told reports whether a filter has the kernel ask about a call with these arguments.
func told(filter []unix.SockFilter, args *[6]uint64) bool {
	var a uint32
	for at := 0; at < len(filter); at++ {
		f, yes := filter[at], false
		switch f.Code {
		case unix.BPF_RET | unix.BPF_K:
			return f.K == unix.SECCOMP_RET_USER_NOTIF
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			n := (f.K - dataArguments) / 4
			a = uint32(args[n/2] >> (32 * (n % 2)))
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			yes = a == f.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			yes = a&f.K != 0
		default:
			return true // no filter of the broker's has others: it looks by itself
		}
		if yes {
			at += int(f.Jt)
		} else {
			at += int(f.Jf)
		}
	}
	return true
}
