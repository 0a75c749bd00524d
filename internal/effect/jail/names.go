//go:build linux || darwin

package jail

import (
	"strings"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
)

// Mkdir needs write.
func (j *Jail) Mkdir(p string) wasi.Errno {
	w := way{j: j, op: PathCreateDirectory, modes: writ}
	return w.do(p, wasi.EEXIST, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o777) })
}

// Rmdir needs delete. A directory that is a grant, or holds one, is EBUSY.
func (j *Jail) Rmdir(p string) wasi.Errno {
	w := way{j: j, op: PathRemoveDirectory, modes: del}
	return w.do(p, wasi.EBUSY, func(dir int, name string) error {
		if j.stays(w.path, dir, name) {
			return unix.EBUSY
		}
		return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	})
}

// Unlink needs delete. It removes a link, never what the link leads to.
func (j *Jail) Unlink(p string, mustDir bool) wasi.Errno {
	w := way{j: j, op: PathUnlinkFile, modes: del}
	return w.do(p, wasi.EISDIR, func(dir int, name string) error {
		var st unix.Stat_t
		if mustDir {
			err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
			if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
				err = unix.ENOTDIR
			}
			if err != nil {
				return err
			}
		}
		return unix.Unlinkat(dir, name, 0)
	})
}

// Symlink needs write on path, and read on all that target leads to from there. No
// link is made where a path is granted, or above one: EBUSY.
func (j *Jail) Symlink(target, p string) wasi.Errno {
	w := way{j: j, op: PathSymlink, modes: writ}
	switch {
	case target == "":
		return wasi.ENOENT
	case strings.IndexByte(target, 0) >= 0:
		return wasi.EINVAL
	}
	return w.do(p, wasi.EEXIST, func(dir int, name string) error {
		placing := links.Placing{Holder: holder{j: j, op: PathSymlink}}
		if err := placing.Link(w.path, target); err != nil {
			return err
		}
		return unix.Symlinkat(target, dir, name)
	})
}

// do puts p to the gate, opens the directory that its last component lies in,
// and calls f on the two. self is the answer when p is a grant's own directory.
func (w *way) do(p string, self wasi.Errno, f func(dir int, name string) error) wasi.Errno {
	if e := w.begin(p); e != 0 {
		return e
	}
	dir, name, e := w.parent(self)
	if e != 0 {
		return e
	}
	defer w.root.release(dir)
	_, err := retry(func() (int, error) { return 0, f(dir, name) })
	return errnoOf(err)
}

// Rename needs read, write and delete on from, and write on to, each with
// everything below it, and read on all that a link leads to from where it then
// lies. A directory that is a grant, or holds one, is EBUSY.
func (j *Jail) Rename(from, to string, mustDir bool) wasi.Errno {
	src := way{j: j, op: PathRename, modes: read | writ | del, tree: true}
	dst := way{j: j, op: PathRename, modes: writ, tree: true}
	return both(&src, &dst, from, to, func(fd int, old string, tfd int, name string) error {
		if j.stays(src.path, fd, old) || j.stays(dst.path, tfd, name) {
			return unix.EBUSY
		}
		if mustDir {
			var st unix.Stat_t
			err := unix.Fstatat(fd, old, &st, unix.AT_SYMLINK_NOFOLLOW)
			if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
				err = unix.ENOTDIR
			}
			if err != nil {
				return err
			}
		}
		placing := links.Placing{Holder: holder{j: j, op: PathRename, dev: src.root.dev}, From: src.path, To: dst.path}
		if err := placing.Entry(fd, old, dst.path); err != nil {
			return err
		}
		return unix.Renameat(fd, old, tfd, name)
	})
}

// Link needs read and write on from, or a file that may only be read could be
// written by its new name, and write on to. A link itself needs read on all that
// it leads to from there.
func (j *Jail) Link(from string, follow bool, to string) wasi.Errno {
	src := way{j: j, op: PathLink, modes: read | writ, final: follow}
	dst := way{j: j, op: PathLink, modes: writ}
	return both(&src, &dst, from, to, func(fd int, old string, tfd int, name string) error {
		placing := links.Placing{Holder: holder{j: j, op: PathLink}}
		if err := placing.Named(fd, old, dst.path); err != nil {
			return err
		}
		return unix.Linkat(fd, old, tfd, name, 0)
	})
}

// both puts two paths to the gate, opens the directories that their last
// components lie in, and calls f on the four.
func both(src, dst *way, from, to string, f func(fd int, old string, tfd int, name string) error) wasi.Errno {
	if e := src.begin(from); e != 0 {
		return e
	}
	if e := dst.begin(to); e != 0 {
		return e
	}
	if src.final {
		if _, e := src.stat(false); e != 0 { // src is now past every link
			return e
		}
	}
	fd, old, e := src.parent(wasi.EBUSY)
	if e != 0 {
		return e
	}
	defer src.root.release(fd)
	tfd, name, e := dst.parent(wasi.EBUSY)
	if e != 0 {
		return e
	}
	defer dst.root.release(tfd)
	if !src.j.gate.AdmitMove(src.op, src.path, dst.path) { // which are past every link now
		return wasi.EACCES
	}
	_, err := retry(func() (int, error) { return 0, f(fd, old, tfd, name) })
	return errnoOf(err)
}
