//go:build linux || darwin

package jail

import (
	"golang.org/x/sys/unix"

	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
)

// Stat needs read: what a guest may only write, it may not look at.
func (j *Jail) Stat(p string, mustDir, follow bool) (wasi.Stat, wasi.Errno) {
	w := way{j: j, op: PathFilestatGet, modes: read, final: follow || mustDir}
	if e := w.begin(p); e != 0 {
		return wasi.Stat{}, e
	}
	return w.stat(mustDir)
}

// stat is what w comes to, links at the end followed if w.final says so.
func (w *way) stat(mustDir bool) (st wasi.Stat, e wasi.Errno) {
	for {
		err := w.j.lstat(w.permit, w.root, w.rel, &st)
		if err == nil && w.final && st.Type == wasi.TypeSymlink {
			err = unix.ELOOP
		}
		if err == nil {
			break
		}
		if e := w.failed(err); e != 0 {
			return wasi.Stat{}, e
		}
	}
	if mustDir && st.Type != wasi.TypeDirectory {
		return wasi.Stat{}, wasi.ENOTDIR
	}
	return st, 0
}

// SetTimes needs write.
func (j *Jail) SetTimes(p string, mustDir, follow bool, t wasi.Times) wasi.Errno {
	w := way{j: j, op: PathFilestatSetTimes, modes: writ, final: follow || mustDir}
	if e := w.begin(p); e != 0 {
		return e
	}
	if _, e := w.stat(mustDir); e != 0 { // w is now past every link
		return e
	}
	if w.rel == "" {
		dir, err := w.root.handle(w.permit)
		if err != nil {
			return errnoOf(err)
		}
		return setTimes(dir, ".", t)
	}
	dir, name, e := w.parent(wasi.EINVAL)
	if e != 0 {
		return e
	}
	defer w.root.release(dir)
	return setTimes(dir, name, t)
}

// setTimes sets the times of name in dir, and never those of what it links to.
func setTimes(dir int, name string, t wasi.Times) wasi.Errno {
	ts := timespecs(t)
	_, err := retry(func() (int, error) {
		return 0, unix.UtimesNanoAt(dir, name, ts[:], unix.AT_SYMLINK_NOFOLLOW)
	})
	return errnoOf(err)
}

// Readlink needs read. The text is the guest's to see, wherever it leads.
func (j *Jail) Readlink(p string, buf []byte) (int, wasi.Errno) {
	w := way{j: j, op: PathReadlink, modes: read}
	if e := w.begin(p); e != 0 {
		return 0, e
	}
	dir, name, e := w.parent(wasi.EINVAL)
	if e != 0 {
		return 0, e
	}
	defer w.root.release(dir)
	text, err := links.Text(dir, name)
	return copy(buf, text), errnoOf(err)
}

// lstatWalk is lstat for systems without openat2. rel is not "".
func (j *Jail) lstatWalk(p gate.Permit, r *root, rel string, st *wasi.Stat) error {
	dir, name, err := j.parentOf(p, r, rel)
	if err != nil {
		return err
	}
	defer r.release(dir)
	var raw unix.Stat_t
	if err := unix.Fstatat(dir, name, &raw, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	*st = statFrom(&raw)
	if st.Type == wasi.TypeDirectory && st.Dev != r.dev {
		return unix.EXDEV
	}
	return nil
}

func statOf(fd int, st *wasi.Stat) error {
	var raw unix.Stat_t
	if err := unix.Fstat(fd, &raw); err != nil {
		return err
	}
	*st = statFrom(&raw)
	return nil
}

func statFrom(raw *unix.Stat_t) wasi.Stat {
	return wasi.Stat{
		Dev: uint64(raw.Dev), Ino: raw.Ino, Nlink: uint64(raw.Nlink), Size: uint64(raw.Size),
		Type: typeOf(uint32(raw.Mode)), Atim: raw.Atim.Nano(), Mtim: raw.Mtim.Nano(), Ctim: raw.Ctim.Nano(),
	}
}

// typeOf is WASI's word for an S_IFMT. What a guest cannot open has none.
func typeOf(mode uint32) wasi.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return wasi.TypeRegular
	case unix.S_IFDIR:
		return wasi.TypeDirectory
	case unix.S_IFLNK:
		return wasi.TypeSymlink
	case unix.S_IFCHR:
		return wasi.TypeCharacter
	}
	return wasi.TypeUnknown
}

func timespecs(t wasi.Times) [2]unix.Timespec {
	return [2]unix.Timespec{
		timespec(t.Atim, t.NowAtim, t.OmitAtim),
		timespec(t.Mtim, t.NowMtim, t.OmitMtim),
	}
}

func timespec(ns int64, now, omit bool) unix.Timespec {
	switch {
	case omit:
		return unix.Timespec{Nsec: utimeOmit}
	case now:
		return unix.Timespec{Nsec: utimeNow}
	}
	return unix.NsecToTimespec(ns)
}
