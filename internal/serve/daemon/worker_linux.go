package daemon

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Workers are threads that have a working folder of their own, each: a relative
// path means there what it means to the client. A worker that nobody waits for goes
// away when there are enough of them.
type workers struct{ free chan *worker }

type worker struct{ work chan *task }

type task struct {
	dir      *os.File
	do       func(dir string)
	done     chan error
	panicked any // with what
}

// freeWorkers is how many are kept for the next client.
const freeWorkers = 8

func newWorkers() *workers { return &workers{make(chan *worker, freeWorkers)} }

// at does something in dir, on a worker, and waits for it. do gets the path of dir.
func (d *workers) at(dir *os.File, do func(dir string)) error {
	var one *worker
	select {
	case one = <-d.free:
	default:
		one = &worker{make(chan *task)}
		ready := make(chan error)
		go one.serve(ready)
		if err := <-ready; err != nil {
			return err
		}
	}
	t := &task{dir: dir, do: do, done: make(chan error, 1)}
	one.work <- t
	err := <-t.done
	select {
	case d.free <- one:
	default:
		close(one.work)
	}
	if t.panicked != nil {
		panic(t.panicked) // where it is the call's own
	}
	return err
}

// close lets the workers go that are free.
func (d *workers) close() {
	for {
		select {
		case one := <-d.free:
			close(one.work)
		default:
			return
		}
	}
}

// serve is the goroutine of a worker. It keeps its thread, which ends with it.
func (d *worker) serve(ready chan<- error) {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		ready <- fmt.Errorf("a thread cannot have a folder of its own: %w", err)
		return
	}
	ready <- nil
	for t := range d.work {
		t.done <- t.run()
	}
}

func (t *task) run() error {
	raw, err := t.dir.SyscallConn()
	if err != nil {
		return err
	}
	var moved error
	err = raw.Control(func(fd uintptr) { moved = unix.Fchdir(int(fd)) })
	if err = errors.Join(err, moved); err != nil {
		return fmt.Errorf("entering the client's folder: %w", err)
	}
	defer unix.Chdir("/") //nolint:errcheck // the next one says where it is
	path, err := unix.Getwd()
	if err != nil {
		return fmt.Errorf("entering the client's folder: %w", err)
	}
	defer func() { t.panicked = recover() }()
	t.do(path)
	return nil
}
