package wasi

import "strings"

// What a call is charged of the guest's fuel, in metered instructions; each
// byte that it moves is one more. docs/limits.md has the table.
const (
	costCall = 64
	costPath = 4096  // walks a path: several system calls
	costSync = 65536 // waits for a disk
)

func costOf(name string) int64 {
	switch {
	case strings.HasPrefix(name, "path_"):
		return costPath
	case name == "fd_sync" || name == "fd_datasync":
		return costSync
	}
	return costCall
}
