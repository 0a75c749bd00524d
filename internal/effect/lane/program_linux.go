package lane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A pinned program is one file, whatever its path leads to from here on.
type pinned struct {
	fd     int  // O_PATH, closed on exec
	script bool // begins with "#!"
}

// pin opens the file at a canonical path. No link is followed, so a path that
// has become another one is refused, and what is executed is the file that is
// looked at here.
func pin(path string) (*pinned, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%w: %s is no absolute path", ErrNotProgram, path)
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil, ErrNotExist
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotProgram, err)
	}
	p := &pinned{fd: fd}
	if err := p.check(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// CheckProgram says why the file at a canonical path is no program.
func CheckProgram(path string) error {
	p, err := pin(path)
	if err == nil {
		p.close()
	}
	return err
}

func (p *pinned) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(p.fd, &st); err != nil {
		return fmt.Errorf("looking at the program: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ErrNotProgram
	}
	if err := unix.Faccessat(unix.AT_FDCWD, p.path(), unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("%w: %w", ErrNotProgram, err)
	}
	head, err := p.head()
	p.script = bytes.HasPrefix(head, []byte("#!"))
	return err
}

// head is how the file begins. A file that may be executed and not be read
// cannot be a script.
func (p *pinned) head() ([]byte, error) {
	fd, err := unix.Open(p.path(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	defer unix.Close(fd)
	var buf [maxShebang]byte
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	return buf[:n], nil
}

func (p *pinned) path() string { return "/proc/self/fd/" + strconv.Itoa(p.fd) }

func (p *pinned) close() { _ = unix.Close(p.fd) }

// maxShebang is what the kernel reads of a script's first line.
const maxShebang = 256

// Interpreter is the program that the kernel starts for the script at path; ""
// when the file is no script, or cannot be read.
func Interpreter(path string) string {
	if words := firstLine(path); len(words) > 0 {
		return words[0]
	}
	return ""
}

// firstLine are the words behind #! of a script, as the kernel reads them.
func firstLine(path string) []string {
	p, err := pin(path)
	if err != nil {
		return nil
	}
	defer p.close()
	head, err := p.head()
	if err != nil || !p.script {
		return nil
	}
	line, _, _ := strings.Cut(string(head[2:]), "\n")
	return strings.Fields(line)
}

// IsTool reports whether a file is a program which rlp may trust with what it
// keeps from others: nobody but root and who runs rlp can have written it.
func IsTool(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || unix.Access(path, unix.X_OK) != nil {
		return false
	}
	return (st.Uid == 0 || st.Uid == uint32(os.Geteuid())) && st.Mode&(unix.S_IWGRP|unix.S_IWOTH) == 0
}
