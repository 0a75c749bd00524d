package wasi

import "context"

const (
	direntSize = 24 // WASI's dirent, before the name
	direntMean = 32 // what an entry takes, roughly: how many to ask for at once
	direntMax  = 256
)

// fd_readdir(fd, buf, buf_len, cookie, bufused): entries from the cookie on, as
// many as fit, the last one cut. A buffer that is not filled says the end.
func fdReaddir(s *System, ctx context.Context, m memory, a []uint64) Errno {
	d, errno := s.fds.get(a[0])
	if errno != Success {
		return errno
	}
	buf, ok := m.at(uint32(a[1]), uint32(a[2]))
	used, ok2 := m.at(uint32(a[4]), 4)
	switch {
	case !ok || !ok2:
		return EFAULT
	case !d.isDir():
		return ENOTDIR
	case d.base&rightFDReaddir == 0:
		return ENOTCAPABLE
	}
	if errno := s.openPreopen(d); errno != Success {
		return errno
	}
	n, errno := fillDirents(ctx, d.file, buf, a[3])
	if ctx.Err() != nil {
		return s.stop(context.Cause(ctx))
	}
	if errno != Success {
		return errno
	}
	s.move(n)
	putU32(used, uint32(n))
	return Success
}

// openPreopen opens "/" when it is read for the first time: whether and how it
// may be listed is the FS's to say.
func (s *System) openPreopen(d *descriptor) Errno {
	if d.file != nil {
		return Success
	}
	f, errno := s.fs.Open("/", true, OpenFlags{Read: true, Directory: true})
	if errno != Success {
		return errno
	}
	d.file = f
	return Success
}

// fillDirents encodes entries until buf is full, the directory ends, or the run.
func fillDirents(ctx context.Context, f File, buf []byte, cookie uint64) (int, Errno) {
	used := 0
	for used < len(buf) && ctx.Err() == nil {
		want := min(max((len(buf)-used)/direntMean, 1), direntMax)
		entries, errno := f.Readdir(cookie, want)
		if errno != Success {
			return 0, errno
		}
		for _, e := range entries {
			cookie++
			used += putDirent(buf[used:], e, cookie) // 0 once buf is full
		}
		if len(entries) < want {
			break
		}
	}
	return used, Success
}

// putDirent writes as much of e as fits and returns how much that was.
func putDirent(buf []byte, e Dirent, next uint64) int {
	var head [direntSize]byte
	putU64(head[:], next)
	putU64(head[8:], e.Ino)
	putU32(head[16:], uint32(len(e.Name)))
	head[20] = byte(e.Type)
	n := copy(buf, head[:])
	return n + copy(buf[n:], e.Name)
}
