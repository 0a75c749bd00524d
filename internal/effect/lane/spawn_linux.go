package lane

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/lane/sandbox"
)

// A spawner is a thread of rlp that has given up what programs shall not have,
// for good, and starts them: what a thread gives up its children do not get.
// The rest of rlp keeps what it has. The thread ends with the spawner.
type spawner struct {
	orders chan *order
	// enter puts the thread where programs are to be; then entered is closed.
	enter   func()
	entered chan struct{}
	give    func() error // gives up what programs shall not have
}

// An order is one program to start; the answer is in it when done is closed.
type order struct {
	path  string
	argv  []string
	attr  *syscall.ProcAttr
	end   int // instead: a process to end
	pid   int
	err   error
	ready chan struct{}
}

func newSpawner(enter func(), give func() error) *spawner {
	s := &spawner{orders: make(chan *order), enter: enter, entered: make(chan struct{}), give: give}
	go s.serve()
	<-s.entered
	return s
}

// serve is the thread. It is never given back: a thread that is locked when its
// goroutine ends is ended by the runtime.
func (s *spawner) serve() {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() { // the first thread speaks for the process and never ends
		moved := make(chan struct{})
		go func() {
			close(moved)
			s.serve()
		}()
		<-moved
		runtime.UnlockOSThread()
		return
	}
	s.enter()
	close(s.entered)
	err := s.give()
	for o := range s.orders {
		switch o.err = err; {
		case err != nil:
		case o.end > 0:
			o.err = unix.Kill(o.end, unix.SIGKILL)
		default:
			o.pid, o.err = syscall.ForkExec(o.path, o.argv, o.attr)
		}
		close(o.ready)
	}
}

func (s *spawner) do(o *order) (int, error) {
	o.ready = make(chan struct{})
	s.orders <- o
	<-o.ready
	return o.pid, o.err
}

// kill ends a process, if it is one of those that this thread can signal: what
// it has started, where it is confined by Landlock.
func (s *spawner) kill(pid int) error {
	_, err := s.do(&order{end: pid})
	return err
}

// harden takes from this thread, and so from every program that it starts:
// files that others may read or write, privileges to be gained by executing a
// file, capabilities, sockets, and power over other processes. What the kernel does not know is left out;
// what it knows and refuses is an error.
func harden() error {
	switch err := unix.Unshare(unix.CLONE_FS); {
	case err == nil:
		unix.Umask(0o077)
	case !errors.Is(err, unix.EPERM): // some containers forbid the call; the umask stays rlp's there
		return fmt.Errorf("giving programs a umask of their own: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("taking new privileges from programs: %w", err)
	}
	if err := sandbox.DropCapabilities(); err != nil {
		return fmt.Errorf("taking capabilities from programs: %w", err)
	}
	if err := sandbox.LandlockProcess(); err != nil {
		return fmt.Errorf("taking other processes from programs: %w", err)
	}
	if err := sandbox.FilterCalls(); err != nil {
		return fmt.Errorf("taking sockets and limits of others from programs: %w", err)
	}
	return nil
}
