package wasi

import "context"

// lookupFollow is WASI's lookupflags: follow a final symlink.
const lookupFollow = 1

func follow(flags uint64) (bool, Errno) {
	if uint32(flags)&^lookupFollow != 0 {
		return false, EINVAL
	}
	return uint32(flags)&lookupFollow != 0, Success
}

// path_create_directory(fd, path, path_len)
func pathCreateDirectory(s *System, _ context.Context, m memory, a []uint64) Errno {
	p, errno := s.pathAt(m, a[0], rightPathCreateDirectory, a[1], a[2])
	if errno != Success {
		return errno
	}
	return s.fs.Mkdir(p.path)
}

// path_filestat_get(fd, flags, path, path_len, stat)
func pathFilestatGet(s *System, _ context.Context, m memory, a []uint64) Errno {
	p, errno := s.pathAt(m, a[0], rightPathFilestatGet, a[2], a[3])
	if errno != Success {
		return errno
	}
	fol, errno := follow(a[1])
	if errno != Success {
		return errno
	}
	out, ok := m.at(uint32(a[4]), filestatSize)
	if !ok {
		return EFAULT
	}
	st, errno := s.fs.Stat(p.path, p.mustDir, fol)
	if errno != Success {
		return errno
	}
	st.put(out)
	return Success
}

// path_filestat_set_times(fd, flags, path, path_len, atim, mtim, fst_flags)
func pathFilestatSetTimes(s *System, _ context.Context, m memory, a []uint64) Errno {
	p, errno := s.pathAt(m, a[0], rightPathFilestatSetTimes, a[2], a[3])
	if errno != Success {
		return errno
	}
	fol, errno := follow(a[1])
	if errno != Success {
		return errno
	}
	t, errno := timesOf(a[4], a[5], a[6])
	if errno != Success {
		return errno
	}
	return s.fs.SetTimes(p.path, p.mustDir, fol, t)
}

// path_link(old_fd, old_flags, old_path, old_path_len, new_fd, new_path, new_path_len)
func pathLink(s *System, _ context.Context, m memory, a []uint64) Errno {
	fol, errno := follow(a[1])
	if errno != Success {
		return errno
	}
	from, errno := s.pathAt(m, a[0], rightPathLinkSource, a[2], a[3])
	if errno != Success {
		return errno
	}
	to, errno := s.secondPath(m, a[4], rightPathLinkTarget, a[5], a[6])
	if errno != Success {
		return errno
	}
	if from.mustDir {
		if _, errno := s.fs.Stat(from.path, true, true); errno != Success {
			return errno
		}
		return EPERM // directories have no second name
	}
	if to.mustDir {
		return s.notNew(to)
	}
	return s.fs.Link(from.path, fol, to.path)
}

// secondPath is pathAt into the second scratch buffer.
func (s *System) secondPath(m memory, fd uint64, need rights, ptr, n uint64) (place, Errno) {
	text, ok := m.at(uint32(ptr), uint32(n))
	if !ok {
		return place{}, EFAULT
	}
	s.move(len(text))
	return s.resolve(&s.path2, fd, need, text)
}

// notNew answers for a new name that ends in a slash, which only a directory
// could have: it is there already, or it is not and cannot be.
func (s *System) notNew(p place) Errno {
	if _, errno := s.fs.Stat(p.path, true, false); errno != Success {
		return errno
	}
	return EEXIST
}

// path_readlink(fd, path, path_len, buf, buf_len, bufused)
func pathReadlink(s *System, _ context.Context, m memory, a []uint64) Errno {
	p, errno := s.pathAt(m, a[0], rightPathReadlink, a[1], a[2])
	if errno != Success {
		return errno
	}
	buf, ok := m.at(uint32(a[3]), uint32(a[4]))
	used, ok2 := m.at(uint32(a[5]), 4)
	if !ok || !ok2 {
		return EFAULT
	}
	if p.mustDir {
		if _, errno := s.fs.Stat(p.path, true, true); errno != Success {
			return errno
		}
		return EINVAL // a directory is no link
	}
	n, errno := s.fs.Readlink(p.path, buf)
	if errno != Success {
		return errno
	}
	s.move(n)
	putU32(used, uint32(n))
	return Success
}

// path_remove_directory(fd, path, path_len)
func pathRemoveDirectory(s *System, _ context.Context, m memory, a []uint64) Errno {
	p, errno := s.pathAt(m, a[0], rightPathRemoveDirectory, a[1], a[2])
	if errno != Success {
		return errno
	}
	return s.fs.Rmdir(p.path)
}

// path_rename(fd, old_path, old_path_len, new_fd, new_path, new_path_len)
func pathRename(s *System, _ context.Context, m memory, a []uint64) Errno {
	from, errno := s.pathAt(m, a[0], rightPathRenameSource, a[1], a[2])
	if errno != Success {
		return errno
	}
	to, errno := s.secondPath(m, a[3], rightPathRenameTarget, a[4], a[5])
	if errno != Success {
		return errno
	}
	return s.fs.Rename(from.path, to.path, from.mustDir || to.mustDir)
}

// path_symlink(old_path, old_path_len, fd, new_path, new_path_len)
func pathSymlink(s *System, _ context.Context, m memory, a []uint64) Errno {
	target, ok := m.at(uint32(a[0]), uint32(a[1]))
	if !ok {
		return EFAULT
	}
	to, errno := s.pathAt(m, a[2], rightPathSymlink, a[3], a[4])
	if errno != Success {
		return errno
	}
	if errno := checkText(target); errno != Success {
		return s.reject(target, errno)
	}
	if to.mustDir {
		return s.notNew(to)
	}
	return s.fs.Symlink(string(target), to.path)
}

// path_unlink_file(fd, path, path_len)
func pathUnlinkFile(s *System, _ context.Context, m memory, a []uint64) Errno {
	p, errno := s.pathAt(m, a[0], rightPathUnlinkFile, a[1], a[2])
	if errno != Success {
		return errno
	}
	return s.fs.Unlink(p.path, p.mustDir)
}
