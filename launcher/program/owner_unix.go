//go:build unix

package program

import (
	"io/fs"
	"syscall"
)

// sameOwner reports whether two files belong to one user.
func sameOwner(one, other fs.FileInfo) bool {
	a, ok := one.Sys().(*syscall.Stat_t)
	b, also := other.Sys().(*syscall.Stat_t)
	return ok && also && a.Uid == b.Uid
}
