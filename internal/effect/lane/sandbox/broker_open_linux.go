package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

// opens is a call that opens a file: flags and mode are among its arguments.
func opens(at, arg int, how func(n *notice) (flags, mode uint64)) func(*broker, *notice) answer {
	return func(b *broker, n *notice) answer {
		flags, mode := how(n)
		exclusive := flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL
		p, err := b.find(n, at, arg, flags&unix.O_NOFOLLOW == 0 && !exclusive)
		if err != nil {
			return goesOn()
		}
		fd, err := b.open(n, p, flags, mode)
		if err != nil {
			return answered(err)
		}
		return answer{fd: fd, flags: int(flags)}
	}
}

func (b *broker) open(n *notice, p place, flags, mode uint64) (int, error) {
	writes := flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0
	makes := flags&unix.O_CREAT != 0
	switch {
	case flags&unix.O_TMPFILE == unix.O_TMPFILE:
		return -1, unix.EOPNOTSUPP
	case p.in == nil: // a folder above one that is guarded, which Landlock does not open
		if writes || makes {
			return -1, unix.EISDIR
		}
	case p.access == Hidden && makes:
		return -1, unix.EACCES
	case p.access == Hidden:
		return -1, unix.ENOENT
	case p.access == ReadOnly && writes:
		return -1, unix.EROFS
	case p.access == ReadOnly && makes: // what is there can be read
		flags &^= unix.O_CREAT
	case makes && len(b.protected) > 0 && b.isAbove(p.path): // a file that says where another folder lies
		return -1, unix.EACCES
	case writes && len(b.protected) > 0 && b.isAbove(p.path):
		return -1, unix.EACCES
	case writes || makes:
		return p.make(n, flags, mode)
	}
	return p.read(flags)
}

// regular are what a broker waits for nobody to open; the rest is not granted.
const regular = unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOFOLLOW

// make opens a file to write, and makes it where that was asked for. Whoever has
// it open may change it from then on, so that it must be no folder: in one that
// can be written nobody would judge any more.
func (p place) make(n *notice, flags, mode uint64) (int, error) {
	if p.path == p.in.path {
		return -1, unix.EISDIR
	}
	dir, err := p.in.parent(p)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	var perm uint32
	if flags&unix.O_CREAT != 0 {
		perm = masked(n, mode) & 0o7777
	}
	fd, err := unix.Openat(dir, p.name(), int(flags)|regular, perm)
	if err != nil {
		return -1, err
	}
	return granted(fd, flags, unix.S_IFREG)
}

func (p place) read(flags uint64) (int, error) {
	how := &unix.OpenHow{Flags: flags&^uint64(unix.O_CREAT|unix.O_EXCL) | regular, Resolve: keepLinks}
	fd, err := openBelow(unix.AT_FDCWD, p.path, how)
	if err != nil {
		return -1, err
	}
	if p.in == nil {
		return granted(fd, flags, unix.S_IFDIR)
	}
	return granted(fd, flags, unix.S_IFREG, unix.S_IFDIR)
}

// granted refuses what is none of these kinds, and gives the rest the flags that
// the program asked for.
func granted(fd int, flags uint64, kinds ...uint32) (int, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil {
		err = unix.EACCES
		for _, kind := range kinds {
			if st.Mode&unix.S_IFMT == kind {
				err = nil
			}
		}
	}
	if err == nil && flags&unix.O_NONBLOCK == 0 {
		var is int
		if is, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, is&^unix.O_NONBLOCK)
		}
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// opening asks about calls that open: those that write or make something, or
// all, where something is not to be read.
func opening(flags uint32) func(asking) []unix.SockFilter {
	return func(a asking) []unix.SockFilter {
		ask := give(unix.SECCOMP_RET_USER_NOTIF)
		bits := uint32(unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_TMPFILE&^unix.O_DIRECTORY)
		if a.hides {
			return []unix.SockFilter{load(argument(flags)), {
				Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.O_PATH,
				Jf: 1,
			}, allow(), ask}
		}
		return []unix.SockFilter{
			load(argument(flags)),
			{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: bits, Jf: 1},
			ask, allow(),
		}
	}
}

// writingAccess asks about calls that ask whether something can be written.
func writingAccess(mode uint32) func(asking) []unix.SockFilter {
	return func(asking) []unix.SockFilter {
		return []unix.SockFilter{
			load(argument(mode)),
			{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.W_OK, Jf: 1},
			give(unix.SECCOMP_RET_USER_NOTIF), allow(),
		}
	}
}

// removing asks about calls that remove folders, or all, where something covers
// what is in them.
func removing(flags uint32) func(asking) []unix.SockFilter {
	return func(a asking) []unix.SockFilter {
		if a.covers {
			return []unix.SockFilter{give(unix.SECCOMP_RET_USER_NOTIF)}
		}
		return []unix.SockFilter{
			load(argument(flags)),
			{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.AT_REMOVEDIR, Jf: 1},
			give(unix.SECCOMP_RET_USER_NOTIF), allow(),
		}
	}
}

// brokeredFilter asks the broker. Which architecture calls was asked before.
func brokeredFilter(a asking) []unix.SockFilter {
	filter := []unix.SockFilter{load(dataNumber)}
	for _, c := range a.calls() {
		then := []unix.SockFilter{give(unix.SECCOMP_RET_USER_NOTIF)}
		if c.filter != nil {
			then = c.filter(a)
		}
		filter = append(filter, on(c.call, then...)...)
	}
	return append(filter, allow())
}
