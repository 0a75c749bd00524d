package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"

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
	case (writes || makes) && len(b.protected) > 0 && b.isAbove(p.path) && !leadsNowhere(p.path):
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

// filter asks the broker. Which architecture calls was asked before.
func (b *broker) filter() []unix.SockFilter {
	filter := []unix.SockFilter{load(dataNumber)}
	for _, c := range b.calls {
		then := []unix.SockFilter{give(unix.SECCOMP_RET_USER_NOTIF)}
		if c.filter != nil && !(b.asks.learns && c.call != unix.SYS_SOCKET) {
			then = c.filter(b.asks)
		}
		filter = append(filter, on(c.call, then...)...)
	}
	return append(filter, allow())
}

// executes is a call that executes a file. rlp decides about it and records that, and
// the kernel looks up by itself what it executes: a program that changes what it says
// meanwhile is told no lie, and executes nothing that Landlock does not let it.
func executes(at, arg int) func(*broker, *notice) answer {
	return func(b *broker, n *notice) answer {
		if !b.watch.begun { // the program itself
			b.watch.begun = true
			debug.SetGCPercent(100)
			return goesOn()
		}
		file := b.executed(n, at, arg)
		if file == "" || b.watch.mayExecute(file, IsIn(file, b.writable)) {
			return goesOn()
		}
		return failed(unix.EACCES)
	}
}

// executed is the file that a program wants to execute; "": none that could be.
func (b *broker) executed(n *notice, at, arg int) string {
	text, err := b.text(n, n.args[arg])
	if err != nil {
		return ""
	}
	fd, err := base(n, at)
	if err != nil {
		return ""
	}
	defer func() { closeIf(fd) }()
	for _, self := range []string{"/proc/self/", "/proc/thread-self/"} { // the broker is another one
		if rest, is := strings.CutPrefix(text, self); is {
			text = "/proc/" + strconv.Itoa(int(n.pid)) + "/" + rest
		}
	}
	if !b.valid(n) {
		return ""
	}
	if text != "" {
		from := fd
		fd, err = unix.Openat2(from, text, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
		_ = unix.Close(from)
		if err != nil {
			return ""
		}
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 {
		return ""
	}
	is, err := pathOf(fd)
	if err != nil {
		return ""
	}
	return is
}

// connects is the call by which a socket of Unix would reach a service of the machine
// that listens in a folder which the program sees. The broker connects the program's
// own socket itself, to the address that it has read and judged: what the program
// does to its memory or its descriptors meanwhile changes nothing. The kernel does not
// say before which sockets are of Unix, so that others come here, too.
func connects(b *broker, n *notice) answer {
	to, err := b.address(n)
	if err != nil {
		return answered(err)
	}
	socket, err := b.takeFile(n, int(int32(n.args[0])))
	if err != nil {
		return answered(err)
	}
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || !b.valid(n) {
		_ = unix.Close(socket)
		return answered(errors.Join(err, unix.ENOTSOCK))
	}
	place := -1
	if domain == unix.AF_UNIX {
		if to, place, err = b.within(n, to); err != nil {
			_ = unix.Close(socket)
			return answered(err)
		}
	}
	errno, waits := connectAtOnce(socket, to)
	if !waits {
		closeIf(place)
		_ = unix.Close(socket)
		return failed(errno)
	}
	ask := *n
	go func() { // it waits for somebody whom the broker may have to answer
		defer closeIf(place)
		defer unix.Close(socket)
		b.send(&ask, failed(connect(socket, to)))
	}()
	return answer{fd: -1, later: true}
}

// connectAtOnce connects as far as that goes without waiting, and says whether the
// program waits for the rest. Most connections are made at once: they end in the
// sandbox's own network.
func connectAtOnce(socket int, to []byte) (errno unix.Errno, waits bool) {
	flags, err := unix.FcntlInt(uintptr(socket), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		return connect(socket, to), false
	}
	_, _ = unix.FcntlInt(uintptr(socket), unix.F_SETFL, flags|unix.O_NONBLOCK)
	if errno = connect(socket, to); errno == unix.EINPROGRESS {
		errno = connect(socket, to) // who answers on this machine has answered by now
	}
	_, _ = unix.FcntlInt(uintptr(socket), unix.F_SETFL, flags)
	return errno, errno == unix.EALREADY || errno == unix.EAGAIN
}

func connect(socket int, to []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(unsafe.Pointer(&to[0])), uintptr(len(to)))
	return errno
}

// mostAddress is what the kernel takes for the address of a socket.
const mostAddress = 128

// address is what the program wants to connect to.
func (b *broker) address(n *notice) ([]byte, error) {
	size := n.args[2]
	if size > mostAddress || size < 2 {
		return nil, unix.EINVAL
	}
	to := make([]byte, size)
	got, err := peek(n, n.args[1], to)
	if err == nil && got < len(to) {
		err = unix.EFAULT
	}
	return to, err
}

// within is an address of Unix that a program may reach, as the broker names it: one
// without a path, whose network is the program's own, or a socket in a private folder,
// which is open then.
func (b *broker) within(n *notice, to []byte) (address []byte, place int, err error) {
	if family := binary.NativeEndian.Uint16(to); family != unix.AF_UNIX || len(to) == 2 || to[2] == 0 {
		return to, -1, nil
	}
	text, _, _ := bytes.Cut(to[2:], []byte{0})
	from, err := base(n, cwd)
	if err != nil {
		return nil, -1, err
	}
	if !b.valid(n) {
		return nil, -1, errors.Join(unix.EACCES, unix.Close(from))
	}
	p, err := b.walk(from, string(text), true)
	if errors.Is(err, errElsewhere) || err == nil && (p.unnamed || !IsIn(p.path, b.private)) {
		err = b.outside(p.path)
	}
	if err != nil {
		return nil, -1, err
	}
	place, err = openBelow(unix.AT_FDCWD, p.path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: keepLinks,
	})
	if err != nil {
		return nil, -1, err
	}
	is, err := pathOf(place)
	if err == nil && !IsIn(is, b.private) {
		err = unix.EACCES
	}
	if err != nil {
		return nil, -1, errors.Join(err, unix.Close(place))
	}
	return append(append(to[:2:2], "/proc/self/fd/"+strconv.Itoa(place)...), 0), place, nil
}

// outside is why a program does not reach what is at a path that is not its own.
func (b *broker) outside(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || path == "" {
		return errors.Join(err, unix.EACCES)
	}
	b.tell("unix://" + path)
	return unix.EACCES
}

// refusesSocket is about sockets that programs do not make.
func refusesSocket(b *broker, n *notice) answer {
	if what := socketName(int(n.args[0]), int(n.args[1])&SocketTypes, int(n.args[2])); what != "" {
		b.tell(what + "://*")
	}
	return failed(unix.EACCES)
}

// socketName is what to call a socket that would lead out of the sandbox, "" of one
// that would not, or that programs try before one that they get.
func socketName(family, kind, protocol int) string {
	switch {
	case family == unix.AF_PACKET:
		return "packet"
	case family == unix.AF_UNIX, family == unix.AF_NETLINK, family == unix.AF_ALG, protocol == unix.IPPROTO_MPTCP:
		return ""
	case family != unix.AF_INET && family != unix.AF_INET6:
		return "family-" + strconv.Itoa(family)
	case protocol == unix.IPPROTO_ICMP, protocol == unix.IPPROTO_ICMPV6:
		return "icmp"
	case kind == unix.SOCK_RAW:
		return "raw"
	}
	return "protocol-" + strconv.Itoa(protocol)
}

// What is reported, and how often, is bounded, by kind: a program chooses it.
const (
	mostTold  = 32
	toldBytes = 1 << 10
)

// tell reports what was refused, the first time; behind the last one of its kind that it
// reports "unix://*", or "*://*" of others, for all that follow.
func (b *broker) tell(what string) {
	const ofUnix = "unix:"
	named, same := strings.HasPrefix(what, ofUnix), 0
	for other := range b.told {
		if strings.HasPrefix(other, ofUnix) == named {
			same++
		}
	}
	switch {
	case b.told[what] || same > mostTold:
		return
	case same == mostTold && named:
		what = ofUnix + "//*"
	case same == mostTold:
		what = "*://*"
	}
	b.told[what] = true
	line := Refusing + strings.ToValidUTF8(strings.ReplaceAll(what[:min(len(what), toldBytes)], "\n", "?"), "?") + "\n"
	_, _ = unix.Write(ReportFile, []byte(line))
}

// Refusing begins a line that says what the broker refused.
const Refusing = "refused "

// takeFile is a file of the program's, for the broker. Whoever asked last mostly asks
// again: his process stays open, and is found dead when another has its number.
func (b *broker) takeFile(n *notice, fd int) (int, error) {
	if b.asker.pid == n.pid {
		if got, err := unix.PidfdGetfd(b.asker.fd, fd, 0); !errors.Is(err, unix.ESRCH) {
			return got, err
		}
	}
	of, err := processOf(int(n.pid))
	if err != nil {
		return -1, unix.EACCES
	}
	if b.asker.pid != 0 {
		_ = unix.Close(b.asker.fd)
	}
	b.asker.pid, b.asker.fd = n.pid, of
	return unix.PidfdGetfd(of, fd, 0)
}

// processOf opens the process that a thread belongs to.
func processOf(thread int) (int, error) {
	const ofThread = unix.O_EXCL // PIDFD_THREAD, Linux 6.9
	fd, err := unix.PidfdOpen(thread, ofThread)
	if !errors.Is(err, unix.EINVAL) {
		return fd, err
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(thread) + "/status")
	if err != nil {
		return -1, err
	}
	_, rest, _ := strings.Cut(string(text), "\nTgid:\t")
	line, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return -1, err
	}
	return unix.PidfdOpen(pid, 0)
}
