package sandbox

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/links"
)

var _ links.Holder = (*judge)(nil)

// Leads implements [links.Holder]: it follows a path as a later launch would, and
// judges each step by its name. What nobody holds is not looked at.
func (j *judge) Leads(to string) error {
	for range MaxLinks {
		if j.holding(to) < ReadOnly {
			return unix.EACCES
		}
		end, text, err := firstLink(to)
		switch {
		case err == unix.ENOENT, err == unix.ENOTDIR:
			return nil
		case err == unix.ENAMETOOLONG:
			return err
		case err != nil, links.Climbs(text):
			return unix.EACCES
		case text == "":
			return nil
		}
		if to = links.Expand(to, end, text); len(to) >= links.PathMax {
			return unix.ENAMETOOLONG
		}
	}
	return unix.EACCES
}

func (j *judge) holding(p string) Access {
	for ; ; p = path.Dir(p) {
		if a, ok := j.held[p]; ok {
			return a
		}
		if p == "/" {
			return Hidden
		}
	}
}

// firstLink is the text of the first link of a path, and where its name ends; ""
// when there is none.
func firstLink(p string) (end int, text string, err error) {
	var buf [links.PathMax + 1]byte
	for end < len(p) && p != "/" {
		if next := strings.IndexByte(p[end+1:], '/'); next >= 0 {
			end += 1 + next
		} else {
			end = len(p)
		}
		n, err := unix.Readlink(p[:end], buf[:])
		if err == nil {
			return end, string(buf[:n]), nil
		}
		if err != unix.EINVAL {
			return 0, "", err
		}
	}
	return 0, "", nil
}

// Granted implements [links.Holder].
func (j *judge) Granted(p string) bool {
	_, held := j.held[p]
	return held || j.holds[p]
}

// List implements [links.Holder].
func (j *judge) List(at int, name string) (int, error) {
	return unix.Openat2(at, name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW |
		unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: keepLinks})
}

// stays reports whether what lies here is a folder that is granted, or above what
// is: it is neither moved, nor removed, nor does another one take its place.
func (j *judge) stays(e end) bool {
	if _, held := j.held[e.path]; !held || j.holds[e.path] {
		return j.holds[e.path]
	}
	var st unix.Stat_t
	return unix.Fstatat(e.fd, e.name(), &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

func makeLink(b *broker, n *notice, at end) error {
	text, err := b.text(n, n.args[0])
	if err != nil {
		return err
	}
	if at.in.judged {
		p := links.Placing{Holder: b.judge}
		if err := p.Link(at.path, text); err != nil {
			return err
		}
	}
	return unix.Symlinkat(text, at.fd, at.last())
}

func hardLink(b *broker, _ *notice, from, to end) error {
	if links.Crosses(b.untrusted, from.path, to.path, true) {
		return unix.EACCES
	}
	if to.in.judged {
		p := links.Placing{Holder: b.judge}
		if err := p.Named(from.fd, from.name(), to.path); err != nil {
			return err
		}
	}
	return unix.Linkat(from.fd, from.name(), to.fd, to.last(), 0)
}

func renames(b *broker, _ *notice, from, to end) error { return b.rename(from, to, 0) }

// rename moves a file, a folder or a link. Two that change places would be two
// moves at once: a file system need not have that.
func (b *broker) rename(from, to end, flags uint) error {
	switch {
	case flags&^unix.RENAME_NOREPLACE != 0:
		return unix.EINVAL
	case b.stays(from), b.stays(to):
		return unix.EBUSY
	case links.Crosses(b.untrusted, from.path, to.path, false):
		return unix.EACCES
	}
	if to.in.judged {
		p := links.Placing{Holder: b.judge, From: from.path, To: to.path}
		if err := p.Entry(from.fd, from.name(), to.path); err != nil {
			return err
		}
	}
	return unix.Renameat2(from.fd, from.last(), to.fd, to.last(), flags)
}

func (b *broker) remove(at end, flags int) error {
	if flags&unix.AT_REMOVEDIR != 0 && b.stays(at) {
		return unix.EBUSY
	}
	return unix.Unlinkat(at.fd, at.last(), flags)
}

// learn tells which paths a call uses; what it does is not changed by that.
func (b *broker) learn(n *notice) {
	c, is := b.learner.calls[uint32(n.call)]
	if !is || !b.watch.begun {
		return
	}
	how := c.how(&n.args)
	for _, at := range c.paths {
		if path, there, is := b.used(n, at, how, c.opens); path != "" {
			b.learner.tell(is, there, path)
		}
	}
}

// used is the path that a call uses, without links; "" where that is none of a file.
func (b *broker) used(n *notice, at [2]int, how byte, opens bool) (path string, there bool, is byte) {
	text, err := b.text(n, n.args[at[1]])
	if err != nil || text == "" {
		return "", false, how
	}
	from, err := base(n, at[0])
	if err != nil || !b.valid(n) {
		closeIf(from)
		return "", false, how
	}
	begin, err := pathOf(from)
	if err != nil {
		closeIf(from)
		return "", false, how
	}
	p, err := b.walk(from, text, how != Makes)
	if errors.Is(err, errElsewhere) {
		return "", false, how
	}
	if err != nil {
		p.path = text
		if !strings.HasPrefix(text, "/") {
			p.path = begin + "/" + text
		}
	}
	var st unix.Stat_t
	there = unix.Lstat(p.path, &st) == nil
	folder := there && st.Mode&unix.S_IFMT == unix.S_IFDIR
	if folder && how == Looks { // it is there for whoever is shown something in it
		return "", true, how
	}
	if folder && how == Reads {
		how = Lists
	} else if there && !folder && opens && how == Makes {
		how = Writes // it was there already
	}
	return p.path, there, how
}
