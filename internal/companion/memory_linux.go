package companion

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Memory puts the companion into memory that nobody can write to any more, and
// returns a file whose name this process can start as long as it is open.
func (c *Companion) Memory() (*os.File, error) {
	fd, err := unix.MemfdCreate("rlp", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("extracting the companion: %w", os.NewSyscallError("memfd_create", err))
	}
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	f := os.NewFile(uintptr(fd), path)
	if err := c.copyTo(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("extracting the companion: %w", err)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("extracting the companion: %w", os.NewSyscallError("fcntl", err))
	}
	return f, nil
}
