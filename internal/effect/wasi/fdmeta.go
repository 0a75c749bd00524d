package wasi

import (
	"context"
	"math"
)

// fd_close(fd)
func fdClose(s *System, _ context.Context, _ memory, a []uint64) Errno {
	d, errno := s.fds.get(a[0])
	if errno != Success {
		return errno
	}
	return s.fds.close(d)
}

// fd_renumber(fd, to)
func fdRenumber(s *System, _ context.Context, _ memory, a []uint64) Errno {
	return s.fds.renumber(a[0], a[1])
}

// fd_advise(fd, offset, len, advice): checked, and nothing to do.
func fdAdvise(s *System, _ context.Context, _ memory, a []uint64) Errno {
	const lastAdvice = 5
	d, errno := s.fds.get(a[0])
	switch {
	case errno != Success:
		return errno
	case d.in != nil || d.out != nil:
		return ESPIPE
	case uint32(a[3]) > lastAdvice || a[1] > math.MaxInt64 || a[2] > math.MaxInt64:
		return EINVAL
	}
	_, errno = s.fds.use(a[0], rightFDAdvise)
	return errno
}

// fd_allocate(fd, offset, len)
func fdAllocate(s *System, _ context.Context, _ memory, a []uint64) Errno {
	d, errno := s.positioned(a[0], rightFDAllocate)
	if errno != Success {
		return errno
	}
	off, n := a[1], a[2]
	if off > math.MaxInt64 || n == 0 || n > math.MaxInt64 {
		return EINVAL
	}
	if off+n > math.MaxInt64 {
		return EFBIG
	}
	return d.file.Allocate(int64(off), int64(n))
}

// fd_sync(fd)
func fdSync(s *System, _ context.Context, _ memory, a []uint64) Errno {
	return s.sync(a[0], rightFDSync, false)
}

// fd_datasync(fd)
func fdDatasync(s *System, _ context.Context, _ memory, a []uint64) Errno {
	return s.sync(a[0], rightFDDatasync, true)
}

func (s *System) sync(fd uint64, need rights, dataOnly bool) Errno {
	d, errno := s.fds.get(fd)
	switch {
	case errno != Success:
		return errno
	case d.in != nil || d.out != nil:
		return EINVAL // as fsync of a pipe
	case d.base&need == 0:
		return ENOTCAPABLE
	case d.file == nil:
		return Success // the preopen, never opened
	}
	return d.file.Sync(dataOnly)
}

// fd_fdstat_get(fd, stat)
func fdFdstatGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	d, errno := s.fds.get(a[0])
	if errno != Success {
		return errno
	}
	out, ok := m.at(uint32(a[1]), 24)
	if !ok {
		return EFAULT
	}
	kind, errno := d.fileType()
	if errno != Success {
		return errno
	}
	putU64(out, uint64(kind)|uint64(d.flags)<<16)
	putU64(out[8:], uint64(d.base))
	putU64(out[16:], uint64(d.inherited))
	return Success
}

// fd_fdstat_set_flags(fd, flags): append and nonblock can be changed, as by
// fcntl; the rest is fixed at open.
func fdFdstatSetFlags(s *System, _ context.Context, _ memory, a []uint64) Errno {
	d, errno := s.fds.get(a[0])
	if errno != Success {
		return errno
	}
	want := fdflags(a[1])
	changed := want ^ d.flags
	switch {
	case uint32(a[1]) > uint32(allFDFlags), changed&^(flagAppend|flagNonblock) != 0:
		return EINVAL
	case d.base&rightFDSetFlags == 0:
		return ENOTCAPABLE
	}
	if changed&flagAppend != 0 && d.file != nil {
		if errno := d.file.SetAppend(want&flagAppend != 0); errno != Success {
			return errno
		}
	}
	d.flags = want
	return Success
}

// fd_fdstat_set_rights(fd, base, inheriting): rights only narrow.
func fdFdstatSetRights(s *System, _ context.Context, _ memory, a []uint64) Errno {
	d, errno := s.fds.get(a[0])
	if errno != Success {
		return errno
	}
	if _, errno := d.fileType(); errno != Success {
		return errno
	}
	base, inherited := rights(a[1]), rights(a[2])
	if base&^d.base != 0 || inherited&^d.inherited != 0 {
		return ENOTCAPABLE
	}
	d.base, d.inherited = base, inherited
	return Success
}

// fd_filestat_get(fd, stat)
func fdFilestatGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	d, errno := s.fds.use(a[0], rightFDFilestatGet)
	if errno != Success {
		return errno
	}
	out, ok := m.at(uint32(a[1]), filestatSize)
	if !ok {
		return EFAULT
	}
	st := Stat{Type: d.kind, Nlink: 1}
	if d.file != nil && !d.preopen {
		if st, errno = d.file.Stat(); errno != Success {
			return errno
		}
	}
	st.put(out)
	return Success
}

// fd_filestat_set_size(fd, size)
func fdFilestatSetSize(s *System, _ context.Context, _ memory, a []uint64) Errno {
	d, errno := s.positioned(a[0], rightFDFilestatSetSize)
	if errno != Success {
		return errno
	}
	if a[1] > math.MaxInt64 {
		return EINVAL
	}
	return d.file.SetSize(int64(a[1]))
}

// fd_filestat_set_times(fd, atim, mtim, flags)
func fdFilestatSetTimes(s *System, _ context.Context, _ memory, a []uint64) Errno {
	d, errno := s.fds.use(a[0], rightFDFilestatSetTimes)
	if errno != Success {
		return errno
	}
	t, errno := timesOf(a[1], a[2], a[3])
	if errno != Success {
		return errno
	}
	if d.file == nil {
		return EPERM // the preopen is nobody's
	}
	return d.file.SetTimes(t)
}

// filestatSize is the size of WASI's filestat.
const filestatSize = 64

func (st *Stat) put(out []byte) {
	putU64(out, st.Dev)
	putU64(out[8:], st.Ino)
	putU64(out[16:], uint64(st.Type))
	putU64(out[24:], st.Nlink)
	putU64(out[32:], st.Size)
	putU64(out[40:], uint64(st.Atim))
	putU64(out[48:], uint64(st.Mtim))
	putU64(out[56:], uint64(st.Ctim))
}

func timesOf(atim, mtim, flags uint64) (Times, Errno) {
	const (
		setAtim = 1 << iota
		setAtimNow
		setMtim
		setMtimNow
		all = 1<<iota - 1
	)
	f := uint32(flags)
	if f&^all != 0 || f&(setAtim|setAtimNow) == setAtim|setAtimNow ||
		f&(setMtim|setMtimNow) == setMtim|setMtimNow {
		return Times{}, EINVAL
	}
	t := Times{
		OmitAtim: f&(setAtim|setAtimNow) == 0, NowAtim: f&setAtimNow != 0,
		OmitMtim: f&(setMtim|setMtimNow) == 0, NowMtim: f&setMtimNow != 0,
	}
	if f&setAtim != 0 {
		t.Atim = int64(atim)
	}
	if f&setMtim != 0 {
		t.Mtim = int64(mtim)
	}
	if t.Atim < 0 || t.Mtim < 0 {
		return Times{}, EINVAL
	}
	return t, Success
}

// fd_prestat_get(fd, prestat): EBADF for all but the preopen, which is what
// libcs take for the end of the list.
func fdPrestatGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	d, errno := s.fds.get(a[0])
	if errno != Success || !d.preopen {
		return EBADF
	}
	out, ok := m.at(uint32(a[1]), 8)
	if !ok {
		return EFAULT
	}
	putU64(out, uint64(len(d.path))<<32) // tag 0, a directory; the name's length
	return Success
}

// fd_prestat_dir_name(fd, path, path_len)
func fdPrestatDirName(s *System, _ context.Context, m memory, a []uint64) Errno {
	d, errno := s.fds.get(a[0])
	if errno != Success || !d.preopen {
		return EBADF
	}
	out, ok := m.at(uint32(a[1]), uint32(a[2]))
	if !ok {
		return EFAULT
	}
	if len(out) < len(d.path) {
		return ENAMETOOLONG
	}
	copy(out, d.path)
	return Success
}
