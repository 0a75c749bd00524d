//go:build unix

package home

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func owned(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if uid := os.Geteuid(); int(st.Uid) != uid && st.Uid != 0 {
		return fmt.Errorf("%s belongs to user %d, not to %d or root", path, st.Uid, uid)
	}
	return nil
}
