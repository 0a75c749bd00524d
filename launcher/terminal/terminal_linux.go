package terminal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openTerminal is the terminal of this process, when it is the one that the
// terminal listens to. What was typed before is forgotten: it is no answer.
func openTerminal() (screen, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.New("this process has none")
	}
	if err := readyToAsk(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func readyToAsk(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	err = errors.Join(raw.Control(func(fd uintptr) {
		group, ioctlErr := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
		if ioctlErr != nil || group != unix.Getpgrp() {
			err = errors.New("it belongs to another program now")
			return
		}
		err = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH)
	}), err)
	return err
}
