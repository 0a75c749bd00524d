package secrets

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user whose file it is.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
