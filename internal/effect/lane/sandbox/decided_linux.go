package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// decided refuses a file that is not the one that was decided about, be that known by
// its place on the disk or by what it holds. What it holds is read by the descriptor
// that is executed, whatever its path leads to by then.
func (p *Plan) decided(program int) error {
	var st unix.Stat_t
	if err := unix.Fstat(program, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG { // opening a device may do something
		return errors.New("it is no regular file")
	}
	if p.SHA256 == "" {
		if st.Dev != p.Dev || st.Ino != p.Ino {
			return errors.New("it has become another file")
		}
		return nil
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(program), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unwritten(fd); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, descriptor(fd)); err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != p.SHA256 {
		return fmt.Errorf("it is another file than its manifest means: its sha256 is %s, and is to be %s", got, p.SHA256)
	}
	return nil
}

// unwritten has whoever opens the file for writing wait while the descriptor is open,
// which is until it is executed: from then on the kernel lets nobody write a binary.
// It refuses a file that somebody has open for that. Nobody but root writes a file of
// root, to which others get no lease, and some file systems have none.
func unwritten(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	if errors.Is(err, unix.EAGAIN) {
		return errors.New("somebody is writing it")
	}
	return nil
}

// A descriptor is read; nothing closes it before the program has begun.
type descriptor int

func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
