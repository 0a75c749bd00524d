package wasi

import "io"

// DefaultMaxFiles is how many descriptors a guest may have open at once when
// nothing else is said, the standard three and the preopen included.
const DefaultMaxFiles = 256

// preopenFD is the number of the one preopen.
const preopenFD = 3

// A descriptor is one open number.
type descriptor struct {
	file File      // nil for stdio, and for the preopen until it is read
	in   *input    // standard input
	out  io.Writer // standard output and error

	path            []byte // absolute and clean; what relative paths start from
	base, inherited rights
	flags           fdflags

	kind    FileType
	typed   bool // kind is known
	open    bool
	preopen bool // prestat names it
}

// table is the guest's descriptors. Numbers are its indexes, and it never
// holds more than max of them.
type table struct {
	list []descriptor
	max  int
}

// get is the descriptor of a number, which holds until the next add.
func (t *table) get(fd uint64) (*descriptor, Errno) {
	n := uint64(uint32(fd))
	if n >= uint64(len(t.list)) || !t.list[n].open {
		return nil, EBADF
	}
	return &t.list[n], Success
}

// use is get for an operation that needs rights. Where POSIX would say that
// the descriptor is not open for this, so does the answer.
func (t *table) use(fd uint64, need rights) (*descriptor, Errno) {
	d, errno := t.get(fd)
	if errno != Success {
		return nil, errno
	}
	if d.base&need == need {
		return d, Success
	}
	if need&(rightFDRead|rightFDWrite) != 0 {
		return nil, EBADF
	}
	return nil, ENOTCAPABLE
}

func (t *table) free() (int, bool) {
	for i := range t.list {
		if !t.list[i].open {
			return i, true
		}
	}
	return len(t.list), len(t.list) < t.max
}

// slot makes number n, which free gave, ready to be filled. The buffer of the
// path that was there is kept for the next.
func (t *table) slot(n int) *descriptor {
	if n == len(t.list) {
		t.list = append(t.list, descriptor{})
	}
	d := &t.list[n]
	*d = descriptor{path: d.path[:0], open: true}
	return d
}

func (t *table) close(d *descriptor) Errno {
	file := d.file
	*d = descriptor{path: d.path[:0]}
	if file == nil {
		return Success
	}
	return file.Close()
}

// renumber moves from onto to, which must be open as well: a table that a
// guest could stretch to a number of its choice would be the guest's to fill.
func (t *table) renumber(from, to uint64) Errno {
	src, errno := t.get(from)
	if errno != Success {
		return errno
	}
	dst, errno := t.get(to)
	if errno != Success || src == dst {
		return errno
	}
	file := dst.file
	*src, *dst = descriptor{path: dst.path[:0]}, *src
	if file != nil {
		_ = file.Close() // as dup2: the number is taken over whatever this says
	}
	return Success
}

func (t *table) closeAll() {
	for i := range t.list {
		_ = t.close(&t.list[i])
	}
}

// fileType is what d is open on. It is asked once, when first needed, so that
// opening a file costs no stat.
func (d *descriptor) fileType() (FileType, Errno) {
	if d.typed {
		return d.kind, Success
	}
	st, errno := d.file.Stat()
	if errno != Success {
		return TypeUnknown, errno
	}
	d.setType(st.Type)
	return d.kind, Success
}

// setType fixes what d is, and with it the rights that make sense for it.
func (d *descriptor) setType(k FileType) {
	d.kind, d.typed = k, true
	if k == TypeDirectory {
		d.base &= dirRights
		return
	}
	d.base &= fileRights
	d.inherited = 0
}

// isDir reports whether d is a directory; what cannot be asked is none.
func (d *descriptor) isDir() bool {
	k, _ := d.fileType()
	return k == TypeDirectory
}
