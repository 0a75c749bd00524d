package daemon

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Stream is one of a client's streams. It is the client's own open file: what
// it waits for ends when the client is gone, or what it asked for is done.
type Stream struct {
	file *os.File
	raw  syscall.RawConn
	most int // bytes that can be written at once when it is ready; 0: any number, it never waits
	sock bool
	conn *conn
}

func newStream(fd int, name string, c *conn) (*Stream, error) {
	s := &Stream{file: os.NewFile(uintptr(fd), name), conn: c}
	var err error
	if s.raw, err = s.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, errors.Join(os.NewSyscallError("fstat", err), s.file.Close())
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		s.most = 4096 // PIPE_BUF
	case unix.S_IFSOCK:
		s.most, s.sock = 64<<10, true
	case unix.S_IFCHR:
		if st.Rdev != unix.Mkdev(1, 3) { // the null device is always ready
			s.most = 256
		}
	}
	return s, nil
}

// File is the open file, to ask what it is.
func (s *Stream) File() *os.File { return s.file }

// Read reads as os.Stdin does.
func (s *Stream) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	err = s.do("read", func(fd int) error {
		if err := s.ready(fd, unix.POLLIN); err != nil {
			return err
		}
		var err error
		n, err = unix.Read(fd, p)
		return err
	})
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// Write writes as os.Stdout does.
func (s *Stream) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		part := p[n:]
		if s.most > 0 && len(part) > s.most {
			part = part[:s.most]
		}
		err = s.do("write", func(fd int) error {
			if err := s.ready(fd, unix.POLLOUT); err != nil {
				return err
			}
			done, err := s.put(fd, part)
			n += max(done, 0)
			return err
		})
	}
	return n, err
}

func (s *Stream) put(fd int, p []byte) (int, error) {
	if s.sock {
		return unix.SendmsgN(fd, p, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	}
	return unix.Write(fd, p)
}

// do does one thing with the descriptor, once more when it was interrupted or
// another one who writes to it was faster.
func (s *Stream) do(op string, f func(fd int) error) error {
	var err error
	for {
		gone := s.raw.Control(func(fd uintptr) { err = f(int(fd)) })
		switch {
		case gone != nil:
			return &fs.PathError{Op: op, Path: s.file.Name(), Err: os.ErrClosed}
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return &fs.PathError{Op: op, Path: s.file.Name(), Err: err}
		}
		return nil
	}
}

// ready waits until the stream can be read or written, or the client is gone.
func (s *Stream) ready(fd int, events int16) error {
	if s.most == 0 {
		return nil
	}
	err := s.conn.control(func(client int) error {
		both := []unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(client), Events: unix.POLLRDHUP}}
		_, err := unix.Poll(both, -1)
		if err == nil && both[0].Revents == 0 {
			return unix.ECANCELED
		}
		return err
	})
	return err
}
