package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A broker makes for programs the changes in guarded folders, and opens there
// what Landlock does not. The kernel asks it about each such system call
// (seccomp's user notification). It looks up where a path leads, judges the name,
// and the links that come to lie there, and does what is asked itself, by that
// name and without following links: what a program does to the path meanwhile
// changes nothing. What is not about guarded folders goes on in the kernel, which
// gives nothing there that is kept: by the cover, or by Landlock.
//
// It is a thread of the first process of the sandbox, and has of it the view of
// files, no capabilities, and no Landlock domain.
type broker struct {
	*judge
	asks     asking
	listener int
	begin    chan int // the listener
	calls    map[uint32]brokeredCall
	private  []string
	told     map[string]bool
	asker    struct { // whoever connected last
		pid uint32
		fd  int
	}
	writable []string // what programs write
	learner  *learner // nil: nobody learns what is used
	watch    *watch   // nil: nobody is asked what is executed
	moving   bool     // the call makes or moves links, or moves or removes folders
	buf      [unix.PathMax]byte
}

// broker is started before anything is given up that it needs; nil where
// nothing is guarded. A lane that is tried has one where it would judge links.
func (p *Plan) broker() (*broker, error) {
	if err := p.openJudged(); err != nil {
		return nil, err
	}
	guards := len(p.guards) > 0 || p.Proof && p.Links
	if !guards && !p.Dials && !p.Told && !p.Asks {
		return nil, nil
	}
	b := &broker{
		judge: newJudge(p), asks: asking{hides: len(p.hidden()) > 0, guards: guards, dials: p.Dials, executes: p.Asks},
		begin: make(chan int), calls: map[uint32]brokeredCall{}, private: p.Sockets, told: map[string]bool{},
		writable: p.writable(),
	}
	if p.Told {
		b.asks.makes = p.madeSockets(give(unix.SECCOMP_RET_USER_NOTIF))
	}
	if p.Asks {
		b.watch = &watch{each: p.Each, unasked: append([]string{p.File}, p.Unasked...), answers: map[string]bool{}}
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))) // the program is asked about while its parent waits for it
	}
	b.asks.covers = slices.ContainsFunc(p.guards, func(g guardedDir) bool { return g.covered })
	for _, c := range b.asks.calls() {
		b.calls[c.call] = c
	}
	if p.Learns && p.Asks {
		b.learner, b.asks.learns = newLearner(), true
		for call := range b.learner.calls {
			if _, is := b.calls[call]; !is {
				b.calls[call] = brokeredCall{call: call}
			}
		}
	}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := b.prepare()
		ready <- err
		if err != nil {
			return
		}
		if b.listener = <-b.begin; b.listener >= 0 {
			b.serve()
		}
	}()
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("%w: preparing the broker: %w", b.asks.missing(), err)
	}
	return b, nil
}

// prepare makes this thread the broker's: modes are as programs say, and it has
// no power but that of the user.
func (b *broker) prepare() error {
	if b.watch == nil {
		debug.SetGCPercent(100) // it lives as long as the program
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	unix.Umask(0)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return DropCapabilities()
}

// listen makes the kernel ask the broker about calls of this thread and of what
// it starts. It comes last of all filters: what those refuse stays refused.
func (b *broker) listen() error {
	if b == nil {
		return nil
	}
	filter := b.filter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		b.begin <- -1
		return fmt.Errorf("%w: the kernel asks no broker (Linux 5.19): %w", b.asks.missing(), errno)
	}
	b.begin <- int(fd)
	return nil
}

// A notice is a system call that the kernel asks about.
type notice struct {
	id    uint64
	pid   uint32 // of the thread
	flags uint32
	call  int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// asking is what a broker is asked about.
type asking struct {
	covers bool              // all changes, for some folder is covered
	hides  bool              // all that opens, for something is hidden
	guards bool              // what makes links, for there are folders to guard
	dials  bool              // what connects sockets, for there are sockets of Unix
	makes  []unix.SockFilter // of sockets that are refused; nil: none

	executes bool // what executes files
	learns   bool // whatever names a path
}

func (a asking) missing() error {
	if a.covers {
		return ErrNotKept
	}
	return errLinks
}

// An answer is what comes of it.
type answer struct {
	errno unix.Errno
	fd    int  // what the program gets, when it is not negative
	flags int  // O_CLOEXEC
	goOn  bool // in the kernel
	later bool // somebody else sends it
}

func failed(errno unix.Errno) answer { return answer{errno: errno, fd: -1} }

func goesOn() answer { return answer{fd: -1, goOn: true} }

func answered(err error) answer {
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		errno = unix.EIO
	}
	return failed(errno)
}

func (b *broker) control(request uint, what unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.listener), uintptr(request), uintptr(what))
	return errno
}

const (
	notifValid = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	notifAddFD = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
	notifFlags = 0x40082104 // SECCOMP_IOCTL_NOTIF_SET_FLAGS
)

// serve answers until nobody asks any more. Should it end before, calls that are
// asked about fail.
func (b *broker) serve() {
	defer unix.Close(b.listener)
	// Whoever asks waits: the broker goes on where he was (Linux 6.6).
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(b.listener), notifFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	for {
		var n notice
		switch errno := b.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno {
		case 0:
			if a := b.answer(&n); !a.later {
				b.send(&n, a)
			}
		case unix.EINTR, unix.ENOENT: // whoever asked has ended
		default:
			return
		}
	}
}

func (b *broker) send(n *notice, a answer) {
	if a.fd >= 0 {
		add := struct {
			id                    uint64
			flags, src, fd, flag2 uint32
		}{n.id, unix.SECCOMP_ADDFD_FLAG_SEND, uint32(a.fd), 0, uint32(a.flags & unix.O_CLOEXEC)}
		errno := b.control(notifAddFD, unsafe.Pointer(&add))
		_ = unix.Close(a.fd)
		if errno == 0 {
			return
		}
		a.errno = errno // EMFILE is the program's own
	}
	response := struct {
		id     uint64
		value  int64
		errno  int32
		flags_ uint32
	}{id: n.id, errno: -int32(a.errno)}
	if a.goOn {
		response.flags_ = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	_ = b.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&response)) // ENOENT: it has ended
}

func (b *broker) answer(n *notice) answer {
	c, ok := b.calls[uint32(n.call)]
	if !ok {
		return goesOn()
	}
	if b.learner != nil {
		b.learn(n)
		if c.filter != nil && !told(c.filter(b.asks), &n.args) || c.do == nil {
			return goesOn()
		}
	}
	b.moving = c.moves
	for {
		if a := c.do(b, n); a.errno != unix.EINTR { // the signal was the broker's
			return a
		}
	}
}

func (b *broker) text(n *notice, at uint64) (string, error) {
	const page = 4096
	for have := 0; have < len(b.buf); {
		size := min(page-int(at%page), len(b.buf)-have)
		got, err := peek(n, at, b.buf[have:have+size])
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(b.buf[have:have+got], 0); end >= 0 {
			return string(b.buf[:have+end]), nil
		}
		have, at = have+got, at+uint64(got)
	}
	return "", unix.ENAMETOOLONG
}

func peek(n *notice, at uint64, to []byte) (int, error) {
	if len(to) == 0 {
		return 0, nil
	}
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(len(to))
	got, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(to)}}, 0)
	if err == nil && got == 0 {
		err = unix.EFAULT
	}
	return got, err
}

// valid reports whether the program still asks: only then what was read of it
// was its own.
func (b *broker) valid(n *notice) bool {
	return b.control(notifValid, unsafe.Pointer(&n.id)) == 0
}

const cwd = -1 // in place of an argument: the folder that the program is in

// base opens the folder that a path of the program's begins in.
func base(n *notice, at int) (int, error) {
	from := "cwd"
	if at != cwd && int32(n.args[at]) != unix.AT_FDCWD {
		from = "fd/" + strconv.Itoa(int(int32(n.args[at])))
	}
	return unix.Open("/proc/"+strconv.Itoa(int(n.pid))+"/"+from, unix.O_PATH|unix.O_CLOEXEC, 0)
}

// find is where a path of the program's leads: the argument path, in the folder
// that is the argument at. An empty one, or none (path is negative), is what at
// itself is. Another error is the kernel's: there is no such path.
func (b *broker) find(n *notice, at, arg int, follow bool) (place, error) {
	text := ""
	if arg >= 0 && n.args[arg] != 0 {
		var err error
		if text, err = b.text(n, n.args[arg]); err != nil || text == "" && n.call != sysUtimensat {
			return place{}, errElsewhere
		}
	}
	if b.isSystem(text) {
		return place{}, errElsewhere
	}
	from, err := base(n, at)
	if err != nil || !b.valid(n) {
		closeIf(from)
		return place{}, errElsewhere
	}
	p, err := b.walk(from, text, follow)
	if err != nil {
		return place{}, err
	}
	unnamed := p.unnamed
	p = b.of(p.path)
	p.unnamed, p.slash = unnamed, strings.HasSuffix(text, "/")
	if p.in != nil && !p.in.covered && !b.moving { // programs do that themselves
		return place{}, errElsewhere
	}
	if p.in == nil && !b.above[p.path] {
		return p, errElsewhere
	}
	return p, nil
}

// isSystem reports whether a path leads to a system program or a library without
// another look: most do.
func (b *broker) isSystem(text string) bool {
	if path.Clean(text) != text {
		return false
	}
	return slices.ContainsFunc([]string{"/usr", "/lib", "/lib64", "/etc", "/proc", "/dev"}, func(dir string) bool {
		return IsIn(text, []string{dir}) && !b.above[dir] && !slices.ContainsFunc(b.dirs, func(g guardedDir) bool {
			return IsIn(g.path, []string{dir}) || IsIn(dir, []string{g.path})
		})
	})
}

// walk follows a path, which begins in a folder that it closes.
func (b *broker) walk(from int, text string, follow bool) (place, error) {
	at := from
	defer func() { closeIf(at) }()
	for range MaxLinks {
		trimmed := strings.TrimRight(text, "/")
		slash := strings.LastIndexByte(trimmed, '/')
		dir, name := trimmed[:slash+1], trimmed[slash+1:]
		if trimmed == "" || name == "." || name == ".." {
			return whole(at, text)
		}
		if dir == "" {
			dir = "."
		}
		parent, err := unix.Openat2(at, dir, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_MAGICLINKS,
		})
		if err != nil {
			return place{}, err
		}
		closeIf(at)
		at = parent
		is, err := pathOf(parent)
		if err != nil || IsIn(is, []string{"/proc"}) { // links in it lead elsewhere for everybody
			return place{}, errElsewhere
		}
		var target [unix.PathMax]byte
		if n, err := unix.Readlinkat(parent, name, target[:]); err == nil && follow {
			text = string(target[:n])
			continue
		}
		return place{path: path.Join(is, name)}, nil
	}
	return place{}, unix.ELOOP
}

// whole is the place of a path without a name at its end.
func whole(at int, text string) (place, error) {
	if text == "" {
		is, err := pathOf(at)
		return place{path: is}, err
	}
	fd, err := unix.Openat2(at, text, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return place{}, err
	}
	defer unix.Close(fd)
	is, err := pathOf(fd)
	return place{path: is, unnamed: true}, err
}

func closeIf(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}
