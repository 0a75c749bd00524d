package lane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"runloop.dev/rlp/internal/effect/lane/sandbox"
	"runloop.dev/rlp/internal/effect/tty"
)

// A relay moves what a program reads and writes between it and the files of a
// [Live]. Each direction has a goroutine of its own, so that one that nobody takes
// from holds up neither the others nor the end of the program's time.
type relay struct {
	live     *Live
	terminal bool // the program gets one of its own
	screen   *tty.Terminal
	theirs   [3]*os.File // the program's ends; nil where it gets others
	ours     [3]int      // -1: none
	held     int         // the program's side of its terminal
	out, err kept
	stop     int // an eventfd: the program has ended
	drop     int // another: nobody waits for what is not taken
	ended    chan struct{}
	passing  sync.WaitGroup // signals, until ended
	moved    chan struct{}  // all that there was
	once     sync.Once
	events   sync.Mutex // held while they are closed, or told of
	begun    bool
}

// kept is a [Keeper] that is looked at while somebody may still write.
type kept struct {
	sync.Mutex
	Keeper
}

func (k *kept) add(p []byte) {
	k.Lock()
	defer k.Unlock()
	_, _ = k.Write(p)
}

func (k *kept) is() Output {
	k.Lock()
	defer k.Unlock()
	return k.Output
}

// newRelay makes the program's ends; nil where its streams do not pass through.
func newRelay(c *Command) (_ *relay, err error) {
	if c.Live == nil {
		return nil, nil
	}
	r := &relay{
		live: c.Live, ours: [3]int{-1, -1, -1}, held: -1, stop: -1, drop: -1,
		ended: make(chan struct{}), moved: make(chan struct{}),
	}
	r.out.Max, r.err.Max = c.MaxOutput, c.MaxOutput
	defer func() {
		if err != nil {
			r.release()
			r.closeOurs()
		}
	}()
	for _, event := range []*int{&r.stop, &r.drop} {
		if *event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			*event = -1
			return nil, fmt.Errorf("making an event: %w", err)
		}
	}
	r.terminal = tty.Is(c.Live.Stdin) && tty.Is(c.Live.Stdout)
	for i := range r.ours {
		if i == 0 && c.Live.Stdin == nil || r.terminal && (i < 2 || c.Live.Stderr == nil || tty.Is(c.Live.Stderr)) {
			continue
		}
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return nil, fmt.Errorf("making a pipe: %w", err)
		}
		if i == 0 {
			p[0], p[1] = p[1], p[0]
		}
		r.ours[i], r.theirs[i] = p[0], os.NewFile(uintptr(p[1]), "stream")
		if err := unix.SetNonblock(p[0], true); err != nil {
			return nil, fmt.Errorf("making a pipe: %w", err)
		}
	}
	return r, nil
}

// release closes the program's ends, when it has them or will not.
func (r *relay) release() {
	if r == nil {
		return
	}
	for i, f := range r.theirs {
		if f != nil {
			_ = f.Close()
		}
		r.theirs[i] = nil
	}
}

func (r *relay) closeOurs() {
	for _, fd := range append(r.ours[:], r.stop, r.drop) {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// begin moves bytes from now on; pass, which does not block, passes signals on.
func (r *relay) begin(pass func(unix.Signal)) {
	if r == nil {
		return
	}
	var moving sync.WaitGroup
	if r.ours[0] >= 0 {
		moving.Go(func() { r.feed(r.live.Stdin, r.ours[0]) })
	}
	moving.Go(func() {
		r.move(r.ours[1], &r.out, func(p []byte) bool { return r.give(r.live.Stdout, p) })
	})
	if r.ours[2] >= 0 {
		moving.Go(func() { r.moveErrors() })
	}
	r.begun = true
	unpiped := func() {}
	if isPipe(r.live.Stdout) || isPipe(r.live.Stderr) {
		unpiped = tty.Pipe()
	}
	go func() {
		moving.Wait()
		unpiped()
		r.events.Lock()
		defer r.events.Unlock()
		_, _ = unix.Close(r.stop), unix.Close(r.drop)
		r.stop, r.drop = -1, -1
		close(r.moved)
	}()
	r.passing.Go(func() {
		for {
			select {
			case s := <-r.live.Signals:
				if number, ok := s.(unix.Signal); ok {
					pass(number)
				}
			case <-r.ended:
				return
			}
		}
	})
}

// serve takes rlp's side of the program's terminal, and the program's own, which is
// kept open: a program may close all that it has of it, and open it again.
func (r *relay) serve(ours, theirs int) error {
	r.ours[1], r.held = ours, theirs
	var err error
	if r.ours[0], err = unix.FcntlInt(uintptr(ours), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return fmt.Errorf("serving a terminal: %w", err)
	}
	if err := unix.SetNonblock(ours, true); err != nil {
		return fmt.Errorf("serving a terminal: %w", err)
	}
	r.screen = tty.Hold(r.live.Stdin, func(t *tty.Terminal, again bool) {
		if again { // a program draws what it has on the screen when the size is another
			_ = unix.IoctlSetWinsize(theirs, unix.TIOCSWINSZ, &unix.Winsize{Row: 1, Col: 1})
		}
		_ = t.Like(theirs, false)
	})
	return r.screen.Like(theirs, true)
}

// end says that the program has ended: no signal is passed any more. It waits until
// what the program wrote has been taken, but not after ctx, and not longer than most
// where that is not 0: whoever should take it may not.
func (r *relay) end(ctx context.Context, most time.Duration) {
	if r == nil {
		return
	}
	r.once.Do(func() {
		close(r.ended)
		if !r.begun {
			r.closeOurs()
			close(r.moved)
			return
		}
		r.passing.Wait()
		r.tell(&r.stop)
	})
	var late <-chan time.Time
	if most > 0 {
		t := time.NewTimer(most)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-r.moved:
	case <-ctx.Done():
		r.tell(&r.drop)
	case <-late:
		r.tell(&r.drop)
	}
	r.leave()
}

// leave gives rlp's terminal back.
func (r *relay) leave() {
	if r == nil || r.held < 0 {
		return
	}
	if r.screen != nil {
		r.screen.Release()
	}
	_ = unix.Close(r.held)
	r.held = -1
}

// tell has all who move something know of an event.
func (r *relay) tell(event *int) {
	r.events.Lock()
	defer r.events.Unlock()
	if one := [8]byte{1}; *event >= 0 {
		_, _ = unix.Write(*event, one[:])
	}
}

// wait waits until one of fds is ready, at most ms milliseconds where that is not
// negative.
func wait(fds []unix.PollFd, ms int) bool {
	for {
		switch n, err := unix.Poll(fds, ms); {
		case err == nil:
			return n > 0
		case !errors.Is(err, unix.EINTR):
			return false
		}
	}
}

// late is what is still taken of a program that has ended: what a pipe holds.
const late = 1 << 20

// moveErrors moves what the program writes to its stderr.
func (r *relay) moveErrors() {
	give := func(p []byte) bool { return r.give(r.live.Stderr, p) }
	pass := r.live.Errors
	if pass == nil {
		r.move(r.ours[2], &r.err, give)
		return
	}
	r.move(r.ours[2], &r.err, func(p []byte) bool { return pass(p, give) })
	pass(nil, give)
}

// move gives what the program writes to from, and closes from when nobody takes it any
// more.
func (r *relay) move(from int, k *kept, give func([]byte) bool) {
	defer unix.Close(from)
	buf := make([]byte, 32<<10)
	for over, left := false, late; left > 0; {
		fds := []unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}, {Fd: int32(r.stop), Events: unix.POLLIN}}
		ms := -1
		if over {
			fds, ms = fds[:1], 0
		}
		if !wait(fds, ms) {
			return
		}
		if fds[0].Revents == 0 {
			over = true
			continue
		}
		n, err := unix.Read(from, buf)
		switch {
		case n > 0:
			k.add(buf[:n])
			if !give(buf[:n]) {
				return
			}
			if over {
				left -= n
			}
		case n == 0 || !sandbox.IsOf(err, unix.EAGAIN, unix.EINTR):
			return
		}
	}
}

// give writes all of p to a file of rlp's own, a little at a time: so much does not
// block where the file takes anything. [os.File.Write] would end rlp where nobody
// reads its stdout any more.
func (r *relay) give(to *os.File, p []byte) (taken bool) {
	if to == nil {
		return true
	}
	withFile(to, func(fd int) {
		for len(p) > 0 {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}, {Fd: int32(r.drop), Events: unix.POLLIN}}
			if !wait(fds, -1) || fds[1].Revents != 0 {
				return
			}
			var n int
			var err error
			if !tty.Pass(func() { n, err = unix.Write(fd, p[:min(len(p), piece)]) }) {
				if wait(fds[1:], askedMS) {
					return
				}
				continue
			}
			if n > 0 {
				p = p[n:]
			} else if !sandbox.IsOf(err, unix.EAGAIN, unix.EINTR) {
				return
			}
		}
		taken = true
	})
	return taken
}

// isPipe reports whether another process reads what is written to f.
func isPipe(f *os.File) bool {
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

func withFile(f *os.File, do func(fd int)) {
	c, err := f.SyscallConn()
	if err == nil {
		_ = c.Control(func(fd uintptr) { do(int(fd)) })
	}
}

const (
	// piece is what a pipe takes that takes anything.
	piece = 4096
	// backgroundMS is how often rlp looks whether it is in the foreground, in milliseconds.
	backgroundMS = 200
	// askedMS is how often rlp looks whether a person has answered, in milliseconds.
	askedMS = 20
)

// feed gives the program what is read from rlp's stdin, as long as it takes any.
func (r *relay) feed(from *os.File, to int) {
	defer unix.Close(to)
	withFile(from, func(fd int) {
		stopped := unix.PollFd{Fd: int32(r.stop), Events: unix.POLLIN}
		buf := make([]byte, piece)
		for {
			taking := []unix.PollFd{{Fd: int32(to), Events: unix.POLLOUT}, stopped}
			if !wait(taking, -1) || taking[1].Revents != 0 || taking[0].Revents&unix.POLLERR != 0 {
				return
			}
			there := []unix.PollFd{{Fd: int32(to)}, stopped, {Fd: int32(fd), Events: unix.POLLIN}}
			if !r.foreground() {
				if wait(there[:2], backgroundMS) {
					return
				}
				continue
			}
			if !wait(there, -1) || there[0].Revents != 0 || there[1].Revents != 0 {
				return
			}
			if !r.foreground() { // meanwhile
				continue
			}
			n, err := 0, error(unix.EAGAIN)
			passed := tty.Pass(func() {
				if wait(there[2:], 0) { // or whoever was asked has typed it
					n, err = unix.Read(fd, buf)
				}
			})
			if !passed && wait(there[:2], askedMS) {
				return
			}
			if n == 0 && err == nil || n > 0 && !r.put(to, buf[:n]) ||
				err != nil && !sandbox.IsOf(err, unix.EAGAIN, unix.EINTR) {
				return
			}
		}
	})
}

// put writes all of p to the program, until it has ended.
func (r *relay) put(to int, p []byte) bool {
	for len(p) > 0 {
		n, err := unix.Write(to, p)
		if n > 0 {
			p = p[n:]
			continue
		}
		fds := []unix.PollFd{{Fd: int32(to), Events: unix.POLLOUT}, {Fd: int32(r.stop), Events: unix.POLLIN}}
		if !sandbox.IsOf(err, unix.EAGAIN, unix.EINTR) || !wait(fds, -1) || fds[1].Revents != 0 {
			return false
		}
	}
	return true
}

// foreground reports whether rlp's stdin may be read, and has it in raw mode where the
// program has a terminal of its own.
func (r *relay) foreground() bool {
	if r.screen != nil {
		return r.screen.Foreground()
	}
	return tty.IsForeground(r.live.Stdin)
}
