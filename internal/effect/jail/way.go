//go:build linux || darwin

package jail

import (
	"strings"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/links"
	"runloop.dev/rlp/internal/effect/wasi"
)

// Sets of modes, as a [way] asks for them.
const (
	read caps.ModeSet = 1 << caps.Read
	writ caps.ModeSet = 1 << caps.Write
	del  caps.ModeSet = 1 << caps.Delete
)

// A way is one path on its way through the jail: what it is wanted for, where
// the links met so far have led it, and what the gate said of where it is now.
type way struct {
	j     *Jail
	op    Op
	modes caps.ModeSet
	tree  bool // ask for the whole tree
	final bool // a link at the end is followed too
	plain bool // but none whose text means another thing to whoever follows it outside

	path    string
	root    *root
	rel     string                       // of path, beneath root
	permits [caps.Delete + 1]gate.Permit // for path, by mode
	permit  gate.Permit                  // the last of them, once none is missing
	links   int
}

// begin puts the path that the guest wrote to the gate. Nothing may be done
// beneath w.root unless it, and every follow after it, returns 0.
func (w *way) begin(p string) wasi.Errno {
	if strings.IndexByte(p, 0) >= 0 {
		return wasi.EINVAL
	}
	return w.judge(w.j.canonical(p))
}

// judge asks the gate for every mode on p, and finds the root to act beneath.
func (w *way) judge(p string) wasi.Errno {
	w.path, w.root, w.permit = p, nil, gate.Permit{}
	if len(p) >= links.PathMax {
		return wasi.ENAMETOOLONG
	}
	admit := w.j.gate.Admit
	if w.tree {
		admit = w.j.gate.AdmitTree
	}
	var last gate.Permit
	for m := caps.Read; m <= caps.Delete; m++ {
		w.permits[m] = gate.Permit{}
		if w.modes&(1<<m) == 0 {
			continue
		}
		if last = admit(w.op, m, p); !last.OK() {
			return wasi.EACCES
		}
		w.permits[m] = last
	}
	if w.root = w.j.rootOf(p); w.root == nil {
		return w.j.rootless(p)
	}
	w.rel, w.permit = w.root.rel(p), last
	return 0
}

// rootless is the answer for a path that the gate allows and no root covers.
func (j *Jail) rootless(p string) wasi.Errno {
	for _, m := range j.missing {
		if links.Within(p, m) {
			return wasi.ENOENT
		}
	}
	return wasi.EACCES // the gate knows a grant that the jail was not given
}

// failed turns the error of a step into the guest's; 0 says that a link was
// expanded and allowed, and the step is to be tried again where w is now.
func (w *way) failed(err error) wasi.Errno {
	switch err {
	case unix.ELOOP:
		return w.follow()
	case unix.EXDEV: // a mount point: what is there needs a grant of its own
		return wasi.EACCES
	}
	return errnoOf(err)
}

// follow expands the first link on the way and puts the path that comes of it
// to the gate. Where there is no link to expand, the error stands: ELOOP.
func (w *way) follow() wasi.Errno {
	if w.links++; w.links > maxLinks {
		return wasi.ELOOP
	}
	end, text, err := w.firstLink()
	if err != nil {
		return w.failed(err)
	}
	if text == "" {
		return wasi.ELOOP
	}
	if w.plain && links.Climbs(text) {
		return wasi.EACCES
	}
	return w.judge(w.j.canonical(links.Expand(w.path, len(w.path)-len(w.rel)+end, text)))
}

// firstLink returns the text of the first link in w.rel and where its name
// ends, or "". It goes one component at a time, so that a deep path costs what
// it is long and not the square of it.
func (w *way) firstLink() (end int, text string, err error) {
	dir, err := w.root.handle(w.permit)
	if err != nil {
		return 0, "", err
	}
	defer func() { w.root.release(dir) }()
	for start := 0; start < len(w.rel); start = end + 1 {
		end = len(w.rel)
		if i := strings.IndexByte(w.rel[start:], '/'); i >= 0 {
			end = start + i
		} else if !w.final {
			break
		}
		name := w.rel[start:end]
		text, err = links.Text(dir, name)
		if err == nil {
			return end, text, nil
		}
		if end == len(w.rel) {
			break
		}
		next, err := w.j.openAt(dir, w.root.dev, name, searchFlags|unix.O_DIRECTORY, 0)
		if err != nil {
			return 0, "", err
		}
		w.root.release(dir)
		dir = next
	}
	if err == unix.EINVAL { // the last one is no link either
		err = nil
	}
	return 0, "", err
}

// parent opens the directory that w's last component lies in, given back by
// w.root.release. self is the answer when w is the grant's own directory.
func (w *way) parent(self wasi.Errno) (dir int, name string, e wasi.Errno) {
	for {
		if w.rel == "" {
			return -1, "", self
		}
		dir, name, err := w.j.parentOf(w.permit, w.root, w.rel)
		if err == nil {
			return dir, name, 0
		}
		if e := w.failed(err); e != 0 {
			return -1, "", e
		}
	}
}

// openBeneath is openAt for what lies beneath r; "" is r's handle itself.
func (j *Jail) openBeneath(p gate.Permit, r *root, rel string, flags int, perm uint32) (int, error) {
	dir, err := r.handle(p)
	if err != nil {
		return -1, err
	}
	if rel == "" {
		rel = "."
	}
	return j.openAt(dir, r.dev, rel, flags, perm)
}

// parentOf opens the directory that rel's last component lies in. The handle
// is given back by r.release. rel is not "".
func (j *Jail) parentOf(p gate.Permit, r *root, rel string) (dir int, name string, err error) {
	i := strings.LastIndexByte(rel, '/')
	if i < 0 {
		dir, err = r.handle(p)
		return dir, rel, err
	}
	dir, err = j.openBeneath(p, r, rel[:i], searchFlags|unix.O_DIRECTORY, 0)
	return dir, rel[i+1:], err
}

func (r *root) release(dir int) {
	if dir != r.fd {
		_ = unix.Close(dir)
	}
}
