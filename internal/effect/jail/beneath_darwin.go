package jail

import (
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/wasi"
)

// searchFlags open a handle to step through. There is no handle without the
// right to read here, so it must not wait on a FIFO.
const searchFlags = unix.O_RDONLY | unix.O_NONBLOCK

// haveOpenat2 reports that there is no such call here.
func haveOpenat2() bool { return false }

// openAt opens rel beneath the directory at, which is on the device dev,
// without following a link: one on the way, or at the end without O_NOFOLLOW,
// is ELOOP.
func (j *Jail) openAt(at int, dev uint64, rel string, flags int, perm uint32) (int, error) {
	return walk(at, dev, rel, flags, perm)
}

func (j *Jail) pinPath(p string) (int, error) { return walkFromTop(p) }

// lstat is what rel beneath r is, a link at the end not followed.
func (j *Jail) lstat(p gate.Permit, r *root, rel string, st *wasi.Stat) error {
	dir, err := r.handle(p)
	switch {
	case err != nil:
		return err
	case rel == "":
		return statOf(dir, st)
	}
	return j.lstatWalk(p, r, rel, st)
}
