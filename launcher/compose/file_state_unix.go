//go:build unix

package compose

import (
	"time"

	"golang.org/x/sys/unix"
)

// A FileState tells one state of a file from another without reading it. The zero
// one is that of no file.
type FileState struct {
	dev, inode     uint64
	size           int64
	mode, uid      uint32
	mtime, changed time.Duration
}

// settled is how long after a change a file may still change without its times
// telling: clocks of file systems are coarse.
const settled = time.Second

// StateOf is the state of the file at a path; the zero one if there is none.
func StateOf(path string) FileState {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return FileState{}
	}
	return FileState{
		dev: uint64(st.Dev), inode: st.Ino, size: st.Size, mode: uint32(st.Mode), uid: st.Uid,
		mtime: time.Duration(st.Mtim.Nano()), changed: time.Duration(st.Ctim.Nano()),
	}
}

// Sure reports whether a file that is read at now, or later, can be told from
// what is read by another state.
func (s FileState) Sure(now time.Time) bool {
	return s != FileState{} && time.Duration(now.UnixNano())-s.changed > settled
}
