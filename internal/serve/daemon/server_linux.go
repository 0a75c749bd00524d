package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options say how to serve.
type Options struct {
	Dir string // the folder of sockets and locks, its owner's alone

	Since time.Time     // when it began
	Idle  time.Duration // ends after so long without anything to do
	Most  int           // so many at once; more are declined

	// Handle does what a client asks for. It is called for several at once.
	Handle func(ctx context.Context, call *Call) Outcome
	// Ready is called when clients can connect, Over when nothing is under way any
	// more and before another process may serve.
	Ready, Over func()
}

// An Outcome is how a call ended, or why it was not begun.
type Outcome struct {
	Status   int
	Declined string
}

// requestWithin is how long a client has for its request.
const requestWithin = 2 * time.Second

// mostWaiting bounds the connections that have asked for nothing yet.
const mostWaiting = 64

// Serve serves until it has had nothing to do for long enough, is asked to stop,
// or ctx ends: then what is under way is cancelled, else it comes to its end.
// It returns what went wrong.
func Serve(ctx context.Context, o Options) error {
	s := &server{opt: o, workers: newWorkers(), declined: map[string]int{}, stop: make(chan struct{})}
	if err := s.open(); err != nil {
		return err
	}
	defer unix.Close(proofFD) //nolint:errcheck // it was opened for this
	defer s.lock.Close()      //nolint:errcheck // ends with the process at the latest
	s.ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	s.mu.Lock()
	s.idle = time.AfterFunc(o.Idle, s.unlessBusy)
	s.mu.Unlock()
	go s.accept()
	o.Ready()
	select {
	case <-ctx.Done():
		s.end()
	case <-s.stop:
	}
	s.calls.Wait()
	s.workers.close()
	o.Over()
	return nil
}

type server struct {
	opt      Options
	ctx      context.Context
	cancel   context.CancelFunc
	self     identity
	fronts   []front
	lock     *os.File
	listener *conn
	workers  *workers
	calls    sync.WaitGroup
	packets  sync.Pool // room for a request each

	mu       sync.Mutex
	over     bool
	waiting  int // connections
	running  int // launches
	done     int
	declined map[string]int
	idle     *time.Timer
	stop     chan struct{}
}

// A front is a file that clients may be running, by its path.
type front struct {
	path string
	was  program
}

func (s *server) open() error {
	if err := s.know(); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	var err error
	if s.lock, err = lockIn(s.opt.Dir); err != nil {
		return errors.Join(fmt.Errorf("serving: %w", err), unix.Close(proofFD))
	}
	if s.listener, err = listen(filepath.Join(s.opt.Dir, SocketName)); err != nil {
		return errors.Join(fmt.Errorf("serving: %w", err), s.lock.Close(), unix.Close(proofFD))
	}
	return nil
}

// know learns what clients are compared with.
func (s *server) know() error {
	s.self.uid = os.Geteuid()
	proc, err := processes(os.Getpid())
	if err != nil {
		return err
	}
	defer unix.Close(proc)
	if s.self.own, err = attributesOf(os.Getpid(), proc); err != nil {
		return err
	}
	s.self.programs = &programs{}
	self, err := s.self.programs.add(proc, "exe")
	if err != nil {
		return err
	}
	if path, err := os.Executable(); err == nil {
		if at, err := programAt(unix.AT_FDCWD, path); err == nil && at == self { // it may have no name
			s.fronts = append(s.fronts, front{path, at})
		}
	}
	if err := s.tryDesk(); err != nil {
		return err
	}
	s.self.proof, err = newProof()
	return err
}

// tryDesk sees whether this system lets threads have folders of their own.
func (s *server) tryDesk() error {
	dir, err := os.Open("/")
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.workers.at(dir, func(string) {})
}

// lockIn claims the folder: one process serves.
func lockIn(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(ErrServed, f.Close())
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return f, nil
}

// listen makes the socket. What is there already is nobody's: the lock is ours.
func listen(path string) (*conn, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	short, release, err := shortened(path)
	if err != nil {
		return nil, err
	}
	defer release()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err = unix.Fchmod(fd, 0o600); err == nil { // what is bound gets the socket's own mode
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: short})
	}
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err == nil {
		err = unix.Listen(fd, mostWaiting)
	}
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	return newConn(fd)
}

// shortened is a path that fits into an address, through a handle of its folder.
func shortened(path string) (short string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)), func() { _ = unix.Close(fd) }, nil
}

func (s *server) accept() {
	for {
		var fd int
		var failed error
		err := s.listener.raw.Read(func(at uintptr) bool {
			fd, _, failed = unix.Accept4(int(at), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(failed, unix.EAGAIN)
		})
		switch {
		case err != nil: // closed
			return
		case failed != nil: // out of descriptors, or the client is gone again
			if !s.pause() {
				return
			}
			continue
		}
		c, err := newConn(fd)
		if err != nil {
			continue
		}
		if !s.admit(c) {
			c.close()
		}
	}
}

// pause lets others end first.
func (s *server) pause() bool {
	select {
	case <-s.stop:
		return false
	case <-time.After(10 * time.Millisecond):
		return true
	}
}

func (s *server) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.waiting >= mostWaiting {
		return false
	}
	s.waiting++
	s.calls.Go(func() { s.converse(c) })
	return true
}

// unlessBusy ends service when there is nothing to do.
func (s *server) unlessBusy() {
	s.mu.Lock()
	busy := s.waiting > 0 || s.running > 0
	s.mu.Unlock()
	if !busy {
		s.end()
	}
}

// end stops taking connections. Who is connecting at this moment finds the
// connection closed, and nothing begun.
func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	s.idle.Stop()
	if s.ours() {
		_ = os.Remove(filepath.Join(s.opt.Dir, SocketName))
	}
	s.listener.close()
	close(s.stop)
}

// ours reports whether the folder is still the one that was claimed: where it was
// removed and made again, another may serve.
func (s *server) ours() bool {
	mine, err := s.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(filepath.Join(s.opt.Dir, lockName))
	return err == nil && os.SameFile(mine, there)
}

const lockName = "daemon.lock"
