//go:build unix

package companion

import (
	"io/fs"
	"os"
	"syscall"
)

// ownFile reports whether a file belongs to this user.
func ownFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
