package bundles

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"runloop.dev/rlp/internal/base/owner"
)

// openFlags keep an open from waiting for the other end of a pipe and from
// taking a terminal.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// checkOwner refuses what somebody else than the operator and root could have
// written. Folders above the bundle are not looked at: their owner could put
// another bundle there before it is opened, and nothing after.
func checkOwner(name string, f *os.File, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return &Error{File: name, Code: "owner", Message: "the owner cannot be told"}
	}
	if uid := os.Geteuid(); st.Uid != 0 && int64(st.Uid) != int64(uid) {
		return &Error{
			File: name, Code: "owner", Message: fmt.Sprintf("this belongs to user %d, not to you (%d) or root", st.Uid, uid),
			Hint: "copy the bundle",
		}
	}
	// A sticky bit is no excuse: it keeps others from what is there, not from
	// adding a policy.caps that was not.
	if who, mend := owner.Writers(f, info); who != "" {
		hint := "chmod -R " + mend + " the bundle"
		if info.Mode()&fs.ModeSticky != 0 {
			hint = "if all users share it, as they do /tmp, leave it as it is and name the bundle's own folder; else " + hint
		}
		return &Error{
			File: name, Code: "owner", Message: fmt.Sprintf("%s may write to this (mode %04o)", who, info.Mode().Perm()),
			Hint: hint,
		}
	}
	return nil
}
