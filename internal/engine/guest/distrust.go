package guest

import (
	"io/fs"
	"os"
	"syscall"
)

// distrust says why info may not be used, or "".
func distrust(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return "belongs to another user"
	case mode.IsDir() && mode.Perm()&0o077 != 0:
		return "open to other users"
	case mode.IsDir():
		return ""
	case !mode.IsRegular():
		return "not a regular file"
	case mode.Perm()&0o022 != 0:
		return "writable by other users"
	case st.Nlink != 1:
		return "has a second name"
	}
	return ""
}
