//go:build linux || darwin

package jail

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/wasi"
)

// Bounds of a folder that is moved, for each entry is looked at.
const (
	mostMoved = 1 << 16
	mostDeep  = 64
)

// A placing is the judgement of links that are to lie somewhere: each is
// followed from there, and whoever puts it there must be allowed to read all
// that it leads to. The next launch may follow it where this run never would.
type placing struct {
	j        *Jail
	op       Op
	from, to string // a folder that is moved, and its new path; "" when none is
	left     int    // entries that may still be looked at
	depth    int    // folders that are open
}

// link judges a link with this text in dir, a folder that no link leads to. What
// it leads to need not exist. A text that climbs out of what it names, as a/../b
// does, means one thing as text and another to whoever follows a link at a.
func (p *placing) link(dir, text string) error {
	if climbs(text) {
		return unix.EACCES
	}
	to := text
	if !path.IsAbs(to) {
		to = dir + "/" + to
	}
	if to = path.Clean(to); p.from != "" && within(to, p.to) { // it moves along
		to = path.Join(p.from, to[len(p.to):])
	}
	w := way{j: p.j, op: p.op, modes: caps.Modes(caps.Read), final: true, plain: true}
	e := w.begin(to)
	if e == 0 {
		_, e = w.stat(false)
	}
	switch e {
	case 0, wasi.ENOENT, wasi.ENOTDIR:
		return nil
	case wasi.ENAMETOOLONG:
		return unix.ENAMETOOLONG
	}
	return unix.EACCES
}

// climbs reports whether a link's text leaves by ".." what it named before.
func climbs(text string) bool {
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

// entry judges what lies at name in the open folder at and is to lie at place: a
// link, and all links below a folder.
func (p *placing) entry(at int, dev uint64, name, place string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return p.named(at, name, place)
	case unix.S_IFDIR:
		return p.folder(at, dev, name, place)
	}
	return nil
}

// named judges the link at name; what is none may lie anywhere.
func (p *placing) named(at int, name, place string) error {
	text, err := linkIn(at, name)
	if err == unix.EINVAL {
		return nil
	}
	if err != nil {
		return err
	}
	return p.link(path.Dir(place), text)
}

// folder judges all links below the folder name. One that holds more than is
// looked at is not moved but copied: EXDEV says so.
func (p *placing) folder(at int, dev uint64, name, place string) error {
	if p.depth++; p.depth > mostDeep {
		return unix.EXDEV
	}
	defer func() { p.depth-- }()
	fd, err := p.j.openAt(at, dev, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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
			if p.left--; p.left < 0 {
				return unix.EXDEV
			}
			if err := p.entry(fd, dev, below, place+"/"+below); err != nil {
				return err
			}
		}
	}
}
