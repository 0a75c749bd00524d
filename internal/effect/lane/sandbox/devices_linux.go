package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// still is how file systems are mounted that hold neither devices nor programs that
// run as somebody else.
const still = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

// processes is /proc of this process's own namespace, with nothing in it but
// processes: no settings of the machine.
func processes() (int, error) {
	fs, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetString(fs, "subset", "pid"); err != nil {
		return -1, fmt.Errorf("a /proc of processes alone: %w", err)
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("making a /proc: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, still|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, fmt.Errorf("mounting a /proc: %w", err)
	}
	return fd, nil
}

// DeviceNames are the devices that programs get. The terminal is the one that a
// program has, and nobody else's.
func (p *Plan) DeviceNames() []string {
	list := []string{"null", "zero", "full", "random", "urandom"}
	if p.Live {
		list = append(list, "tty")
	}
	return list
}

// DeviceLinks are the links among devices that programs get.
func (p *Plan) DeviceLinks() map[string]string {
	list := map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2", "shm": "/tmp",
	}
	if p.Live {
		list["ptmx"] = "pts/ptmx"
	}
	return list
}
