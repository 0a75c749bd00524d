package lane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
	"runloop.dev/rlp/internal/effect/netns"
)

// ends are the child's ends of its streams, which are closed once it has them.
type ends [3]int

func (e *ends) close() {
	for i, fd := range e {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		e[i] = -1
	}
}

func (n *native) start(p *pinned, dir int, c *Command) (*child, error) {
	ch := &child{lane: n, pidfd: -1, said: -1, net: -1, in: -1, pending: c.Stdin}
	ch.out, ch.err = stream{-1, Keeper{Max: c.MaxOutput}}, stream{-1, Keeper{Max: c.MaxOutput}}
	theirs := ends{-1, -1, -1}
	defer theirs.close()
	files, err := ch.files(&theirs, c)
	if err != nil {
		return nil, errors.Join(err, ch.close())
	}
	defer c.Pipes.Close()
	defer ch.relay.release()
	var o *order
	if n.outer != nil {
		var theirs []*os.File
		if o, theirs, err = n.outer.order(ch, p, c, files); err == nil {
			defer closeAll(theirs)
		}
	} else {
		o = direct(p, dir, c, files)
	}
	if err == nil {
		o.attr.Sys.Setsid, o.attr.Sys.Pdeathsig, o.attr.Sys.PidFD = true, syscall.SIGKILL, &ch.pidfd
		err = n.spawn(ch, o)
	}
	if err != nil {
		return nil, errors.Join(err, ch.close())
	}
	return ch, nil
}

// files are the streams of what is started; those of the program are ch.streams
// where they pass through.
func (ch *child) files(theirs *ends, c *Command) (files []uintptr, err error) {
	if ch.relay, err = newRelay(c); err != nil {
		return nil, err
	}
	if err := ch.pipes(theirs, c); err != nil {
		return nil, err
	}
	null := ch.lane.null.Fd()
	files = []uintptr{null, null, uintptr(theirs[2])}
	if theirs[0] >= 0 {
		files[0] = uintptr(theirs[0])
	}
	switch {
	case c.Pipes != nil:
		files[0], files[1] = c.Pipes.Stdin.Fd(), c.Pipes.Stdout.Fd()
	case ch.relay != nil:
		ch.streams = [3]uintptr{files[0], null, null}
		for i, f := range ch.relay.theirs {
			if f != nil {
				ch.streams[i] = f.Fd()
			}
		}
		files[0] = null
	default:
		files[1] = uintptr(theirs[1])
	}
	return files, nil
}

// pass has what stands before the program pass a signal on to it.
func (ch *child) pass(s unix.Signal) {
	_ = unix.Sendto(ch.net, []byte{byte(s)}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
}

// direct is the order for a program that nothing stands before.
func direct(p *pinned, dir int, c *Command, files []uintptr) *order {
	path := p.path()
	if p.script { // its interpreter opens it again, by the descriptor that it gets
		files, path = append(files, uintptr(p.fd)), "/proc/self/fd/3"
	}
	return &order{path: path, argv: c.Argv, attr: &syscall.ProcAttr{
		Dir: fmt.Sprintf("/proc/self/fd/%d", dir), Env: c.Env, Files: files, Sys: &syscall.SysProcAttr{},
	}}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// pipes makes the pipes of a child: all three, or the one of its stderr where its
// stdin and stdout are others. Our ends never block, its own do.
func (ch *child) pipes(theirs *ends, c *Command) error {
	pipe := func(ours, their *int, writing int) error {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return fmt.Errorf("making a pipe: %w", err)
		}
		*ours, *their = p[writing], p[1-writing]
		return unix.SetNonblock(*ours, true)
	}
	if c.Live != nil && c.Live.Stdin != nil {
		ch.pending = nil
	}
	if c.Pipes == nil && len(ch.pending) > 0 {
		if err := pipe(&ch.in, &theirs[0], 1); err != nil {
			return err
		}
	}
	if c.Pipes != nil || c.Live != nil {
		return pipe(&ch.err.fd, &theirs[2], 0)
	}
	return errors.Join(pipe(&ch.out.fd, &theirs[1], 0), pipe(&ch.err.fd, &theirs[2], 0))
}

// spawn starts what o says. A control group that takes nobody is done without:
// the sweep finds what it would have held.
func (n *native) spawn(ch *child, o *order) error {
	if n.group != nil {
		o.attr.Sys.UseCgroupFD, o.attr.Sys.CgroupFD = true, n.group.dir
	}
	pid, err := n.launch(o)
	// what it bounds is enforced, or nothing is started
	promised := n.outer != nil && n.group != nil && (n.group.memory || n.group.pids)
	if err != nil && n.group != nil && !promised && sandbox.IsOf(err, unix.EACCES, unix.EPERM, unix.EBUSY, unix.ENOSYS,
		unix.EINVAL, unix.EOPNOTSUPP, unix.ENODEV) {
		o.attr.Sys.UseCgroupFD = false
		if pid, err = n.launch(o); err == nil {
			err = n.group.close()
			n.group = nil
		}
	}
	ch.pid = pid
	switch {
	case err == nil && ch.pidfd < 0:
		ch.kill()
		return &UnsupportedError{Lane: n.Name(), Why: "the kernel has no pidfd"}
	case n.outer != nil:
		return n.outer.started(err)
	case err == nil:
		n.limitData(pid)
		return nil
	case errors.Is(err, unix.E2BIG):
		return ErrTooBig
	// no format that is known, or an interpreter that is not there
	case sandbox.IsOf(err, unix.ENOEXEC, unix.ENOENT, unix.EACCES):
		return fmt.Errorf("%w: %w", ErrNotProgram, err)
	}
	return fmt.Errorf("starting the program: %w", err)
}

// limitData bounds the memory of a process where no group bounds that of all.
// It is best effort: the program has begun, and each that it starts gets as much.
func (n *native) limitData(pid int) {
	if n.boundsMemory() {
		return
	}
	most := uint64(n.cfg.Bounds.OrDefault().Memory)
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil)
}

// watch serves the child's streams until it has ended, or must; then nothing of
// its group is left, and what it wrote has been read.
func (ch *child) watch(ctx context.Context, c *Command) (*Result, error) {
	defer ch.lane.wakeAt(ctx)()
	end, unserved := ch.network(c)
	defer end()
	if unserved == nil {
		unserved = ch.joined()
	}
	defer ch.relay.leave() // should this break, too
	killed, err := ch.serve(ctx, c.deadline())
	if err == nil && killed {
		ch.kill()
		var over bool
		if over, err = ch.serve(context.WithoutCancel(ctx), time.Now().Add(killTime)); over {
			err = ErrStray
		}
	}
	if err != nil {
		return nil, err
	}
	status, err := ch.end()
	if err != nil {
		return nil, err
	}
	ch.out.drain(ch.lane.buf)
	ch.err.drain(ch.lane.buf)
	ch.written(ctx, killed)
	r := &Result{ExitCode: status.ExitStatus(), Stdout: ch.out.Output, Stderr: ch.err.Output}
	if ch.relay != nil {
		r.Stdout, r.Stderr = ch.relay.out.is(), ch.relay.err.is()
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if err := cmp.Or(ch.refused(status), unserved); err != nil {
		return nil, err
	}
	if status.Signaled() {
		r.Signal = status.Signal()
		r.ExitCode = 128 + int(r.Signal)
	}
	r.TimedOut = killed && status.Signaled()
	return r, nil
}

// joined has the program's streams moved, after its terminal was taken where it has
// one. Where that fails the child is ended.
func (ch *child) joined() error {
	if ch.relay != nil && ch.relay.terminal {
		ours, theirs, err := sandbox.ReceiveTerminal(ch.net)
		if err == nil {
			err = ch.relay.serve(ours, theirs)
		}
		if err == nil {
			err = unix.Sendto(ch.net, []byte{0}, unix.MSG_NOSIGNAL, nil)
		}
		if err != nil {
			ch.kill()
			return errors.Join(errUnserved, err)
		}
	}
	ch.relay.begin(ch.pass)
	return nil
}

// written waits until what passes through has been taken. Where the program had to be
// ended, whoever takes it has no more time than that took.
func (ch *child) written(ctx context.Context, killed bool) {
	if ch.relay == nil {
		return
	}
	most := time.Duration(0)
	if killed {
		most = killTime
	}
	ch.relay.end(ctx, most)
}

// deadline is when the program's time is over.
func (c *Command) deadline() time.Time {
	const never = 100 * 365 * 24 * time.Hour
	if c.Timeout == 0 && c.Live != nil {
		return time.Now().Add(never)
	}
	return time.Now().Add(c.Timeout)
}

// serve moves bytes until the child has ended; over says that it has not, and
// that the time is over or ctx has ended.
func (ch *child) serve(ctx context.Context, deadline time.Time) (over bool, err error) {
	fds := make([]unix.PollFd, 6)
	for {
		left := time.Until(deadline)
		if left <= 0 || ctx.Err() != nil {
			return true, nil
		}
		fds[0] = unix.PollFd{Fd: int32(ch.pidfd), Events: unix.POLLIN}
		fds[1] = unix.PollFd{Fd: int32(ch.lane.wake), Events: unix.POLLIN}
		fds[2] = unix.PollFd{Fd: int32(ch.in), Events: unix.POLLOUT} // a negative one is left out
		fds[3] = unix.PollFd{Fd: int32(ch.out.fd), Events: unix.POLLIN}
		fds[4] = unix.PollFd{Fd: int32(ch.err.fd), Events: unix.POLLIN}
		if fds[5] = (unix.PollFd{Fd: int32(ch.said), Events: unix.POLLIN}); ch.mute {
			fds[5].Fd = -1
		}
		ms := min(left, time.Hour)/time.Millisecond + 1
		if _, err := unix.Poll(fds, int(ms)); err != nil && !errors.Is(err, unix.EINTR) {
			return false, fmt.Errorf("waiting for a program: %w", err)
		}
		if fds[1].Revents != 0 {
			ch.lane.calm()
		}
		if fds[2].Revents != 0 {
			ch.feed()
		}
		if fds[3].Revents != 0 {
			ch.out.read(ch.lane.buf)
		}
		if fds[4].Revents != 0 {
			ch.err.read(ch.lane.buf)
		}
		if fds[5].Revents != 0 {
			ch.listen()
		}
		if fds[0].Revents != 0 || ch.over {
			return false, nil
		}
	}
}

// feed gives the child what it takes of its stdin.
func (ch *child) feed() {
	n, err := unix.Write(ch.in, ch.pending)
	if n > 0 {
		ch.pending = ch.pending[n:]
	}
	if len(ch.pending) == 0 || err != nil && !sandbox.IsOf(err, unix.EAGAIN, unix.EINTR) { // EPIPE: it reads no more
		_ = unix.Close(ch.in)
		ch.in = -1
	}
}

func (s *stream) read(buf []byte) bool {
	n, err := unix.Read(s.fd, buf)
	if n > 0 {
		_, _ = s.Write(buf[:n])
		return true
	}
	if sandbox.IsOf(err, unix.EINTR) {
		return true
	}
	if n == 0 || !sandbox.IsOf(err, unix.EAGAIN) {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
	return false
}

// drain takes all that is left. Nobody writes any more, or what he writes
// comes too late: a pipe holds only so much.
func (s *stream) drain(buf []byte) {
	for left := 1 << 20; s.fd >= 0 && left > 0; left -= len(buf) {
		if !s.read(buf) {
			return
		}
	}
}

// kill ends the child and its group. It has not been reaped, so that its number
// is still its own.
func (ch *child) kill() {
	if ch.pid > 0 && !ch.ended {
		_ = unix.Kill(-ch.pid, unix.SIGKILL)
		_ = unix.Kill(ch.pid, unix.SIGKILL)
	}
}

func (ch *child) reap() (status unix.WaitStatus, err error) {
	ch.kill()
	for {
		_, err := unix.Wait4(ch.pid, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		ch.ended = true
		if err != nil {
			return status, fmt.Errorf("waiting for a program: %w", err)
		}
		return status, nil
	}
}

func (ch *child) close() error {
	if ch.pid > 0 && !ch.ended {
		ch.kill()
		var status unix.WaitStatus
		if _, err := unix.Wait4(ch.pid, &status, unix.WNOHANG, nil); err == nil {
			ch.ended = status.Exited() || status.Signaled()
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	ch.relay.end(gone, 0)
	for _, fd := range []int{ch.pidfd, ch.said, ch.net, ch.in, ch.out.fd, ch.err.fd} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	ch.pidfd, ch.said, ch.net, ch.in, ch.out.fd, ch.err.fd = -1, -1, -1, -1, -1, -1
	return nil
}

// wakeAt makes serve look at ctx when it ends. What it returns is called before
// the descriptor that it writes to is given up.
func (n *native) wakeAt(ctx context.Context) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		one := [8]byte{1}
		_, _ = unix.Write(n.wake, one[:])
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

func (n *native) calm() {
	var count [8]byte
	_, _ = unix.Read(n.wake, count[:])
}

// handOver is how long a confined rlp may take to make a network or a terminal, in seconds.
const handOver = 30

// network takes the child's network, where it makes one, and has it served. What
// it returns ends that. Where that fails the child is ended.
func (ch *child) network(c *Command) (end func(), err error) {
	if ch.net < 0 || c.Network == nil {
		return func() {}, nil
	}
	defer func() {
		if ch.relay == nil { // signals are passed by it
			_ = unix.Close(ch.net)
			ch.net = -1
		}
		if err != nil {
			ch.kill()
			end = func() {}
		}
	}()
	s, err := netns.Receive(ch.net)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnserved, err)
	}
	if end, err = c.Network.Serve(s); err != nil {
		return nil, errors.Join(errUnserved, err)
	}
	ch.refusals = c.Network.Refused
	return end, nil
}
