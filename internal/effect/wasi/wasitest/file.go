package wasitest

import (
	"io"

	"runloop.dev/rlp/internal/effect/wasi"
)

// maxSize is how large a file may be made; more is EFBIG.
const maxSize = 64 << 20

// file is one open node.
type file struct {
	fs     *FS
	node   *node
	flags  wasi.OpenFlags
	pos    int64
	closed bool
}

func (f *file) may(ok bool) wasi.Errno {
	switch {
	case f.closed, !ok:
		return wasi.EBADF
	case f.node.kind == wasi.TypeDirectory:
		return wasi.EISDIR
	}
	return wasi.Success
}

func (f *file) Stat() (wasi.Stat, wasi.Errno) { return f.node.stat(), wasi.Success }

func (f *file) Read(p []byte) (int, wasi.Errno) {
	n, errno := f.Pread(p, f.pos)
	f.pos += int64(n)
	return n, errno
}

func (f *file) Pread(p []byte, off int64) (int, wasi.Errno) {
	if errno := f.may(f.flags.Read); errno != wasi.Success {
		return 0, errno
	}
	if off >= int64(len(f.node.data)) {
		return 0, wasi.Success
	}
	return copy(p, f.node.data[off:]), wasi.Success
}

func (f *file) Write(p []byte) (int, wasi.Errno) {
	if f.flags.Append {
		f.pos = int64(len(f.node.data))
	}
	n, errno := f.Pwrite(p, f.pos)
	f.pos += int64(n)
	return n, errno
}

// Pwrite appends under Append whatever the offset, as Linux does.
func (f *file) Pwrite(p []byte, off int64) (int, wasi.Errno) {
	if errno := f.may(f.flags.Write); errno != wasi.Success {
		return 0, errno
	}
	if f.flags.Append {
		off = int64(len(f.node.data))
	}
	if off > maxSize-int64(len(p)) {
		return 0, wasi.EFBIG
	}
	if errno := f.grow(off + int64(len(p))); errno != wasi.Success {
		return 0, errno
	}
	return copy(f.node.data[off:], p), wasi.Success
}

func (f *file) grow(n int64) wasi.Errno {
	if n > maxSize {
		return wasi.EFBIG
	}
	if d := n - int64(len(f.node.data)); d > 0 {
		f.node.data = append(f.node.data, make([]byte, d)...)
	}
	return wasi.Success
}

func (f *file) Lseek(off int64, whence int) (int64, wasi.Errno) {
	switch whence {
	case io.SeekCurrent:
		off += f.pos
	case io.SeekEnd:
		off += int64(len(f.node.data))
	}
	if off < 0 {
		return 0, wasi.EINVAL
	}
	f.pos = off
	return off, wasi.Success
}

func (f *file) SetSize(n int64) wasi.Errno {
	if errno := f.may(f.flags.Write); errno != wasi.Success {
		return wasi.EINVAL // as ftruncate
	}
	if n <= int64(len(f.node.data)) {
		f.node.data = f.node.data[:n]
		return wasi.Success
	}
	return f.grow(n)
}

func (f *file) Allocate(off, n int64) wasi.Errno {
	if errno := f.may(f.flags.Write); errno != wasi.Success {
		return errno
	}
	if off > maxSize || n > maxSize {
		return wasi.EFBIG
	}
	return f.grow(off + n)
}

func (f *file) SetTimes(t wasi.Times) wasi.Errno { return f.fs.setTimes(f.node, t) }

func (f *file) Sync(bool) wasi.Errno { return wasi.Success }

func (f *file) SetAppend(on bool) wasi.Errno {
	f.flags.Append = on
	return wasi.Success
}

func (f *file) Readdir(cookie uint64, n int) ([]wasi.Dirent, wasi.Errno) {
	if f.node.kind != wasi.TypeDirectory {
		return nil, wasi.ENOTDIR
	}
	all := []wasi.Dirent{
		{Name: ".", Ino: f.node.ino, Type: wasi.TypeDirectory},
		{Name: "..", Ino: f.node.parent.ino, Type: wasi.TypeDirectory},
	}
	for _, name := range f.node.names() {
		c := f.node.children[name]
		all = append(all, wasi.Dirent{Name: name, Ino: c.ino, Type: c.kind})
	}
	if cookie >= uint64(len(all)) {
		return nil, wasi.Success
	}
	all = all[cookie:]
	return all[:min(n, len(all))], wasi.Success
}

func (f *file) Close() wasi.Errno {
	if f.closed {
		return wasi.EBADF
	}
	f.closed = true
	f.fs.Opened--
	return wasi.Success
}
