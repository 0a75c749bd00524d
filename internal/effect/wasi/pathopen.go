package wasi

import "context"

// WASI's oflags.
const (
	openCreate = 1 << iota
	openDirectory
	openExclusive
	openTrunc
	allOpenFlags = 1<<iota - 1
)

// path_open(fd, dirflags, path, path_len, oflags, rights, inheriting, fdflags, opened_fd)
func pathOpen(s *System, _ context.Context, m memory, a []uint64) Errno {
	out, ok := m.at(uint32(a[8]), 4)
	if !ok {
		return EFAULT
	}
	o, errno := openFlags(a[1], a[4], rights(a[5]), a[7])
	if errno != Success {
		return errno
	}
	need := rightPathOpen
	if o.Create {
		need |= rightPathCreateFile
	}
	if o.Trunc {
		need |= rightPathFilestatSetSize
	}
	p, errno := s.pathAt(m, a[0], need, a[2], a[3])
	if errno != Success {
		return errno
	}
	number, ok := s.fds.free()
	if !ok {
		return EMFILE
	}
	handed, _ := s.fds.get(a[0])
	inherited := handed.inherited
	f, errno := s.fs.Open(p.path, p.mustDir, o)
	if errno != Success {
		return errno
	}
	d := s.fds.slot(number)
	d.file, d.flags = f, fdflags(a[7])
	d.path = append(d.path, p.path...)
	d.base, d.inherited = rights(a[5])&inherited, rights(a[6])&inherited
	if o.Directory {
		d.setType(TypeDirectory)
	}
	putU32(out, uint32(number))
	return Success
}

// openFlags reads what a guest asked for. Read or write is a matter of the
// rights, as all libcs have it. To create and to truncate are passed on
// whatever the rights: it is the FS that must refuse them where only reading
// is granted.
func openFlags(lookup, oflags uint64, base rights, fdf uint64) (OpenFlags, Errno) {
	fol, errno := follow(lookup)
	of, ff := uint32(oflags), fdflags(fdf)
	switch {
	case errno != Success:
		return OpenFlags{}, errno
	case of&^allOpenFlags != 0, uint32(fdf) > uint32(allFDFlags):
		return OpenFlags{}, EINVAL
	case of&openDirectory != 0 && of&(openCreate|openTrunc) != 0:
		return OpenFlags{}, EINVAL
	}
	write := base&rightFDWrite != 0
	return OpenFlags{
		Read:      base&(rightFDRead|rightFDReaddir) != 0 || !write,
		Write:     write,
		Create:    of&openCreate != 0,
		Exclusive: of&openExclusive != 0,
		Trunc:     of&openTrunc != 0,
		Append:    ff&flagAppend != 0,
		Directory: of&openDirectory != 0,
		NoFollow:  !fol,
		NonBlock:  ff&flagNonblock != 0,
		Sync:      ff&(flagSync|flagRsync) != 0,
		Dsync:     ff&flagDsync != 0,
	}, Success
}
