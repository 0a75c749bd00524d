//go:build linux || darwin

// Package links judges symbolic links before they are put somewhere: made,
// hard-linked or moved, by themselves or in a folder. Each is followed from where
// it is to lie, and whoever puts it there must be allowed to read all that it
// leads to: the next launch may follow it where this run never would. No link is
// put where a path is granted, or above one.
//
// What may be read and what is granted, the package is told: by the jail of a
// guest's own calls, and by the broker of its programs.
package links

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of a folder that is moved, for each entry is looked at.
const (
	MostMoved = 1 << 16
	MostDeep  = 64
)

// PathMax bounds a path, and the text of a link, as Linux does.
const PathMax = 4096

// A Holder is what somebody holds of the files. Paths are absolute and clean.
type Holder interface {
	// Leads is nil where all that a path leads to may be read, link by link and
	// each by its own name. What is not there may be read by its name.
	Leads(path string) error
	// Granted reports whether a path is granted, there or not, or holds one that is.
	Granted(path string) bool
	// List opens a folder in an open one to list it. It follows no link.
	List(at int, name string) (int, error)
}

// A Placing is the judgement of one call.
type Placing struct {
	Holder Holder
	// From and To are the path of a folder that is moved, and its new one; "" when
	// none is.
	From, To string

	looked int // entries
	depth  int // folders that are open
}

// Link judges a link with this text at place, in a folder that no link leads to.
// What it leads to need not exist. A text that climbs out of what it names, as
// a/../b does, means one thing as text and another to whoever follows a link at a.
func (p *Placing) Link(place, text string) error {
	switch {
	case p.Holder.Granted(place):
		return unix.EBUSY
	case Climbs(text):
		return unix.EACCES
	}
	to := text
	if !path.IsAbs(to) {
		to = path.Dir(place) + "/" + to
	}
	if to = path.Clean(to); p.From != "" && Within(to, p.To) { // it moves along
		to = path.Join(p.From, to[len(p.To):])
	}
	return p.Holder.Leads(to)
}

// Entry judges what lies at name in the open folder at and is to lie at place: a
// link, and all links below a folder.
func (p *Placing) Entry(at int, name, place string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return p.Named(at, name, place)
	case unix.S_IFDIR:
		return p.folder(at, name, place)
	}
	return nil
}

// Named judges another name for what lies at name, which is no folder. What is no
// link may have it wherever nothing is granted: who writes the granted file would
// write that, too.
func (p *Placing) Named(at int, name, place string) error {
	if p.Holder.Granted(place) {
		return unix.EBUSY
	}
	text, err := Text(at, name)
	if err == unix.EINVAL {
		return nil
	}
	if err != nil {
		return err
	}
	return p.Link(place, text)
}

// folder judges all links below the folder name. One that holds more than is
// looked at is not moved but copied: EXDEV says so.
func (p *Placing) folder(at int, name, place string) error {
	if p.depth++; p.depth > MostDeep {
		return unix.EXDEV
	}
	defer func() { p.depth-- }()
	fd, err := p.Holder.List(at, name)
	if err == unix.ENOTDIR || err == unix.ELOOP { // it was replaced
		return p.Named(at, name, place)
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var buf [8 << 10]byte
	for {
		n, err := retry(func() (int, error) { return unix.ReadDirent(fd, buf[:]) })
		if n <= 0 { // -1 with an error
			return err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, below := range names {
			if p.looked++; p.looked > MostMoved {
				return unix.EXDEV
			}
			if err := p.Entry(fd, below, place+"/"+below); err != nil && err != unix.ENOENT { // it is not there any more
				return err
			}
		}
	}
}

// Text is the text of the link name in the open folder at. No link is EINVAL.
func Text(at int, name string) (string, error) {
	var buf [PathMax + 1]byte
	n, err := retry(func() (int, error) { return unix.Readlinkat(at, name, buf[:]) })
	return string(buf[:max(n, 0)]), err
}

// Expand is where a path leads whose first end bytes are a link with this text.
func Expand(p string, end int, text string) string {
	if path.IsAbs(text) {
		return path.Clean(text + "/" + p[end:])
	}
	return path.Clean(path.Dir(p[:end]) + "/" + text + "/" + p[end:])
}

// Climbs reports whether a link's text leaves by ".." what it named before.
func Climbs(text string) bool {
	named := false
	for name := range strings.SplitSeq(text, "/") {
		switch name {
		case "", ".":
		case "..":
			if named {
				return true
			}
		default:
			named = true
		}
	}
	return false
}

func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}
