package secrets

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user whose file it is, -1 where the system does not say.
func ownerOf(info fs.FileInfo) int {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(st.Uid)
}
