package wasitest

import (
	"path"
	"strings"

	"runloop.dev/rlp/internal/effect/wasi"
)

// place is walk to a name that is to be made or taken away.
func (f *FS) place(p string, wantFree bool) (found, wasi.Errno) {
	w, errno := f.walk(p, false)
	switch {
	case errno != wasi.Success:
		return w, errno
	case path.Base(p) == "/":
		return w, wasi.EBUSY
	case wantFree && w.node != nil:
		return w, wasi.EEXIST
	case !wantFree && w.node == nil:
		return w, wasi.ENOENT
	}
	return w, wasi.Success
}

// Mkdir implements [wasi.FS].
func (f *FS) Mkdir(p string) wasi.Errno {
	f.see("mkdir", p)
	w, errno := f.place(p, true)
	if errno != wasi.Success {
		return errno
	}
	n := f.newNode(wasi.TypeDirectory)
	n.parent = w.dir
	w.dir.children[w.name] = n
	return wasi.Success
}

// Rmdir implements [wasi.FS].
func (f *FS) Rmdir(p string) wasi.Errno {
	f.see("rmdir", p)
	w, errno := f.place(p, false)
	switch {
	case errno != wasi.Success:
		return errno
	case w.node.kind != wasi.TypeDirectory:
		return wasi.ENOTDIR
	case len(w.node.children) > 0:
		return wasi.ENOTEMPTY
	}
	delete(w.dir.children, w.name)
	return wasi.Success
}

// Unlink implements [wasi.FS].
func (f *FS) Unlink(p string, mustDir bool) wasi.Errno {
	f.see("unlink", p)
	w, errno := f.place(p, false)
	switch {
	case errno != wasi.Success:
		return errno
	case w.node.kind == wasi.TypeDirectory:
		return wasi.EISDIR
	case mustDir:
		return wasi.ENOTDIR
	}
	delete(w.dir.children, w.name)
	w.node.nlink--
	return wasi.Success
}

// Rename implements [wasi.FS].
func (f *FS) Rename(from, to string, mustDir bool) wasi.Errno {
	f.see("rename", from)
	f.see("rename", to)
	src, errno := f.place(from, false)
	if errno != wasi.Success {
		return errno
	}
	dst, errno := f.walk(to, false)
	if errno != wasi.Success {
		return errno
	}
	dir := src.node.kind == wasi.TypeDirectory
	switch {
	case mustDir && !dir:
		return wasi.ENOTDIR
	case src.node == dst.node:
		return wasi.Success
	case dir && strings.HasPrefix(to+"/", from+"/"):
		return wasi.EINVAL
	case dst.node != nil && dir && dst.node.kind != wasi.TypeDirectory:
		return wasi.ENOTDIR
	case dst.node != nil && !dir && dst.node.kind == wasi.TypeDirectory:
		return wasi.EISDIR
	case dst.node != nil && len(dst.node.children) > 0:
		return wasi.ENOTEMPTY
	}
	delete(src.dir.children, src.name)
	dst.dir.children[dst.name] = src.node
	src.node.parent = dst.dir
	return wasi.Success
}

// Link implements [wasi.FS].
func (f *FS) Link(from string, follow bool, to string) wasi.Errno {
	f.see("link", from)
	f.see("link", to)
	n, errno := f.lookup(from, false, follow)
	if errno != wasi.Success {
		return errno
	}
	if n.kind == wasi.TypeDirectory {
		return wasi.EPERM
	}
	w, errno := f.place(to, true)
	if errno != wasi.Success {
		return errno
	}
	n.nlink++
	w.dir.children[w.name] = n
	return wasi.Success
}

// Symlink implements [wasi.FS].
func (f *FS) Symlink(target, p string) wasi.Errno {
	f.see("symlink", p)
	w, errno := f.place(p, true)
	if errno != wasi.Success {
		return errno
	}
	n := f.newNode(wasi.TypeSymlink)
	n.target = strings.Clone(target)
	w.dir.children[w.name] = n
	return wasi.Success
}

// Readlink implements [wasi.FS].
func (f *FS) Readlink(p string, buf []byte) (int, wasi.Errno) {
	f.see("readlink", p)
	n, errno := f.lookup(p, false, false)
	if errno != wasi.Success {
		return 0, errno
	}
	if n.kind != wasi.TypeSymlink {
		return 0, wasi.EINVAL
	}
	return copy(buf, n.target), wasi.Success
}
