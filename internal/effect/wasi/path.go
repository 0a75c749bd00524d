package wasi

import (
	"bytes"
	"unicode/utf8"
	"unsafe"
)

// pathMax bounds a path, the guest's as it is written and the joined one, as
// PATH_MAX does.
const pathMax = 4095

// A place is a path of the guest's, made absolute and clean. path is a view of
// a scratch buffer: it holds until that buffer's next use.
type place struct {
	path    string
	mustDir bool // written with a trailing slash, "." or ".."
}

// resolve joins the directory of fd, which must have the rights, with the path
// at ptr.
func (s *System) resolve(buf *[]byte, fd uint64, need rights, text []byte) (place, Errno) {
	d, errno := s.fds.get(fd)
	if errno != Success {
		return place{}, errno
	}
	if !d.isDir() {
		return place{}, ENOTDIR
	}
	if d.base&need != need {
		return place{}, ENOTCAPABLE
	}
	if errno := checkText(text); errno != Success {
		return place{}, s.reject(text, errno)
	}
	p, errno := joinClean(buf, d.path, text)
	if errno != Success {
		s.reject(text, errno)
	}
	return p, errno
}

// pathAt is resolve for a path in guest memory, with the usual scratch buffer.
func (s *System) pathAt(m memory, fd uint64, need rights, ptr, n uint64) (place, Errno) {
	text, ok := m.at(uint32(ptr), uint32(n))
	if !ok {
		return place{}, EFAULT
	}
	s.move(len(text))
	return s.resolve(&s.path, fd, need, text)
}

// checkText refuses what cannot be a path: nothing, too much, NUL, not UTF-8.
func checkText(text []byte) Errno {
	switch {
	case len(text) == 0:
		return ENOENT
	case len(text) > pathMax:
		return ENAMETOOLONG
	case bytes.IndexByte(text, 0) >= 0:
		return EINVAL
	case !utf8.Valid(text):
		return EILSEQ
	}
	return Success
}

// joinClean writes base/text into buf without "." and "..", which are removed
// by the text alone: what is judged is what was written, and a link on the way
// is the FS's to expand. A path above "/" is EPERM. Absolute text starts from
// "/" whatever base is.
func joinClean(buf *[]byte, base, text []byte) (place, Errno) {
	out := (*buf)[:0]
	if text[0] != '/' && len(base) > 1 {
		out = append(out, base...)
	}
	mustDir := false
	for i := 0; i < len(text); {
		if text[i] == '/' {
			mustDir = true
			i++
			continue
		}
		n := bytes.IndexByte(text[i:], '/')
		if n < 0 {
			n = len(text) - i
		}
		c := text[i : i+n]
		i += n
		switch {
		case n == 1 && c[0] == '.':
			mustDir = true
		case n == 2 && c[0] == '.' && c[1] == '.':
			up := bytes.LastIndexByte(out, '/')
			if up < 0 {
				return place{}, EPERM
			}
			out, mustDir = out[:up], true
		default:
			out, mustDir = append(append(out, '/'), c...), false
		}
	}
	if len(out) == 0 {
		out = append(out, '/')
	}
	*buf = out
	if len(out) > pathMax {
		return place{}, ENAMETOOLONG
	}
	return place{path: unsafe.String(unsafe.SliceData(out), len(out)), mustDir: mustDir}, Success
}
