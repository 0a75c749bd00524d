package resident

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Desks are threads that have a working folder of their own, each: a relative
// path means there what it means to the client. A desk that nobody waits for goes
// away when there are enough of them.
type desks struct{ free chan *desk }

type desk struct{ work chan *task }

type task struct {
	dir  *os.File
	do   func(dir string)
	done chan error
	hurt any // what it panicked with
}

// freeDesks is how many are kept for the next client.
const freeDesks = 8

func newDesks() *desks { return &desks{make(chan *desk, freeDesks)} }

// at does something in dir, on a desk, and waits for it. do gets the path of dir.
func (d *desks) at(dir *os.File, do func(dir string)) error {
	var one *desk
	select {
	case one = <-d.free:
	default:
		one = &desk{make(chan *task)}
		ready := make(chan error)
		go one.sit(ready)
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
	if t.hurt != nil {
		panic(t.hurt) // where it is the call's own
	}
	return err
}

// close lets the desks go that are free.
func (d *desks) close() {
	for {
		select {
		case one := <-d.free:
			close(one.work)
		default:
			return
		}
	}
}

// sit is the goroutine of a desk. It keeps its thread, which ends with it.
func (d *desk) sit(ready chan<- error) {
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
	defer func() { t.hurt = recover() }()
	t.do(path)
	return nil
}
