//go:build linux || darwin

package jail

import (
	"slices"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
)

// A holder is what a guest holds, as a call of its that puts links somewhere is
// judged by.
type holder struct {
	j   *Jail
	op  Op
	dev uint64 // of a folder that is moved
}

var _ links.Holder = holder{}

// Leads asks the gate about a path, and about each that a link on it leads to.
func (h holder) Leads(to string) error {
	w := way{j: h.j, op: h.op, modes: caps.Modes(caps.Read), final: true, plain: true}
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

// Granted reports whether a root, or what stays where it is, is p or lies below
// it, one that is missing too.
func (h holder) Granted(p string) bool {
	for root := range h.j.roots {
		if links.Within(root, p) {
			return true
		}
	}
	within := func(root string) bool { return links.Within(root, p) }
	return slices.ContainsFunc(h.j.missing, within) || slices.ContainsFunc(h.j.stay, within)
}

// List opens a folder that is not mounted there.
func (h holder) List(at int, name string) (int, error) {
	return h.j.openAt(at, h.dev, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}
