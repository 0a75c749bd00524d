package proxy

import (
	"cmp"
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeBytes is what one pipe holds at most, and one step of a flow.
const pipeBytes = 128 << 10

// mostPipes are kept for later: a flow that waits has none.
const mostPipes = 32

// A pipe holds bytes within the kernel between two sockets.
type pipe struct{ r, w int }

// close closes p, which may be none.
func (p *pipe) close() {
	if p == nil {
		return
	}
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// pipes are those that nobody uses. They are empty.
type pipes struct{ free chan *pipe }

func newPipes() *pipes { return &pipes{make(chan *pipe, mostPipes)} }

// get is nil where there is none to be had.
func (s *pipes) get() *pipe {
	select {
	case p := <-s.free:
		return p
	default:
	}
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return nil
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeBytes) // else it holds less at a time
	return &pipe{fds[0], fds[1]}
}

func (s *pipes) put(p *pipe) {
	select {
	case s.free <- p:
	default:
		p.close()
	}
}

func (s *pipes) close() {
	for range len(s.free) {
		(<-s.free).close()
	}
}

// move carries from one connection to another until the first ends, within the
// kernel where both are sockets of it.
func (s *pipes) move(to, from net.Conn, moved func(int64) error) error {
	source, ok := raw(from)
	sink, too := raw(to)
	if !ok || !too {
		return copied(to, from, moved)
	}
	f := flow{pipes: s}
	for {
		n, err := f.fill(source)
		if errors.Is(err, errNoPipe) {
			return copied(to, from, moved)
		}
		if err == nil && n > 0 {
			if err = moved(n); err == nil {
				err = f.drain(sink, n)
			}
		}
		if err != nil {
			f.p.close() // nobody else gets what is left in it
			return err
		}
		if n == 0 {
			s.put(f.p)
			return nil
		}
	}
}

func raw(c net.Conn) (syscall.RawConn, bool) {
	t, is := c.(*net.TCPConn)
	if !is {
		return nil, false
	}
	r, err := t.SyscallConn()
	return r, err == nil
}

var errNoPipe = errors.New("there is no pipe to be had")

// A flow is one direction of a connection, and the pipe that it has for now.
type flow struct {
	pipes *pipes
	p     *pipe
}

// fill waits until something comes from source, and puts it into the pipe. Nothing
// is its end. While it waits it has no pipe.
func (f *flow) fill(source syscall.RawConn) (n int64, err error) {
	failed := source.Read(func(fd uintptr) bool {
		if f.p == nil {
			if f.p = f.pipes.get(); f.p == nil {
				err = errNoPipe
				return true
			}
		}
		if n, err = spliced(int(fd), f.p.w, pipeBytes); err != unix.EAGAIN {
			return true
		}
		f.pipes.put(f.p)
		f.p = nil
		return false
	})
	if failed != nil {
		err = failed
	}
	return n, err
}

// drain writes the n bytes in the pipe to sink.
func (f *flow) drain(sink syscall.RawConn, n int64) error {
	for n > 0 {
		var wrote int64
		var err error
		failed := sink.Write(func(fd uintptr) bool {
			wrote, err = spliced(f.p.r, int(fd), int(n))
			return err != unix.EAGAIN
		})
		if failed != nil {
			return failed
		}
		if err != nil || wrote == 0 {
			return cmp.Or(err, io.ErrShortWrite)
		}
		n -= wrote
	}
	return nil
}

func spliced(from, to, most int) (int64, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if err != unix.EINTR {
			return n, err
		}
	}
}
