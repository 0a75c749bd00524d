//go:build linux || darwin

package jail

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/links"
)

// A root is one grant, pinned. A directory is pinned by its own handle. A
// granted file is pinned by its parent's handle and its name, so that it can be
// replaced, removed and made again; nothing but paths at or below that name
// ever reach the handle.
type root struct {
	path string
	fd   int
	dev  uint64
	cut  int  // bytes of an absolute path that the handle stands for, "/" after it included
	dir  bool // the handle is the grant itself
}

// rel is what of abs, a path at or below r.path, lies below the handle; "" is
// the handle itself.
func (r *root) rel(abs string) string {
	if len(abs) < r.cut {
		return ""
	}
	return abs[r.cut:]
}

// handle is the open directory, for who has a permit for what lies there.
func (r *root) handle(p gate.Permit) (int, error) {
	if !p.OK() {
		return -1, unix.EACCES
	}
	return r.fd, nil
}

func (r *root) close() { _ = unix.Close(r.fd) }

// pin opens the root at p and keeps it, or notes that it is missing.
func (j *Jail) pin(p string) error {
	if !isClean(p) {
		return ErrPath
	}
	if j.roots[p] != nil {
		return nil
	}
	fd, err := j.pinPath(p)
	if err == nil {
		kind, _ := kindOf(fd) // 0 is neither
		if kind == unix.S_IFDIR {
			return j.keep(&root{path: p, fd: fd, dir: true})
		}
		_ = unix.Close(fd)
		if kind != unix.S_IFREG {
			return ErrKind
		}
	}
	switch err {
	case nil:
	case unix.ENOENT:
		j.missing = append(j.missing, p)
	default:
		return moved(err)
	}
	// A file, or what may become one: its parent is what there is to stand on.
	switch fd, err = j.pinPath(path.Dir(p)); err {
	case nil:
		return j.keep(&root{path: p, fd: fd})
	case unix.ENOENT:
		return nil
	}
	return moved(err)
}

// moved is what it means that a path could not be pinned.
func moved(err error) error {
	if err == unix.ELOOP {
		return ErrMoved
	}
	return err
}

// keep enters r, whose handle is open, into the jail.
func (j *Jail) keep(r *root) error {
	var st unix.Stat_t
	if err := unix.Fstat(r.fd, &st); err != nil {
		r.close()
		return err
	}
	r.dev = uint64(st.Dev)
	stands := r.path
	if !r.dir {
		stands = path.Dir(r.path)
	}
	r.cut = len(stands) + 1
	if stands == "/" {
		r.cut = 1
	}
	j.roots[r.path] = r
	for len(j.depths) <= len(r.path) {
		j.depths = append(j.depths, false)
	}
	j.depths[len(r.path)] = true
	return nil
}

// rootOf returns the deepest root at or above abs, or nil. Which of two nested
// roots serves a path decides nothing about what is allowed: the gate judged
// the whole path, and no handle lets an operation leave what lies below it.
func (j *Jail) rootOf(abs string) *root {
	for p := abs; ; {
		if len(p) < len(j.depths) && j.depths[len(p)] {
			if r := j.roots[p]; r != nil {
				return r
			}
		}
		if p == "/" {
			return nil
		}
		i := strings.LastIndexByte(p, '/')
		p = p[:max(i, 1)]
	}
}

// holdsRoot reports whether any root lies below abs. (A granted directory has no
// name beneath a handle by which it could be removed or moved.)
func (j *Jail) holdsRoot(abs string) bool {
	for p := range j.roots {
		if p != abs && links.Within(p, abs) {
			return true
		}
	}
	return false
}

// stays reports whether name in dir, which is abs, is a folder that stays where it
// is, or holds what does.
func (j *Jail) stays(abs string, dir int, name string) bool {
	if j.holdsRoot(abs) {
		return true
	}
	for _, p := range j.stay {
		if !links.Within(p, abs) {
			continue
		}
		var st unix.Stat_t
		if p != abs || unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return true
		}
	}
	return false
}

// addAlias keeps a, longest Written first.
func (j *Jail) addAlias(a Alias) error {
	if !isClean(a.Written) || !isClean(a.Canonical) {
		return ErrPath
	}
	i := 0
	for i < len(j.aliases) && len(j.aliases[i].Written) >= len(a.Written) {
		i++
	}
	j.aliases = append(j.aliases[:i], append([]Alias{a}, j.aliases[i:]...)...)
	return nil
}

// canonical rewrites abs by the longest alias that it lies at or below.
func (j *Jail) canonical(abs string) string {
	for i := range j.aliases {
		a := &j.aliases[i]
		if links.Within(abs, a.Written) {
			return path.Join(a.Canonical, abs[len(a.Written):])
		}
	}
	return abs
}

// isClean reports whether p is absolute, lexically clean and free of NUL.
func isClean(p string) bool {
	return strings.HasPrefix(p, "/") && path.Clean(p) == p && strings.IndexByte(p, 0) < 0
}
