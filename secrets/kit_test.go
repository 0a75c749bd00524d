package secrets

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreign is a file's information as if it belonged to somebody else.
type foreign struct{ fs.FileInfo }

func (f foreign) Sys() any {
	st := *f.FileInfo.Sys().(*syscall.Stat_t)
	st.Uid = uint32(os.Geteuid() + 1)
	return &st
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

// owned is a file's information as if it belonged to a user; -1: nobody says.
type owned struct {
	fs.FileInfo
	user int
}

func (o owned) Sys() any {
	if o.user < 0 {
		return nil
	}
	return &syscall.Stat_t{Uid: uint32(o.user)}
}
