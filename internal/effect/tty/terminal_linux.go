package tty

import (
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// Is reports whether f is a terminal.
func Is(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := control(f, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) })
	return err == nil
}

// control does something to the descriptor of a file, and leaves alone whether that
// blocks.
func control[T any](f *os.File, do func(fd int) (T, error)) (got T, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return got, err
	}
	if failed := c.Control(func(fd uintptr) { got, err = do(int(fd)) }); failed != nil {
		return got, failed
	}
	return got, err
}

// A Terminal is the one that a person sees.
type Terminal struct {
	file *os.File

	mu     sync.Mutex
	before *unix.Termios // as it was when this process last took it; nil: it has not
	lent   bool          // somebody is asked there
	over   bool

	signals chan os.Signal
	stopped sync.WaitGroup
}

// drawn is told as a signal when others have drawn on the screen.
const drawn = unix.Signal(0)

// Hold takes the terminal, as soon as this process is in its foreground. changed is
// called when it may have another size, or modes, than before; again says that
// what was on the screen may be gone.
func Hold(f *os.File, changed func(t *Terminal, again bool)) *Terminal {
	t := &Terminal{file: f, signals: make(chan os.Signal, 4)}
	own().add(t)
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT)
	t.stopped.Go(func() {
		for s := range t.signals {
			if s == unix.SIGTSTP {
				t.leave()
				_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
				continue // what continues this process is another signal
			}
			if s == unix.SIGCONT { // a shell has had the terminal
				t.forget()
			}
			t.Foreground()
			changed(t, s == drawn)
		}
	})
	t.Foreground()
	return t
}

// Foreground reports whether this process may read the terminal, and has it in raw
// mode then. A terminal that is not this process's own may be read.
func (t *Terminal) Foreground() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !IsForeground(t.file) {
		return false
	}
	if t.before != nil || t.lent || t.over {
		return true
	}
	modes, err := t.Modes()
	if err != nil {
		return true
	}
	raw := *modes
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL |
		unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if t.set(&raw) == nil {
		t.before = modes
	}
	return true
}

func (t *Terminal) set(modes *unix.Termios) error {
	_, err := control(t.file, func(fd int) (struct{}, error) {
		return struct{}{}, unix.IoctlSetTermios(fd, unix.TCSETSW, modes)
	})
	return err
}

// leave gives the terminal back as it was. Who is in the background of it has lost it
// already, and would be stopped.
func (t *Terminal) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before != nil && IsForeground(t.file) {
		_ = t.set(t.before)
	}
	t.before = nil
}

// lend gives the terminal back until it is taken again.
func (t *Terminal) lend() {
	t.mu.Lock()
	t.lent = true
	t.mu.Unlock()
	t.leave()
}

func (t *Terminal) retake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lent = false; t.over {
		return
	}
	select {
	case t.signals <- drawn: // its goroutine takes it
	default:
	}
}

func (t *Terminal) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = nil
}

// Release gives the terminal back, for good. It may be called again.
func (t *Terminal) Release() {
	t.mu.Lock()
	was := t.over
	t.over = true
	t.mu.Unlock()
	if !was {
		own().remove(t)
		signal.Stop(t.signals)
		close(t.signals)
		t.stopped.Wait()
	}
	t.leave()
}

// Modes are the terminal's now; before it was taken, they are those that a shell set.
func (t *Terminal) Modes() (*unix.Termios, error) {
	return control(t.file, func(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) })
}

// Like makes another terminal as this one is: as large, and with start with the modes
// that this one had before it was taken.
func (t *Terminal) Like(other int, start bool) error {
	size, err := control(t.file, func(fd int) (*unix.Winsize, error) {
		return unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	})
	if err == nil {
		err = unix.IoctlSetWinsize(other, unix.TIOCSWINSZ, size)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && start && t.before != nil {
		err = unix.IoctlSetTermios(other, unix.TCSETS, t.before)
	}
	if err != nil {
		return fmt.Errorf("making a terminal as this one is: %w", err)
	}
	return nil
}

// IsForeground reports whether this process may read f: it is no terminal, another's,
// or one that it is in the foreground of. Who reads one from the background is stopped.
func IsForeground(f *os.File) bool {
	group, err := control(f, func(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCGPGRP) })
	return err != nil || group == unix.Getpgrp()
}
